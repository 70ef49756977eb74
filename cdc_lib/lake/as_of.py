"""Conditions that select the rows of an scd2 table as of a time, a binlog position or a GTID.

Each is Spark SQL for WHERE, and selects one version of each row at most. A time includes all changes of that time; a
position or GTID also separates changes of one second.
"""

from __future__ import annotations

from datetime import UTC, datetime

from cdc_lib.model.lake_table import ORDER
from cdc_lib.model.manifest import GTID
from cdc_lib.model.position import Point
from cdc_lib.model.table_mode import TO_GTID, TO_ORDER, VALID_FROM, VALID_TO

_FROM, _TO = f"struct({', '.join(ORDER)})", f"struct({', '.join(TO_ORDER)})"


def at_time(at: datetime) -> str:
    """Return the condition for the rows as of a time.

    Args:
        at: with its time zone.
    """
    literal = f"TIMESTAMP '{at.astimezone(UTC):%Y-%m-%d %H:%M:%S.%f}+00:00'"
    return f"{VALID_FROM} <= {literal} AND ({VALID_TO} IS NULL OR {VALID_TO} > {literal})"


def before_point(point: Point) -> str:
    """Return the condition for the rows as of a point: all changes committed before the event there, as in a cut."""
    order_key = f"struct({point.epoch}, {point.file}, {point.offset}L)"
    began, ended = f"struct({', '.join(ORDER[:-1])})", f"struct({', '.join(TO_ORDER[:-1])})"
    return f"{began} < {order_key} AND ({TO_ORDER[0]} IS NULL OR {ended} >= {order_key})"


def after_gtid(gtid: str, table: str) -> str:
    """Return the condition for the rows as of the commit of a transaction.

    Args:
        gtid: of the transaction, as in ``_gtid``.
        table: SQL name of an scd2 table that the transaction changed; it may be another one than the queried table.
    """
    text = gtid.replace("\\", "\\\\").replace("'", "\\'")
    order_keys = (
        f"SELECT {_FROM} AS order_key FROM {table} WHERE {GTID} = '{text}'"
        f" UNION ALL SELECT {_TO} AS order_key FROM {table} WHERE {TO_GTID} = '{text}'"
    )
    order_key = f"(SELECT max(order_key) FROM ({order_keys}) AS order_keys)"
    return f"{_FROM} <= {order_key} AND ({TO_ORDER[0]} IS NULL OR {_TO} > {order_key})"
