"""Compares what the reading client returns with Spark's own result."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

from pyspark.sql import DataFrame

from cdc_lib.model.lake_table import ORDER
from cdc_lib.read import Lake as ReadLake
from cdc_lib.read import TableReader
from cdc_lib.read.kept_versions import CHANGED
from tests.harness.lake.running import Lake

_UTC = ZoneInfo("UTC")
"""As Arrow has it: texts of equal rows are equal."""


def key_order(key: Sequence[Any]) -> tuple[Any, ...]:
    """Order of keys in a scan: text by its UTF-8 bytes."""
    return tuple(part.encode() if isinstance(part, str) else part for part in key)


def spark_rows(lake: Lake, table: str, where: str = "true", at: int | None = None) -> list[dict[str, Any]]:
    """Return rows as Spark reads them; bytes and times as the client has them."""
    version = f" VERSION AS OF {at}" if at is not None else ""
    return collected(lake.spark.sql(f"SELECT * FROM {lake.name(table)}{version} WHERE {where}"))


def collected(frame: DataFrame) -> list[dict[str, Any]]:
    """Return the rows of a frame; bytes and times as the client has them."""
    zoned = {one.name for one in frame.schema.fields if one.dataType.typeName() == "timestamp"}
    return [
        {name: _plain(value, zoned=name in zoned) for name, value in row.asDict().items()} for row in frame.collect()
    ]


def assert_table_reads_as_spark(reader: TableReader, rows: Sequence[dict[str, Any]], has_key: bool, gets: int) -> None:
    """Compare the reads that the mode of a table has with all its rows.

    Args:
        reader: of the table.
        rows: all that Spark reads.
        has_key: whether the table has a key.
        gets: how many rows are read one by one.
    """
    found, expected = Counter(map(repr, reader.rows().read_all().to_pylist())), Counter(map(repr, rows))
    assert found == expected, (
        f"{reader.pinned.name}: read {list(found - expected)[:3]}, Spark {list(expected - found)[:3]}"
    )
    if not has_key:
        return
    if reader.mode == "append":
        found = reader.scan().read_all().to_pylist()
        assert found == sorted(rows, key=lambda row: (key_order(_of(row, reader.key)), _of(row, ORDER)))
        return
    hidden = {"soft_delete": lambda row: row["_is_deleted"], "scd2": lambda row: not row["_is_current"]}
    hides = hidden.get(reader.mode, lambda _: False)
    missing = {_of(row, reader.key) for row in rows} - {_of(row, reader.key) for row in rows if not hides(row)}
    assert_reads_as_spark(reader, [row for row in rows if not hides(row)], sorted(missing, key=key_order), gets=gets)
    if reader.mode == "soft_delete":
        assert_reads_as_spark(reader, rows, deleted=True, gets=gets)
    if reader.mode == "scd2":
        for key in sorted({_of(row, reader.key) for row in rows}, key=key_order)[:gets]:
            versions = [row for row in rows if _of(row, reader.key) == key]
            found = reader.versions(key).drop_columns([CHANGED]).to_pylist()
            assert found == sorted(versions, key=lambda row: _of(row, ORDER), reverse=True)


def _of(row: dict[str, Any], names: Sequence[str]) -> tuple[Any, ...]:
    return tuple(row[name] for name in names)


def _plain(value: Any, *, zoned: bool) -> Any:
    if isinstance(value, bytearray):
        return bytes(value)
    return value.astimezone(_UTC) if zoned and isinstance(value, datetime) else value


@contextmanager
def opened(lake: Lake) -> Iterator[ReadLake]:
    """Open the lake for reading by key."""
    with ReadLake.open(lake.config) as found:
        yield found


def assert_reads_as_spark(
    reader: TableReader,
    rows: Sequence[dict[str, Any]],
    missing: Sequence[Any] = (),
    *,
    deleted: bool = False,
    gets: int | None = None,
) -> None:
    """Compare every get, and scans in both directions, with rows that have different keys.

    Args:
        reader: of the table.
        rows: what Spark reads.
        missing: keys that have no row.
        deleted: whether rows that are marked as deleted are among them.
        gets: how many rows are read one by one; None for all.
    """
    by_key = {tuple(row[name] for name in reader.key): row for row in rows}
    assert len(by_key) == len(rows)
    asked = [*by_key, *((one if isinstance(one, tuple) else (one,)) for one in missing)]
    singly = asked[:: max(1, len(asked) // gets)] if gets else asked
    assert {key: reader.get(key, deleted=deleted) for key in singly} == {key: by_key.get(key) for key in singly}
    many = reader.multi_get(asked[::-1], deleted=deleted).to_pylist()
    assert [row.pop("_found") for row in many] == [key in by_key for key in asked[::-1]]
    assert [row for row, key in zip(many, asked[::-1], strict=True) if key in by_key] == list(by_key.values())[::-1]
    keys = sorted(by_key, key=key_order)
    for reverse in (False, True):
        expected = [by_key[key] for key in (keys[::-1] if reverse else keys)]
        assert reader.scan(reverse=reverse, deleted=deleted).read_all().to_pylist() == expected
        middle = keys[len(keys) // 4 : len(keys) // 2]
        if middle:
            found = reader.scan(middle[0], middle[-1], reader.key, include_stop=True, reverse=reverse, deleted=deleted)
            read = [tuple(row.values()) for row in found.read_all().to_pylist()]
            assert read == (middle[::-1] if reverse else middle)
