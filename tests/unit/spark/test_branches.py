"""Which branches are left over, and how a statement may change a table's number of rows."""

from __future__ import annotations

import pytest

from spark_jobs.iceberg.branches import LEASE, is_left_over, new_branch
from spark_jobs.iceberg.row_delta import FEWER_ROWS, SAME_ROWS, Rows, rows_of

NOW = 1_800_000_000.0


def test_a_branch_is_left_over_after_the_lease_without_a_write():
    """Not a new one on an old snapshot, nor an old one with a new snapshot."""
    name = new_branch(NOW)
    assert not is_left_over(name, NOW - 30 * LEASE, NOW + LEASE)
    assert not is_left_over(name, NOW + 5 * LEASE, NOW + 6 * LEASE)
    assert is_left_over(name, NOW - 30 * LEASE, NOW + LEASE + 1)


@pytest.mark.parametrize("name", ["main", "audit", "cdc_audit", "cdc_12ab34cd_0011223344556677"])
def test_a_branch_of_another_tool_is_never_left_over(name):
    assert not is_left_over(name, 0.0, NOW)


def test_branch_names_are_unique():
    assert len({new_branch(NOW) for _ in range(1000)}) == 1000


@pytest.mark.parametrize(
    ("rows", "before", "after", "allowed"),
    [
        (SAME_ROWS, 5, 5, True),
        (SAME_ROWS, 5, 6, False),
        (FEWER_ROWS, 5, 0, True),
        (FEWER_ROWS, 5, 6, False),
        (Rows(-2, 0), 5, 3, True),
        (Rows(-2, 0), 5, 2, False),
        (Rows(3, 3), 5, 8, True),
        (Rows(3, 3), 5, 7, False),
        (Rows(0, None), 5, 99, True),
        (SAME_ROWS, None, 6, True),
        (SAME_ROWS, 5, None, True),
    ],
)
def test_a_statement_changes_as_many_rows_as_it_may(rows, before, after, allowed):
    assert rows.allows(before, after) is allowed


def test_rows_are_counted_without_rows_deleted_by_vectors():
    """Equality deletes of another tool change no difference, unless files with such rows were removed."""
    assert rows_of({"total-records": "10", "total-position-deletes": "3"}) == 7
    assert rows_of({"total-records": "10"}) == 10
    assert rows_of({"total-records": "10", "total-equality-deletes": "1"}) == 10
    assert rows_of({"total-records": "8", "total-equality-deletes": "1", "deleted-records": "2"}) is None
    assert rows_of({}) is None
