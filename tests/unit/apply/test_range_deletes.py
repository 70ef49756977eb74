"""Deletes of rows in a key range: those whose keys lie in it by the source's order, and that a snapshot of it did not have."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
import pytest

from cdc_lib.apply.range_deletes import RangeDeletes
from cdc_lib.apply.rows import LakeShape
from cdc_lib.merge.key_ranges import ReadRange
from cdc_lib.model.manifest import ABSENT, CELL_HERE
from cdc_lib.model.position import Point, Position
from cdc_lib.model.row_selection import RowSelection
from cdc_lib.model.schema import Column, SourceType, TableSchema

AT = datetime(2026, 1, 1, tzinfo=UTC)
LOW = Position("binlog.000001", 500)
ORDER = {"_epoch": pa.int32(), "_binlog": pa.int32(), "_offset": pa.int64(), "_row": pa.int64()}
MOMENTS = [datetime(2026, 1, 1), datetime(2026, 1, 1, 12, 0, 0, 1), datetime(2026, 1, 2)]  # noqa: DTZ001 - as the lake has them
KINDS = {
    "int": (SourceType("int", width=4), pa.int32(), [-7, -1, 0, 3, 2**31 - 1], int),
    "wider in the lake": (SourceType("int", width=4), pa.int64(), [-7, 0, 3, 2**40], int),
    "unsigned": (SourceType("int", width=8, unsigned=True), pa.decimal128(20, 0), [0, 3, 2**64 - 1], int),
    "year": (SourceType("year"), pa.int32(), [0, 1901, 2026], int),
    "decimal": (
        SourceType("decimal", precision=38, scale=2),
        pa.decimal128(38, 2),
        [Decimal("-1.50"), Decimal("-0.01"), Decimal(0), Decimal("1.01"), Decimal("9" * 36 + ".99")],
        Decimal,
    ),
    "double": (SourceType("double"), pa.float64(), [-1.5, 0.0, 0.1, 1e300], float),
    "bytes": (SourceType("bytes"), pa.binary(), [b"", b"\x00", b"\x7f", b"\x80\x01"], bytes.fromhex),
    "date": (
        SourceType("date"),
        pa.date32(),
        [date(1, 1, 1), date(2026, 1, 1), date(9999, 12, 31)],
        date.fromisoformat,
    ),
    "datetime": (SourceType("datetime"), pa.timestamp("us"), MOMENTS, datetime.fromisoformat),
    "timestamp": (
        SourceType("timestamp"),
        pa.timestamp("us", "UTC"),
        [one.replace(tzinfo=UTC) for one in MOMENTS],
        lambda text: datetime.fromisoformat(text).replace(tzinfo=UTC),
    ),
}
ENDS = {
    "int": ["-1", "0", "3", "99999999999999999999", "-99999999999999999999"],
    "wider in the lake": ["-1", "3", str(2**31)],
    "unsigned": ["-1", "3", str(2**64 - 1), str(2**64)],
    "year": ["1901", "2155"],
    "decimal": ["-1.5", "-1.505", "1.0099", "1.01", "1.0101", "9" * 50, "-" + "9" * 50],
    "double": ["0.1", "-1.5", "1e400", "1e-400"],
    "bytes": ["", "00", "7fff", "80"],
    "date": ["2026-01-01", "2026-01-02"],
    "datetime": ["2026-01-01 00:00:00", "2026-01-01 12:00:00"],
    "timestamp": ["2026-01-01 12:00:00.000001", "2026-01-01 12:00:00"],
}


class Held:
    """Rows of a lake table in memory."""

    def __init__(self, rows):
        self.rows = rows
        self.asked = []

    @property
    def fields(self):
        return tuple(self.rows.schema)

    def live(self, names, within, least, most):
        self.asked.append((within, least, most))
        yield self.rows.select(names)


def lake_rows(keys, at=(), **more):
    at = at or [(1, 1, 100, 0)] * len(next(iter(keys.values())))
    order = {name: pa.array([place[i] for place in at], kind) for i, (name, kind) in enumerate(ORDER.items())}
    return pa.table({**keys, "v": pa.nulls(len(at), pa.string()), **order, **more})


def deletes(held, kinds, selection, *, changes=(), in_range=None, kept=None, constants=None, mode="scd2"):
    """Return the keys of the deletes, and the deletes."""
    names = tuple(kinds)
    schema = TableSchema("shop", "orders", tuple(Column(name, kind) for name, kind in kinds.items()), names)
    shape = LakeShape("shop.orders", held.fields, constants or {}, lambda _: True)
    read_range = ReadRange(schema, selection, LOW, 1, AT)
    given = [shape.schema.append(pa.field(ABSENT, pa.string())).empty_table(), *changes]
    made = [*RangeDeletes(read_range, kept, shape, names, held, in_range, mode).among(given)]
    assert made[: len(given)] == given
    assert all(one.schema.names == given[0].schema.names for one in made)
    rows = pa.concat_tables(made[len(given) :]) if len(made) > len(given) else given[0]
    return sorted(zip(*(rows.column(name).to_pylist() for name in names), strict=True)), rows


@pytest.mark.parametrize("mode", ["scd2", "mirror"])
@pytest.mark.parametrize("what", KINDS)
def test_keys_compare_as_at_the_source(what, mode):
    """Also with ends that the lake's column cannot hold."""
    kind, arrow, values, parsed = KINDS[what]
    held = Held(lake_rows({"k": pa.array(values, arrow)}))
    bounds = [(value, parsed(value)) for value in ENDS[what]]
    for low, least in [(None, None), *bounds]:
        for high, most in [(None, None), *bounds]:
            if low is high is None:
                continue
            ends = [None if text is None else (text,) for text in (low, high)]
            found, _ = deletes(held, {"k": kind}, RowSelection(("k",), *ends), mode=mode)
            inside = [one for one in values if (low is None or one >= least) and (high is None or one <= most)]
            assert [key for (key,) in found] == sorted(inside), (low, high)


def test_a_key_of_two_columns_is_compared_column_by_column():
    """An end may name only the first one, and means all keys that begin with it."""
    pairs = [(a, b) for a in (1, 2, 3) for b in (b"", b"\x05", b"\xff")]
    kinds = {"a": SourceType("int", width=4), "b": SourceType("bytes")}
    held = Held(
        lake_rows({"a": pa.array([a for a, _ in pairs], pa.int32()), "b": pa.array([b for _, b in pairs], pa.binary())})
    )
    for lower in (None, ("2",), ("2", "05"), ("0", "05")):
        for upper in (None, ("2",), ("2", "05"), ("3", "06")):
            found, _ = deletes(held, kinds, RowSelection(("a", "b"), lower, upper))
            least, most = (
                None if end is None else (int(end[0]), *(bytes.fromhex(text) for text in end[1:]))
                for end in (lower, upper)
            )
            assert found == [
                pair
                for pair in pairs
                if (least is None or pair[: len(least)] >= least) and (most is None or pair[: len(most)] <= most)
            ], (lower, upper)
    assert held.asked[-1] == ("a", 0, 3)


def test_only_rows_that_the_range_may_lack_are_deleted():
    """Not those of other source tables, newer ones, or ones that an earlier statement left in the lake."""
    at = [(1, 1, 499, 0), (1, 1, 500, -1), (1, 2, 4, 0), (1, 1, 50, 0), (1, 1, 499, 0), (None,) * 4]
    shards = pa.array(["a", "a", "a", "a", "b", "a"])
    held = Held(lake_rows({"k": pa.array(range(6), pa.int64())}, at, shard=shards))
    kinds, selection = {"k": SourceType("int", width=8)}, RowSelection(("k",), ("0",), None)
    found, rows = deletes(held, kinds, selection, kept=Point(1, 1, 60), constants={"shard": "a"})
    assert found == [(0,)]
    [row] = rows.to_pylist()
    assert row == {
        "_op": "d",
        "k": 0,
        "v": None,
        "_epoch": 1,
        "_binlog": 1,
        "_offset": 500,
        "_row": -1,
        "shard": "a",
        ABSENT: None,
    }
    assert deletes(held, kinds, selection, constants={"shard": "a"})[0] == [(0,), (3,), (5,)]


def test_rows_that_the_snapshot_has_are_not_deleted():
    """Another change of the same key does not show that the source had the row when it was read."""
    held = Held(lake_rows({"k": pa.array([1, 2, 3, None], pa.int64())}))
    kinds, selection = {"k": SourceType("int", width=8)}, RowSelection(("k",), None, ("9",))
    shape = LakeShape("shop.orders", held.fields, {}, lambda _: True).schema.append(pa.field(ABSENT, pa.string()))
    changes = pa.Table.from_pylist([{"_op": "r", "k": 1}, {"_op": "r", "k": 7}, {"_op": "u", "k": 2}], shape)
    assert deletes(held, kinds, selection, changes=[changes])[0] == [(2,), (3,)]


def test_the_source_compares_keys_that_the_lake_orders_otherwise():
    """It is asked only for those that no chunk has, and that the columns before them leave."""
    kinds = {"a": SourceType("int", width=4), "b": SourceType("string", width=20, charset="utf8mb4")}
    held = Held(lake_rows({"a": pa.array([1, 2, 2, 2], pa.int32()), "b": pa.array(["x", "x", "y", "Z"])}))
    shape = LakeShape("shop.orders", held.fields, {}, lambda _: True).schema.append(pa.field(ABSENT, pa.string()))
    changes = pa.Table.from_pylist([{"_op": "r", "a": 2, "b": "y"}], shape)
    asked = []

    def in_range(read_range, keys):
        asked.extend(zip(*keys.to_pydict().values(), strict=True))
        return keys.slice(0, 1)

    selection = RowSelection(("a", "b"), ("2", "58"), None)
    found, _ = deletes(held, kinds, selection, changes=[changes], in_range=in_range, mode="mirror")
    assert sorted(asked) == [(2, "Z"), (2, "x")]
    assert found == asked[:1]
    first = RowSelection(("a", "b"), ("2",), None)
    assert deletes(held, kinds, first, changes=[changes])[0] == [(2, "Z"), (2, "x")]


def test_a_row_that_stays_with_a_mark_keeps_its_cells():
    """And one that was deleted before keeps the position of that."""
    marks = pa.array([False, True, None])
    held = Held(lake_rows({"k": pa.array([1, 2, 3], pa.int64())}, _is_deleted=marks))
    kinds, selection = {"k": SourceType("int", width=8)}, RowSelection(("k",), None, ("9",))
    found, rows = deletes(held, kinds, selection, mode="soft_delete")
    assert found == [(1,), (3,)]
    cells = dict(zip(rows.column_names[1:-1], rows.column(ABSENT)[0].as_py(), strict=True))
    assert [name for name, cell in cells.items() if cell != CELL_HERE] == ["v"]
