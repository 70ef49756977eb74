"""When the numbers of deleted and appended rows suffice, and what the counted rows of a merge's keys show."""

from __future__ import annotations

import pytest

from spark_jobs.iceberg.key_check import fault, settled
from spark_jobs.iceberg.key_filter import KeyRange

TEN_KEYS = KeyRange(rows=10, upserts=8, inserts=3, relation="", conditions=())


@pytest.mark.parametrize(
    ("deleted", "enough"),
    [(10, True), (7, True), (0, False), (6, False), (8, False), (None, False)],
)
def test_deletes_are_certain_if_all_keys_were_found_or_all_that_are_not_inserted(deleted, enough):
    assert settled(TEN_KEYS, deleted) is enough


def test_deletes_that_found_nothing_are_certain_only_if_all_keys_are_inserted():
    assert settled(KeyRange(3, 3, 3, "", ()), 0)
    assert not settled(KeyRange(3, 3, 2, "", ()), 0)


def test_each_key_that_is_not_deleted_has_one_row():
    assert fault(TEN_KEYS, 8, 8, 0, one_each=True) == ""
    assert fault(TEN_KEYS, 8, 9, 0, one_each=True) == "9 rows for 8 changed keys"
    assert fault(TEN_KEYS, 8, 9, 0, one_each=False) == ""
    assert fault(TEN_KEYS, 8, 8, 2, one_each=False) == "still there: 2 replaced rows of 10 changed keys"
