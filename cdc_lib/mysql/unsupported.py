"""Servers that speak MySQL's protocol and whose binlog cannot be read: each is refused by name, with what to use instead.

Versions such as ``8.0.11-TiDB-v7.5.0`` and ``8.0.30-Vitess`` name the server. A reader of Amazon Aurora has ``aurora_version`` and
``innodb_read_only``; MariaDB 12.3 with its InnoDB-based binlog has ``binlog_storage_engine``. No such server was run.
"""

from __future__ import annotations

from collections.abc import Mapping

from cdc_lib.errors import UnsupportedServer

_FOREIGN = {
    "tidb": (
        "TiDB",
        "It writes no binlog of MySQL. Use TiCDC, TiDB's own change feed.",
    ),
    "vitess": (
        "Vitess (also PlanetScale)",
        "Its gateway serves no binlog. Use VStream, for example by Debezium's connector for Vitess.",
    ),
}
_PLANETSCALE = "planetscale"


def foreign_server(version: str, comment: str = "") -> tuple[str, str] | None:
    """Return the name of a server that is not MySQL or MariaDB, and what to use instead; None for others.

    Args:
        version: what the server says at log-in, or ``VERSION()``.
        comment: ``@@version_comment``.
    """
    text = f"{version} {comment}".lower().replace(_PLANETSCALE, "vitess")
    return next((found for name, found in _FOREIGN.items() if name in text), None)


def unreadable_binlog(variables: Mapping[str, str]) -> tuple[str, str] | None:
    """Return why the server's binlog cannot be read because of what it is, and a hint; None if it can.

    Args:
        variables: global variables, names in lower case.
    """
    engine = variables.get("binlog_storage_engine", "")
    if engine:
        return (
            f"binlog_storage_engine is {engine}: this binlog has no positions, and is not read",
            "Remove binlog_storage_engine from the server's configuration file, and restart it: it then writes a binlog in files.",
        )
    if is_aurora(variables) and variables.get("innodb_read_only", "OFF").upper() in ("ON", "1"):
        return (
            "the server is a reader of an Aurora cluster: only the writer has the binlog",
            "Name the cluster endpoint (the writer) in server.host. It follows a failover of the cluster.",
        )
    return None


def is_aurora(variables: Mapping[str, str]) -> bool:
    """Whether the server is Amazon Aurora."""
    return bool(variables.get("aurora_version") or variables.get("aurora_server_id"))


def refuse_foreign(version: str, comment: str = "", **context: str | int) -> None:
    """Refuse a server that is not MySQL or MariaDB.

    Raises:
        UnsupportedServer: it is another one.
    """
    if (found := foreign_server(version, comment)) is not None:
        name, hint = found
        raise UnsupportedServer(f"the server is {name}, which is not supported", hint=hint, **context)


def refuse_unreadable(variables: Mapping[str, str], **context: str | int) -> None:
    """Refuse a server whose binlog cannot be read because of what the server is.

    Raises:
        UnsupportedServer: it cannot be read.
    """
    refuse_foreign(variables.get("version", ""), variables.get("version_comment", ""), **context)
    if (found := unreadable_binlog(variables)) is not None:
        what, hint = found
        raise UnsupportedServer(what, hint=hint, **context)
