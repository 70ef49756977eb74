"""Binlog retention as the server's variables set it, and the statements that change it."""

from __future__ import annotations

from cdc_lib.model.retention_forecast import BinlogExpiry
from cdc_lib.mysql.rds_retention import RdsRetention
from cdc_lib.mysql.server_facts import ServerFacts

_WEEK = 7 * 86_400
_MOST = {"mysql": 4_294_967_295, "mariadb": 99 * 86_400}
"""Greatest ``binlog_expire_logs_seconds``; MariaDB's is 99 days."""
_SECONDS_SINCE = (10, 6, 1)
"""First MariaDB with ``binlog_expire_logs_seconds``."""


def binlog_expiry(facts: ServerFacts) -> BinlogExpiry:
    """Return the retention that the server's variables set; at Amazon RDS and Aurora, that ``mysql.rds_configuration`` sets.

    MySQL: ``binlog_expire_logs_seconds``, else ``expire_logs_days`` (up to 8.x), where 0 purges nothing, and so does
    ``binlog_expire_logs_auto_purge = OFF`` (8.0.29). MariaDB: one value in two units, ``binlog_expire_logs_seconds`` (10.6.1) and
    ``expire_logs_days``, which may have a fraction; ``max_binlog_total_size`` (11.4), 0 for no limit. Percona Server calls that
    ``binlog_space_limit``. Source: the manuals of the servers.
    """
    if facts.rds is not None:
        return _of_rds(facts.rds)
    size_variable, total = "", None
    for name in ("max_binlog_total_size", "binlog_space_limit"):
        if total is None and _number(facts, name):
            size_variable, total = name, int(_number(facts, name) or 0)
    if facts.variables.get("binlog_expire_logs_auto_purge", "ON").upper() in ("OFF", "0"):
        return BinlogExpiry(None, total, size_variable)
    seconds, days = _number(facts, "binlog_expire_logs_seconds"), _number(facts, "expire_logs_days")
    if seconds is None and days is None:
        why = "the server shows neither binlog_expire_logs_seconds nor expire_logs_days"
        return BinlogExpiry(None, total, size_variable, why)
    return BinlogExpiry(seconds or (days or 0.0) * 86_400 or None, total, size_variable)


def _of_rds(rds: RdsRetention) -> BinlogExpiry:
    if rds.hidden:
        return BinlogExpiry(None, unknown="this user may not read mysql.rds_configuration, which sets it at Amazon RDS")
    return BinlogExpiry((rds.hours or 0.0) * 3600)


def lengthen(facts: ServerFacts, seconds: float) -> str:
    """Return the statement that keeps files for a week longer than now."""
    if facts.rds is not None:
        hours = min((int(seconds) + _WEEK) // 3600, facts.rds.most_hours)
        return f"CALL mysql.rds_set_configuration('binlog retention hours', {hours});"
    target = min(int(seconds) + _WEEK, _MOST[facts.identity.flavor])
    if facts.identity.flavor == "mysql":
        return f"SET PERSIST binlog_expire_logs_seconds = {target};"
    if facts.version < _SECONDS_SINCE:
        return f"SET GLOBAL expire_logs_days = {-(-target // 86_400)}; and the same in the server's configuration file."
    return f"SET GLOBAL binlog_expire_logs_seconds = {target}; and the same in the server's configuration file."


def enlarge(expiry: BinlogExpiry) -> str:
    """Return the step that doubles the size limit."""
    target = 2 * (expiry.total_bytes or 0)
    if expiry.size_variable == "max_binlog_total_size":
        return f"SET GLOBAL max_binlog_total_size = {target}; and the same in the server's configuration file."
    return f"Put {expiry.size_variable} = {target} into the server's configuration file, and restart it."


def _number(facts: ServerFacts, name: str) -> float | None:
    text = facts.variables.get(name)
    return float(text) if text else None
