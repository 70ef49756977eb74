"""Scans of the rows that a condition selects."""

from __future__ import annotations

import pytest
from pyiceberg.types import IntegerType, LongType, StringType

from cdc_lib.errors import ConfigError
from cdc_lib.read.where import scan_where
from tests.harness.lake.hand_made_table import HandMadeTable

ROWS = [{"id": n, "Total": n * 10 if n % 5 else None, "state": "odd" if n % 2 else "even"} for n in range(100)]


@pytest.fixture
def reader(tmp_path):
    """A table of ten row groups, in two files."""
    made = HandMadeTable(tmp_path, {"id": LongType(), "Total": IntegerType(), "state": StringType()}, ("id",))
    made.add(ROWS[50:], 10)
    made.add(ROWS[:50], 10)
    return made.reader()


@pytest.mark.parametrize(
    ("where", "kept"),
    [
        ("total > 300", lambda row: (row["Total"] or 0) > 300),
        ("state = 'odd' AND id < 30", lambda row: row["state"] == "odd" and row["id"] < 30),
        ("Total IS NULL OR id IN (1, 2)", lambda row: row["Total"] is None or row["id"] in (1, 2)),
        ("NOT (total > 300)", lambda row: row["Total"] is not None and row["Total"] <= 300),
        ("state LIKE 'e%'", lambda row: row["state"] == "even"),
        ("id < 0", lambda row: row["id"] < 0),
    ],
)
def test_rows_that_meet_a_condition_come_in_key_order(reader, where, kept):
    """In both directions, with a limit, and with columns that the condition does not name. NULL selects no row."""
    expected = [row for row in ROWS if kept(row)]
    assert scan_where(reader, where).read_all().to_pylist() == expected
    assert scan_where(reader, where, reverse=True).read_all().to_pylist() == expected[::-1]
    ids = scan_where(reader, where, 10, 60, ["id"], limit=7).read_all().to_pylist()
    assert ids == [{"id": row["id"]} for row in expected if 10 <= row["id"] < 60][:7]


@pytest.mark.parametrize(
    ("where", "message"),
    [
        ("price > 5", "there is no column price"),
        ("id = 1; DROP TABLE rows", "it is more than one predicate"),
        ("id IN (SELECT 1)", "it asks another table"),
        ("id = (", "it is not one predicate of DuckDB's SQL"),
        ("nothing(id)", "nothing"),
        ("id = 1) OR (true", "cannot be used"),
        ("columns(*) = 1", "it names all columns at once"),
    ],
)
def test_what_is_no_condition_is_refused_before_rows_are_read(reader, where, message):
    """By what is wrong with it."""
    with pytest.raises(ConfigError, match="the condition of the scan cannot be used") as caught:
        scan_where(reader, where)
    assert message in str(caught.value)
