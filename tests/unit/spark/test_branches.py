"""Whose branch is left over, and which change of a table's rows a statement may make."""

from __future__ import annotations

import pytest

from spark_jobs.iceberg.branches import LEASE, is_left_over, new_branch
from spark_jobs.iceberg.row_delta import FEWER_ROWS, SAME_ROWS, Rows, rows_of

NOW = 1_800_000_000.0


def test_a_branch_is_left_over_when_nothing_was_written_on_it_for_the_lease():
    """Neither when it was just made on an old snapshot, nor when it is old and was just written."""
    name = new_branch(NOW)
    assert not is_left_over(name, NOW - 30 * LEASE, NOW + LEASE)
    assert not is_left_over(name, NOW + 5 * LEASE, NOW + 6 * LEASE)
    assert is_left_over(name, NOW - 30 * LEASE, NOW + LEASE + 1)


@pytest.mark.parametrize("name", ["main", "audit", "cdc_audit", "cdc_12ab34cd_0011223344556677"])
def test_a_branch_of_somebody_else_is_never_left_over(name):
    assert not is_left_over(name, 0.0, NOW)


def test_no_two_jobs_have_one_branch():
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


def test_rows_are_those_of_files_without_those_that_vectors_delete():
    """Where rows are deleted by value nobody knows how many that are."""
    assert rows_of({"total-records": "10", "total-position-deletes": "3"}) == 7
    assert rows_of({"total-records": "10"}) == 10
    assert rows_of({"total-records": "10", "total-equality-deletes": "1"}) is None
    assert rows_of({}) is None
