"""Looks, when snapshots are planned, for dates in keys that no date type holds.

Only the first rows in the order of the key are read. A date that is found later is a fault of its table (``DateInKey``), which the
next plan cures by a new snapshot: looking first spares that snapshot to most tables that need it.
"""

from __future__ import annotations

import logging
from contextlib import closing
from dataclasses import dataclass

from cdc_lib.errors import SourceError
from cdc_lib.model.cursor import Cursor
from cdc_lib.model.lexer import quoted
from cdc_lib.model.schema import TableSchema
from cdc_lib.model.table_name import TableName
from cdc_lib.mysql.connection import Session
from cdc_lib.mysql.information_schema import InformationSchema
from cdc_lib.mysql.read_only_session import answer
from cdc_lib.source import Source

log = logging.getLogger(__name__)

ROWS = 10_000
"""Rows of a table that are looked at."""


@dataclass(frozen=True, slots=True)
class KeyDates:
    """Looks at the keys of the tables of one source.

    Args:
        source: the source.
    """

    source: Source

    def looked_at(self, cursor: Cursor) -> Cursor:
        """Return the drain cursor with the tables, of those whose snapshot was requested since the last plan, that have such dates.

        Raises:
            SourceUnavailable: the server cannot be reached.
        """
        new = {task.name for task in cursor.open_snapshots if task.to_divide}.difference(cursor.text_keys)
        if not new or self.source.config.zero_dates != "null":
            return cursor
        with closing(self.source.connect()) as connection:
            reader = InformationSchema(connection)
            dated = {
                TableName(database, table)
                for database in {table.database for table in new}
                for table in reader.with_date_keys(database)
            }
            found = [table for table in sorted(new & dated) if _has_such_dates(connection, table)]
        for table in found:
            log.info("%s has dates in its key that no date type holds: the lake holds them as text", table)
        return cursor.with_text_keys(found) if found else cursor


def _has_such_dates(connection: Session, table: TableName) -> bool:
    """Whether the first rows have such dates; no for a table that cannot be read, which its snapshot reports."""
    try:
        schema = InformationSchema(connection).schema(*table.pair)
        return schema is not None and bool(answer(connection, select_such_dates(schema), table))
    except SourceError as error:
        if error.retryable:
            raise
        log.warning("the key of %s is not looked at: %s", table, error.message)
        return False


def select_such_dates(schema: TableSchema) -> str:
    """Return the SELECT of a row if the first rows of a table have a date in their keys that is no day of the calendar."""
    dates = [quoted(c.name) for c in schema.columns if c.type.family.is_date and c.name in schema.primary_key]
    order = ", ".join(map(quoted, schema.primary_key))
    table = f"{quoted(schema.database)}.{quoted(schema.table)}"
    first = f"SELECT {', '.join(dates)} FROM {table} ORDER BY {order} LIMIT {ROWS}"  # noqa: S608 - names are quoted
    wrong = (f"MONTH({d}) = 0 OR DAYOFMONTH({d}) = 0 OR DAYOFMONTH({d}) > DAYOFMONTH(LAST_DAY({d}))" for d in dates)
    return f"SELECT 1 FROM ({first}) AS cdc_keys WHERE {' OR '.join(wrong)} LIMIT 1"  # noqa: S608 - names are quoted
