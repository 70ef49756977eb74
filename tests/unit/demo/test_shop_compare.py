"""The judge of the demo and the end-to-end tests must find what is planted, and nothing else."""

from __future__ import annotations

from decimal import Decimal

import pyarrow as pa
import pytest

from demo.shop.compare import TableComparison, compare
from demo.shop.source_rows import SourceColumn, SourceTable, _array, _column

ID = pa.decimal128(20, 0)
COLUMNS = (SourceColumn("id", "`id`", ID), SourceColumn("name", "`name`", pa.string()))


def _source(rows: list[tuple[int, str | None]], key: tuple[str, ...] = ("id",)) -> SourceTable:
    arrays = [pa.array([Decimal(k) for k, _ in rows], ID), pa.array([v for _, v in rows], pa.string())]
    return SourceTable("t", key, COLUMNS, pa.table(arrays, names=["id", "name"]))


def _lake(rows: list[tuple[int, str | None]], ops: list[str] | None = None) -> pa.Table:
    columns = {
        "id": pa.array([Decimal(k) for k, _ in rows], ID),
        "name": pa.array([v for _, v in rows], pa.large_string()),
        "_epoch": pa.array([1] * len(rows), pa.int32()),
    }
    return pa.table({**columns, "_op": pa.array(ops)} if ops else columns)


ROWS = [(1, "a"), (2**64 - 1, None), (3, "🚲")]


def test_equal_tables_have_no_differences() -> None:
    """Order of rows, wide string types and the product's own columns are no difference."""
    assert compare(_source(ROWS), _lake(ROWS[::-1])) == TableComparison("t", 3, 3)


@pytest.mark.parametrize(
    ("rows", "missing", "extra", "different"),
    [
        (ROWS[1:], 1, 0, 0),
        ([*ROWS, (9, "z")], 0, 1, 0),
        ([(1, "A"), *ROWS[1:]], 0, 0, 1),
        ([(1, None), *ROWS[1:]], 0, 0, 1),
        ([(1, "a"), (2**64 - 1, ""), ROWS[2]], 0, 0, 1),
        ([(1, "a "), *ROWS[1:]], 0, 0, 1),
        ([*ROWS, ROWS[0]], 0, 1, 0),
    ],
)
def test_each_planted_difference_is_counted(
    rows: list[tuple[int, str]], missing: int, extra: int, different: int
) -> None:
    """A lost row, a row too many, another value, null for a value and a value for null, and a doubled row."""
    found = compare(_source(ROWS), _lake(rows))
    assert (found.missing, found.extra, found.different) == (missing, extra, different)
    assert found.differences == 1
    assert len(found.examples) == 1


def test_a_wrong_type_is_a_difference_of_its_own() -> None:
    """A lake that holds unsigned keys as signed integers is wrong even where the values happen to fit."""
    lake = pa.table({"id": pa.array([1], pa.int64()), "name": ["a"]})
    found = compare(_source([(1, "a")]), lake)
    assert found.missing == 1
    assert "id is int64, not decimal128(20, 0)" in found.wrong_columns


def test_a_missing_and_a_surplus_column_are_differences() -> None:
    """The columns are judged before the rows."""
    lake = pa.table({"id": pa.array([Decimal(1)], ID), "nickname": ["a"]})
    assert compare(_source([(1, "a")]), lake).wrong_columns == ("nickname is too many", "name is missing")


def test_a_table_without_a_key_is_compared_as_a_multiset() -> None:
    """What was inserted less what was deleted is what is there."""
    rows = [(1, "a"), (1, "a"), (2, None), (3, "gone"), (3, "gone")]
    lake = _lake(rows, ["r", "c", "u", "c", "d"])
    assert compare(_source([(1, "a"), (1, "a"), (2, None)], ()), lake) == TableComparison("t", 3, 3)


def test_copies_in_a_table_without_a_key_are_counted() -> None:
    """One copy too few and one row too many."""
    found = compare(_source([(1, "a"), (1, "a")], ()), _lake([(1, "a"), (2, "b")], ["c", "c"]))
    assert (found.missing, found.extra) == (1, 1)


def test_floats_are_compared_by_their_exact_value() -> None:
    """The server's text of a FLOAT is rounded; its double is not."""
    column = _column("x", "float", "float", "12", "None")
    assert column.select == "`x`+0e0"
    assert _array(column, ("0.10000000149011612", None)).to_pylist() == [pytest.approx(0.1, rel=1e-7), None]


def test_a_zero_date_is_expected_as_null() -> None:
    """No date type of a lake holds it."""
    column = _column("x", "datetime", "datetime(6)", "None", "None")
    values = _array(column, ("0000-00-00 00:00:00.000000", "2026-01-02 03:04:05.000006"))
    assert [str(value) for value in values] == ["None", "2026-01-02 03:04:05.000006"]


@pytest.mark.parametrize(
    ("data_type", "column_type", "precision", "scale", "expected"),
    [
        ("bigint", "bigint(20) unsigned", "20", "0", pa.decimal128(20, 0)),
        ("bigint", "bigint", "19", "0", pa.int64()),
        ("int", "int unsigned", "10", "0", pa.int64()),
        ("int", "int(11)", "10", "0", pa.int32()),
        ("mediumint", "mediumint unsigned", "7", "0", pa.int32()),
        ("decimal", "decimal(14,2)", "14", "2", pa.decimal128(14, 2)),
        ("bit", "bit(12)", "12", "None", pa.int64()),
        ("bit", "bit(64)", "64", "None", pa.decimal128(20, 0)),
        ("json", "json", "None", "None", pa.string()),
        ("timestamp", "timestamp(3)", "None", "None", pa.timestamp("us", "UTC")),
        ("datetime", "datetime(6)", "None", "None", pa.timestamp("us")),
        ("year", "year", "None", "None", pa.int32()),
    ],
)
def test_the_judge_expects_the_lake_type(
    data_type: str, column_type: str, precision: str, scale: str, expected: pa.DataType
) -> None:
    """Its expectations come from the server's catalogue alone."""
    assert _column("x", data_type, column_type, precision, scale).type == expected
