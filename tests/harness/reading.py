"""Compares what the reading client returns with Spark's own result."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

from cdc_lib.read import Lake as ReadLake
from cdc_lib.read import TableReader
from tests.harness.lake import Lake


def key_order(key: Sequence[Any]) -> tuple[Any, ...]:
    """Order of keys in a scan: text by its UTF-8 bytes."""
    return tuple(part.encode() if isinstance(part, str) else part for part in key)


def spark_rows(lake: Lake, table: str, where: str = "true", at: int | None = None) -> list[dict[str, Any]]:
    """Return rows as Spark reads them; bytes and times as the client has them."""
    version = f" VERSION AS OF {at}" if at is not None else ""
    frame = lake.spark.sql(f"SELECT * FROM {lake.name(table)}{version} WHERE {where}")
    zoned = {one.name for one in frame.schema.fields if one.dataType.typeName() == "timestamp"}
    return [
        {name: _plain(value, zoned=name in zoned) for name, value in row.asDict().items()} for row in frame.collect()
    ]


def _plain(value: Any, *, zoned: bool) -> Any:
    if isinstance(value, bytearray):
        return bytes(value)
    return value.astimezone(UTC) if zoned and isinstance(value, datetime) else value


@contextmanager
def opened(lake: Lake) -> Iterator[ReadLake]:
    """Open the lake for reading by key."""
    with ReadLake.open(lake.config) as found:
        yield found


def assert_reads_as_spark(
    reader: TableReader, rows: Sequence[dict[str, Any]], missing: Sequence[Any] = (), *, deleted: bool = False
) -> None:
    """Compare every get, and scans in both directions, with rows that have different keys.

    Args:
        reader: of the table.
        rows: what Spark reads.
        missing: keys that have no row.
        deleted: whether rows that are marked as deleted are among them.
    """
    by_key = {tuple(row[name] for name in reader.key): row for row in rows}
    assert len(by_key) == len(rows)
    asked = [*by_key, *((one if isinstance(one, tuple) else (one,)) for one in missing)]
    assert {key: reader.get(key, deleted=deleted) for key in asked} == {key: by_key.get(key) for key in asked}
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
