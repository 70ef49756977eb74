"""The requirements on a server, each with the statement that fixes it."""

from __future__ import annotations

from collections.abc import Iterator

from cdc_lib.model.finding import Finding, Level
from cdc_lib.model.pace import counted
from cdc_lib.mysql.binlog_retention import binlog_expiry, lengthen
from cdc_lib.mysql.planned_server import log_updates_variable, unlogged_of
from cdc_lib.mysql.server_facts import ServerFacts

_MYSQL_OLDEST = (8, 0, 1)
_MARIADB_OLDEST = (10, 5, 0)


def judge(facts: ServerFacts) -> Iterator[Finding]:
    """Yield a finding for each requirement on the server."""
    mariadb = facts.identity.flavor == "mariadb"
    persist = "SET GLOBAL" if mariadb else "SET PERSIST"
    oldest = _MARIADB_OLDEST if mariadb else _MYSQL_OLDEST
    version = ".".join(map(str, facts.version))
    if facts.version >= oldest:
        yield Finding("ok", f"{facts.identity.flavor} {version}")
    else:
        yield Finding(
            "error", f"{facts.identity.flavor} {version}", f"Upgrade to {'.'.join(map(str, oldest))} or newer."
        )
    if facts.binlog_end is None:
        yield Finding("error", "the server writes no binlog", "Start the server with --log-bin and a --server-id.")
        return
    yield Finding("ok", f"binlog at {facts.binlog_end}, {counted(len(facts.files), 'file')}")
    written = facts.variables.get("binlog_format", "")
    if written.upper() == "ROW":
        yield Finding("ok", f"binlog_format is {written}")
    else:
        yield Finding("error", f"binlog_format is {written or 'unknown'}", f"{persist} binlog_format = 'ROW';")
    yield _metadata(facts, persist)
    yield from _row_image(facts, persist)
    yield from _gtids(facts)
    yield from _replicated(facts)
    yield from _retention(facts)


def _gtids(facts: ServerFacts) -> Iterator[Finding]:
    if facts.identity.flavor != "mysql" or "gtid_mode" not in facts.variables:
        return
    by_time = "a failover goes back by failover.fallback_interval, and reads those changes twice"
    after = {
        "ON": "a failover continues exactly, by GTIDs",
        "ON_PERMISSIVE": f"a failover continues by GTIDs where all transactions have one; else {by_time}",
    }
    yield Finding("ok", f"gtid_mode is {facts.gtid_mode}: {after.get(facts.gtid_mode, by_time)}")


def _metadata(facts: ServerFacts, persist: str) -> Finding:
    value = facts.variables.get("binlog_row_metadata", "")
    if facts.names_columns:
        return Finding("ok", f"binlog_row_metadata is {value}")
    if not value:
        return Finding("error", "binlog_row_metadata is unknown", "Upgrade the server.")
    return Finding(
        "warning",
        f"binlog_row_metadata is {value}: columns are named by a schema history that follows every DDL statement; one that "
        "it cannot follow stops the source unless the table is still as it left it",
        f"{persist} binlog_row_metadata = 'FULL';",
    )


def _row_image(facts: ServerFacts, persist: str) -> Iterator[Finding]:
    image = facts.variables.get("binlog_row_image", "").upper()
    hint = f"{persist} binlog_row_image = 'FULL';"
    if image in ("FULL", "FULL_NODUP"):
        yield Finding("ok", f"binlog_row_image is {image}")
    elif image in ("MINIMAL", "NOBLOB"):
        yield Finding(
            "warning",
            f"binlog_row_image is {image}: merges read rows back from the lake, and a row whose insert left columns to "
            "their defaults stops its table",
            hint,
        )
    else:
        yield Finding("error", f"binlog_row_image is {image or 'unknown'}", hint)
    if facts.variables.get("binlog_row_value_options"):
        level: Level = "ok" if image == "FULL" else "warning"
        what = "binlog_row_value_options is set: JSON documents come as differences"
        more = "" if image == "FULL" else f", which cannot be applied where {image} leaves out the document"
        yield Finding(level, what + more, "" if image == "FULL" else hint)


def _replicated(facts: ServerFacts) -> Iterator[Finding]:
    if facts.logs_replicated:
        return
    if (unlogged := unlogged_of(facts)) is not None:
        yield Finding("error", *unlogged)
        return
    yield Finding(
        "ok",
        f"{log_updates_variable(facts)} is OFF, and the server replicates from no other one: its binlog is complete. As a replica, or as "
        "a standby of this source, it would need ON",
    )


def _retention(facts: ServerFacts) -> Iterator[Finding]:
    expiry = binlog_expiry(facts)
    if facts.rds is not None:
        yield Finding(
            "ok", "Amazon RDS or Aurora: no step needs SUPER, FLUSH TABLES WITH READ LOCK or a lock on a table"
        )
    if expiry.unknown:
        hint = "Ask who runs the server how long it keeps binlog files."
        if facts.rds is not None:
            hint = "GRANT SELECT ON mysql.rds_configuration TO the user; or CALL mysql.rds_show_configuration shows it."
        yield Finding("warning", f"it is unknown how long binlog files are kept: {expiry.unknown}", hint)
    elif expiry.seconds is None:
        yield Finding("ok", "the server keeps binlog files until they are purged by hand, at any age")
    elif facts.rds is not None and not expiry.seconds:
        what = "'binlog retention hours' is NULL: the server purges binlog files as soon as possible, also those that were not read"
        yield Finding("warning", what, lengthen(facts, 0.0))
    elif expiry.seconds < 86_400:  # a day
        what = f"the server purges binlog files after {expiry.seconds / 3600:.1f} hours"
        yield Finding("warning", what, lengthen(facts, expiry.seconds))
    else:
        yield Finding("ok", f"the server keeps binlog files for {expiry.seconds / 86_400:.1f} days")
    if expiry.total_bytes is not None:
        yield Finding("ok", f"the server purges binlog files beyond {expiry.total_bytes / 2**20:.0f} MiB, at any age")
