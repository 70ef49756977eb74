"""Tables in each layout, with a column of each lake type, whose changes move rows between partitions: what engines are compared on."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, datetime, timedelta
from decimal import Decimal
from itertools import product
from typing import Any
from zoneinfo import ZoneInfo

from pyiceberg.expressions import BooleanExpression, EqualTo, GreaterThanOrEqual, IsNull, LessThan, NotNull

from cdc_lib.config.layouts import LayoutRule
from cdc_lib.config.maintenance import MaintenanceConfig
from cdc_lib.model.schema import SourceType, TableSchema
from cdc_lib.store.cuts import last_cut
from spark_jobs.maintain import lake_tables, maintain
from tests.harness.lake.batches import BIGINT, INT, TEXT, Row, table
from tests.harness.lake.running import Lake

PARTITIONS = {
    "whole": (),
    "by_time": ("month(created)", "bucket(2, id)"),
    "by_text": ("truncate(2, t)", "kind"),
    "by_days": ("day(created)", "hour(stamp)", "year(on_day)"),
}
"""Partitions of the layouts, by the last part of a table's name."""

MODES = ("merge_on_read", "copy_on_write")

COLUMNS = {
    "id": BIGINT,
    "kind": TEXT,
    "t": TEXT,
    "created": SourceType("datetime", scale=6),
    "stamp": SourceType("timestamp", scale=6),
    "on_day": SourceType("date"),
    "n": INT,
    "u": SourceType("int", width=8, unsigned=True),
    "price": SourceType("decimal", precision=9, scale=2),
    "long": SourceType("decimal", precision=38, scale=10),
    "f": SourceType("float"),
    "g": SourceType("double"),
    "b": SourceType("bytes", width=16),
    "flag": SourceType("int", width=1, as_boolean="error"),
}
"""Columns of the source; each lake type is among them."""

CONDITIONS: dict[str, BooleanExpression] = {
    "id = 7": EqualTo("id", 7),
    "kind = 'b'": EqualTo("kind", "b"),
    "kind IS NULL": IsNull("kind"),
    "t = 'straße 4'": EqualTo("t", "straße 4"),
    "created < TIMESTAMP '1970-01-01 00:00:00'": LessThan("created", "1970-01-01T00:00:00"),
    "created >= TIMESTAMP '2026-02-01 00:00:00'": GreaterThanOrEqual("created", "2026-02-01T00:00:00"),
    "on_day < DATE '1970-01-01'": LessThan("on_day", "1970-01-01"),
    "price < 0": LessThan("price", Decimal("0.00")),
    "n IS NULL": IsNull("n"),
    "n IS NOT NULL": NotNull("n"),
}
"""SQL that all engines speak, and the same for PyIceberg. Each partition column has one, so that an engine skips files by it."""

KEYS = 36
EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001
JANUARY = datetime(2026, 1, 30)  # noqa: DTZ001


def schemas(database: str, *, versions: tuple[int, ...] = (2, 3)) -> dict[str, TableSchema]:
    """Return a table for each layout, by its name: ``v<format version>_<write mode>_<partitions>``."""
    names = [f"v{version}_{mode}_{parts}" for version, mode, parts in product(versions, MODES, PARTITIONS)]
    return {name: table(f"{database}.{name}", COLUMNS) for name in names}


def lay_out(lake: Lake) -> None:
    """Give each table of :func:`schemas` its layout."""
    rules = tuple(
        LayoutRule(tables=f"*.v{version}_{mode}_{parts}", format_version=version, write_mode=mode, partition_by=by)
        for version, mode, (parts, by) in product((2, 3), MODES, PARTITIONS.items())
    )
    lake.config = lake.config.model_copy(update={"layouts": rules})


def values(key: int, version: int) -> dict[str, Any]:
    """Return the values of a row: extremes and NULLs among them; each version of it belongs to other partitions."""
    number = key + version
    null = number % 9 == 4
    long_ago = number % 7 == 3
    created = EPOCH - timedelta(hours=number, microseconds=1) if long_ago else JANUARY + timedelta(days=number % 4)
    return {
        "id": key,
        "kind": None if null else "ab"[number % 2],
        "t": None if null else f"{('straße', 'ääß', '', chr(0x1F600) * 3)[number % 4]} {number % 5}",
        "created": None if null else created,
        "stamp": None if null else (created + timedelta(hours=number % 3)).replace(tzinfo=ZoneInfo("UTC")),
        "on_day": None if null else date(1, 1, 1) if number % 8 == 0 else (created + timedelta(days=1)).date(),
        "n": None if null else (-(2**31), 2**31 - 1, 0, number)[number % 4],
        "u": None if null else Decimal(2**64 - 1 - number),
        "price": None if null else Decimal(f"{number - 20}E-2"),
        "long": None if null else Decimal(f"{10**38 - 1 - number}E-10"),
        "f": None if null else (1.5, -0.0, 3.4028234663852886e38, 1.401298464324817e-45)[number % 4],
        "g": None if null else (0.1, -0.0, 1.7976931348623157e308, 5e-324)[number % 4],
        "b": None if null else (b"", b"\x00\xff", bytes([number]))[number % 3],
        "flag": None if null else number % 2 == 0,
    }


def merge_rounds(lake: Lake, tables: Mapping[str, TableSchema], first: int, rounds: int) -> list[dict[str, Any]]:
    """Merge rounds of inserts, updates that change partitions, deletes, and inserts of keys that were deleted.

    Returns:
        The rows that these rounds replaced or deleted.
    """
    alive: dict[int, dict[str, Any]] = {}
    replaced = []
    for number in range(first + rounds):
        start, rows = 1000 * number + 4, []
        for key in range(number % 2, KEYS, 1 + number):
            op = "c" if key not in alive else "d" if (key + number) % 5 == 0 else "u"
            rows.append(Row(op, start + 1 + len(rows), values(key, number)))
            before = alive.pop(key, None)
            replaced += [before] if before and number >= first else []
            if op != "d":
                alive[key] = values(key, number)
        if number >= first:
            changes = dict.fromkeys(tables.values(), rows)
            lake.merge(lake.batches.plan(start + 1000, lake.batches.window(start, start + 1000, changes)))
    return replaced


def compact(lake: Lake, tables: Mapping[str, TableSchema]) -> None:
    """Maintain the tables: small files and files with deleted rows are rewritten."""
    settings = MaintenanceConfig(keep_snapshots_for=timedelta(0), min_small_files=2)
    config = lake.config.model_copy(update={"maintenance": settings})
    names = lake_tables(config, last_cut(lake.store, config.source), [one.name for one in tables.values()])
    done = maintain(lake.spark, config, lake.store, names, lake.said.append)
    assert all(one.rewritten for one in done)
