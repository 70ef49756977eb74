"""A table that is locked for a moment, so that no change of it is on its way into the binlog."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager

import pymysql
from pymysql.constants import ER

from cdc_lib.config import Credentials, ServerConfig
from cdc_lib.errors import SourceError, SourceUnavailable, UnsupportedServer
from cdc_lib.model.lexer import quoted
from cdc_lib.model.table_name import TableName
from cdc_lib.mysql.connection import connect
from cdc_lib.mysql.statements import rows_of

LOCK_SECONDS = 10
"""While a lock is waited for, writers of the table wait as well."""


@contextmanager
def locked(server: ServerConfig, credentials: Credentials, table: TableName) -> Iterator[None]:
    """Lock a table for writers while the block runs: every transaction that changed it is committed.

    Raises:
        SourceUnavailable: a transaction on it is open too long.
        UnsupportedServer: the user may not lock it.
    """
    with closing(connect(server, credentials)) as session:
        try:
            rows_of(session, f"SET SESSION lock_wait_timeout = {LOCK_SECONDS}")
            rows_of(session, f"LOCK TABLES {quoted(table.database)}.{quoted(table.table)} READ")
        except pymysql.MySQLError as error:
            raise _not_locked(error, table) from error
        yield


def _not_locked(error: pymysql.MySQLError, table: TableName) -> SourceError:
    if error.args[0] == ER.LOCK_WAIT_TIMEOUT:
        return SourceUnavailable(
            f"a table could not be locked within {LOCK_SECONDS} seconds",
            hint="SHOW PROCESSLIST shows the transaction that holds it. The task can be tried again.",
            table=table,
        )
    return UnsupportedServer(
        f"a table cannot be locked: {error.args[-1]}",
        hint=f"GRANT LOCK TABLES ON {quoted(table.database)}.* to the user of the source, or set snapshot.lock_tables: false.",
        table=table,
    )
