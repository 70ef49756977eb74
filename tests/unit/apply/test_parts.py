"""Changes are split into parts that have all changes of their keys."""

from __future__ import annotations

import random
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pytest

from cdc_lib.apply import parts

KINDS = {
    "bigint": (pa.int64(), lambda n: (n - 400) << 40),
    "int": (pa.int32(), lambda n: n - 400),
    "bool": (pa.bool_(), lambda n: n % 2 == 0),
    "date": (pa.date32(), lambda n: date(1969, 1, 1) + timedelta(days=n)),
    "time": (pa.timestamp("us", "UTC"), lambda n: datetime(1969, 1, 1, tzinfo=UTC) + timedelta(seconds=n)),
    "decimal": (pa.decimal128(38, 2), lambda n: Decimal(n - 400) / 4),
    "text": (pa.string(), lambda n: f"é{n % 97}-{n}"),
    "bytes": (pa.binary(), lambda n: bytes([n % 251, n // 251])),
}


@pytest.fixture(autouse=True)
def small(monkeypatch):
    monkeypatch.setattr(parts, "PART_BYTES", 2_000)
    monkeypatch.setattr(parts, "_STRIDE", 3)


def tables(keys, of):
    """Return changes of keys in tables of some rows, numbered in order."""
    rows = pa.table({"k": pa.array(keys, of), "n": range(len(keys))})
    return [rows.slice(0, 0), *(rows.slice(start, 61) for start in range(0, len(keys), 61))]


def split(given, key, tmp_path):
    with parts.parts_of(given, key, str(tmp_path)) as found:
        read = [each() for each in found]
    assert list(tmp_path.iterdir()) == []
    return read


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("order", ["ascending", "in no order"])
def test_each_key_is_in_one_part_with_its_changes_in_order(kind, order, tmp_path):
    of, value = KINDS[kind]
    numbers = random.Random(kind).choices(range(800), k=2_000)
    keys = [value(number) for number in (sorted(numbers) if order == "ascending" else numbers)]
    found = split(tables(keys, of), ["k"], tmp_path)
    assert len(found) > 1
    values = pa.array(keys, of).to_pylist()
    assert sorted(row["n"] for part in found for row in part.to_pylist()) == list(range(2_000))
    assert all(row["k"] == values[row["n"]] for part in found for row in part.to_pylist())
    assert all(sorted(part.column("n").to_pylist()) == part.column("n").to_pylist() for part in found)
    if kind not in ("text", "bool"):  # Python compares text by code points
        assert all(max(one.column("k").to_pylist()) < min(two.column("k").to_pylist()) for one, two in pairwise(found))
    if kind != "bool":
        assert max(part.nbytes for part in found) < 3 * parts.PART_BYTES
    in_parts = [set(part.column("k").to_pylist()) for part in found]
    assert sum(map(len, in_parts)) == len(set(values))


def test_the_column_of_the_key_that_splits_best_is_taken(tmp_path):
    """Keys that begin with one of two tenants."""
    rows = pa.table({"tenant": [number % 2 for number in range(2_000)], "k": range(2_000), "n": range(2_000)})
    found = split([rows], ["tenant", "k"], tmp_path)
    assert max(part.nbytes for part in found) < 2 * parts.PART_BYTES


def test_changes_of_very_few_keys_are_large_parts(tmp_path):
    """No part can have less than the changes of one key; a row without a key is in one as well."""
    found = split(tables([7] * 900 + [None] * 30 + [9] * 900, pa.int64()), ["k"], tmp_path)
    assert sorted(map(len, found)) == [30, 900, 900]


def test_rows_without_a_key_stay_in_order(tmp_path):
    found = split(tables(range(2_000), pa.int64()), (), tmp_path)
    assert len(found) > 10
    assert [n for part in found for n in part.column("n").to_pylist()] == list(range(2_000))


def test_few_changes_need_no_file(tmp_path):
    [part] = split(tables(range(100), pa.int64()), ["k"], tmp_path)
    assert part.column("n").to_pylist() == list(range(100))
    [empty] = split(tables([], pa.int64()), ["k"], tmp_path)
    assert empty.num_rows == 0


def test_no_file_has_a_name(tmp_path):
    """That a killed merge would leave."""
    with parts.parts_of(tables(range(900), pa.int64()), ["k"], str(tmp_path)) as found:
        assert len(found) > 1
        assert list(tmp_path.iterdir()) == []


def test_a_failed_merge_closes_its_files(tmp_path):
    """Their room is free again."""
    opened = len([*Path("/proc/self/fd").iterdir()])

    def broken():
        yield from tables(range(900), pa.int64())
        raise OSError("no more")

    with pytest.raises(OSError, match="no more"), parts.parts_of(broken(), ["k"], str(tmp_path)):
        pass
    with pytest.raises(ValueError, match="stop"), parts.parts_of(tables(range(900), pa.int64()), ["k"], str(tmp_path)):
        raise ValueError("stop")
    assert len([*Path("/proc/self/fd").iterdir()]) == opened
