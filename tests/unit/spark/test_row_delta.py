"""How many rows a table has by the summaries of its snapshots, and when another number stops a commit."""

from __future__ import annotations

import pytest

from cdc_lib.errors import MergeError
from spark_jobs.iceberg.row_delta import refuse_other_rows, rows_of


@pytest.mark.parametrize(("expected", "records"), [(5, "5"), (None, "5"), (5, None)])
def test_a_snapshot_with_the_computed_number_of_rows_or_an_unknown_one_is_committed(expected, records):
    refuse_other_rows(expected, {"total-records": records} if records else {}, "shop.orders")


def test_a_snapshot_with_another_number_of_rows_is_not_committed():
    with pytest.raises(MergeError, match="rows: 5 by the merge, 6 in the snapshot"):
        refuse_other_rows(5, {"total-records": "6"}, "shop.orders")


def test_rows_are_counted_without_rows_deleted_by_vectors():
    """Equality deletes of another tool change no difference, unless files with such rows were removed."""
    assert rows_of({"total-records": "10", "total-position-deletes": "3"}) == 7
    assert rows_of({"total-records": "10"}) == 10
    assert rows_of({"total-records": "10", "total-equality-deletes": "1"}) == 10
    assert rows_of({"total-records": "8", "total-equality-deletes": "1", "deleted-records": "2"}) is None
    assert rows_of({}) is None
