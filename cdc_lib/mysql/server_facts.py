"""Server facts: its identity, its binlog settings, and the binlog files that it still has."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pymysql
from pymysql.connections import Connection

from cdc_lib.config import Credentials, ServerConfig
from cdc_lib.errors import SourceError, UnsupportedServer
from cdc_lib.model.charset import charset_name
from cdc_lib.model.position import Position
from cdc_lib.model.server_identity import ServerIdentity
from cdc_lib.mysql.connection import answering, connect, translated
from cdc_lib.mysql.rds_retention import RdsRetention, read_rds_retention
from cdc_lib.mysql.replica_status import is_replica, logs_replicated
from cdc_lib.mysql.statements import rows_of
from cdc_lib.mysql.unsupported import refuse_unreadable

_VARIABLES = (
    "version", "server_uuid", "server_id", "gtid_domain_id", "log_bin", "binlog_format", "binlog_row_image",
    "binlog_row_metadata", "binlog_checksum", "gtid_mode", "binlog_expire_logs_seconds", "expire_logs_days",
    "binlog_row_value_options", "lower_case_table_names", "old_mode",
    "innodb_native_foreign_keys", "binlog_expire_logs_auto_purge", "max_binlog_total_size", "binlog_space_limit",
    "log_replica_updates", "log_slave_updates", "gtid_slave_pos", "wsrep_on", "version_comment", "basedir",
    "innodb_read_only", "aurora_version", "aurora_server_id", "binlog_storage_engine",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class ServerFacts:
    """The state of a server at one moment.

    Args:
        identity: which server it is.
        version: numbers of its version, for example ``(9, 7, 4)``.
        variables: relevant global variables, names in lower case; without those that the server does not know.
        binlog_end: end of the binlog; None when the binlog is off or not needed.
        gtid_set: executed GTIDs at the end of the binlog; empty when the server has none.
        files: binlog files and their sizes in bytes, oldest first.
        gtid_purged: executed GTIDs that no binlog file contains any more; MySQL only, else empty.
        clock: the server's time (UTC), read before the end of the binlog.
        replicates: whether the server is a replica; False if it logs what it replicates, None if this user may not see it.
        rds: binlog retention of Amazon RDS or Aurora; None at other servers.
    """

    identity: ServerIdentity
    version: tuple[int, ...]
    variables: Mapping[str, str]
    binlog_end: Position | None
    gtid_set: str
    files: tuple[tuple[str, int], ...]
    gtid_purged: str = ""
    clock: datetime = datetime(1970, 1, 1, tzinfo=UTC)
    replicates: bool | None = False
    rds: RdsRetention | None = None

    @property
    def end(self) -> Position:
        """End of the binlog.

        Raises:
            UnsupportedServer: the binlog is off.
        """
        if self.binlog_end is None:
            raise _without_binlog()
        return self.binlog_end

    @property
    def checksum(self) -> bool:
        """Whether new events end in a CRC32."""
        return self.variables.get("binlog_checksum", "NONE").upper() == "CRC32"

    @property
    def gtid_mode(self) -> str:
        """MySQL's ``gtid_mode`` in upper case; ``ON`` for MariaDB, whose transactions all have GTIDs."""
        return "ON" if self.identity.flavor == "mariadb" else self.variables.get("gtid_mode", "OFF").upper()

    @property
    def gtids_on(self) -> bool:
        """Whether every new transaction of the server's clients has a GTID."""
        return self.gtid_mode in ("ON", "ON_PERMISSIVE")

    @property
    def all_have_gtids(self) -> bool:
        """Whether every new transaction has a GTID, also one that is replicated."""
        return self.gtid_mode == "ON"

    @property
    def logs_replicated(self) -> bool:
        """Whether the binlog has the changes that the server replicates from another one."""
        return logs_replicated(self.variables)

    @property
    def names_columns(self) -> bool:
        """Whether the binlog names columns, members of ENUM and SET, and keys."""
        return self.variables.get("binlog_row_metadata", "").upper() == "FULL"

    @property
    def folds_names(self) -> bool:
        """Whether the server stores names of databases and tables in lower case."""
        return self.variables.get("lower_case_table_names", "0") == "1"

    @property
    def utf8_is_utf8mb4(self) -> bool:
        """Whether statements of MariaDB may mean utf8mb4 by utf8."""
        return "UTF8_IS_UTF8MB3" not in self.variables.get("old_mode", "UTF8_IS_UTF8MB3") and self.version >= (10, 6)


def facts_of(server: ServerConfig, credentials: Credentials) -> ServerFacts:
    """Log in, read the facts, log out.

    Raises:
        SourceError: it cannot be reached, or a statement fails.
        UnsupportedServer: the user may not read the binlog status.
    """
    connection = connect(server, credentials)
    try:
        return read_facts(connection, server)
    finally:
        connection.close()


def read_facts(connection: Connection[Any], server: ServerConfig) -> ServerFacts:
    """Read the facts over a session.

    Raises:
        SourceError: a statement fails.
        UnsupportedServer: the user may not read the binlog status, or the server's binlog cannot be read.
    """
    try:
        variables = read_variables(connection)
        refuse_unreadable(variables, host=server.host, port=server.port)
        mariadb = "mariadb" in variables["version"].lower()
        version = _numbers(variables["version"])
        clock = rows_of(connection, "SELECT UTC_TIMESTAMP(6)")[0][0].replace(tzinfo=UTC)
        # Read before the end of the binlog: a purged set that is too small does no harm.
        purged = (
            "" if mariadb else str(rows_of(connection, "SELECT @@GLOBAL.gtid_purged")[0][0] or "").replace("\n", "")
        )
        # Read before the end of the binlog, too: a replica that is configured later has replicated nothing up to there.
        replicates = False if logs_replicated(variables) else is_replica(connection, version, variables)
        binlog_end, gtid_set = _binlog_end(connection, version, mariadb=mariadb)
        rds = read_rds_retention(connection, variables)
        files = (
            tuple((str(row[0]), int(row[1])) for row in rows_of(connection, "SHOW BINARY LOGS")) if binlog_end else ()
        )
    except pymysql.MySQLError as error:
        raise translated(error, connection) from error
    identity = _identity(variables, server)
    return ServerFacts(identity, version, variables, binlog_end, gtid_set, files, purged, clock, replicates, rds)


def read_identity(connection: Connection[Any], server: ServerConfig) -> ServerIdentity:
    """Read only the server's identity.

    Raises:
        SourceError: it cannot be reached, or refuses.
    """
    try:
        return _identity(read_variables(connection), server)
    except pymysql.MySQLError as error:
        raise translated(error, connection) from error


def _identity(variables: Mapping[str, str], server: ServerConfig) -> ServerIdentity:
    mariadb = "mariadb" in variables["version"].lower()
    return ServerIdentity(
        flavor="mariadb" if mariadb else "mysql",
        server_uuid="" if mariadb else variables.get("server_uuid", ""),
        server_id=int(variables.get("server_id", "0")),
        gtid_domain=int(variables.get("gtid_domain_id", "0")),
        host=server.host,
        port=server.port,
    )


def read_variables(connection: Connection[Any]) -> dict[str, str]:
    """Return the relevant global variables."""
    names = ", ".join(f"'{name}'" for name in _VARIABLES)
    rows = rows_of(connection, f"SHOW GLOBAL VARIABLES WHERE Variable_name IN ({names})")  # constants
    return {str(name).lower(): str(value) for name, value in rows}


def _binlog_end(connection: Connection[Any], version: tuple[int, ...], *, mariadb: bool) -> tuple[Position | None, str]:
    statement = "SHOW MASTER STATUS" if mariadb or version < (8, 2) else "SHOW BINARY LOG STATUS"
    gtid_set = str(rows_of(connection, "SELECT @@GLOBAL.gtid_binlog_state")[0][0] or "") if mariadb else ""
    rows = rows_of(connection, statement)
    if not rows:
        return None, ""
    file, offset = rows[0][0], rows[0][1]
    if not mariadb:
        gtid_set = (rows[0][4] or "").replace("\n", "") if len(rows[0]) > 4 else ""  # fifth column
    return Position(file, int(offset)), str(gtid_set)


def read_binlog_end(connection: Connection[Any], facts: ServerFacts) -> Position:
    """Return the current end of the binlog.

    Raises:
        UnsupportedServer: the binlog is off.
    """
    try:
        binlog_end, _ = _binlog_end(connection, facts.version, mariadb=facts.identity.flavor == "mariadb")
    except pymysql.MySQLError as error:
        raise SourceError(f"the end of the binlog cannot be read: {error}") from error
    if binlog_end is None:
        raise _without_binlog()
    return binlog_end


def binlog_end_of(server: ServerConfig, credentials: Credentials) -> Position:
    """Log in, read the end of the binlog and nothing else, log out.

    Raises:
        SourceError: it cannot be reached, or a statement fails.
        UnsupportedServer: the binlog is off.
    """
    connection = connect(server, credentials)
    try:
        with answering(connection):
            version = str(rows_of(connection, "SELECT VERSION()")[0][0])
            end, _ = _binlog_end(connection, _numbers(version), mariadb="mariadb" in version.lower())
    finally:
        connection.close()
    if end is None:
        raise _without_binlog()
    return end


def _without_binlog() -> UnsupportedServer:
    return UnsupportedServer("the server writes no binlog", hint="Start it with --log-bin.")


def _numbers(version: str) -> tuple[int, ...]:
    """Return the numbers of a version such as ``12.1.2-MariaDB-log``."""
    return tuple(int(part) for part in version.partition("-")[0].split("."))


def read_charsets(connection: Connection[Any]) -> dict[int, str]:
    """Return the character set name of each collation number."""
    columns = rows_of(
        connection,
        "SELECT COLUMN_NAME FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = 'information_schema' "
        "AND TABLE_NAME = 'COLLATION_CHARACTER_SET_APPLICABILITY'",
    )
    # MariaDB 10.10 and newer have the collation ids there; MySQL and older MariaDB in COLLATIONS.
    numbered = any(str(row[0]).upper() == "ID" for row in columns)
    table = "COLLATION_CHARACTER_SET_APPLICABILITY" if numbered else "COLLATIONS"
    rows = rows_of(connection, f"SELECT ID, CHARACTER_SET_NAME FROM information_schema.{table}")  # constants
    return {int(number): charset_name(str(name)) for number, name in rows if number is not None and name is not None}
