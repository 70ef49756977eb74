"""What several tasks or threads touched of one file is one list of rows."""

from __future__ import annotations

import numpy as np
import pytest

from cdc_lib.apply.stored_files import DeadRows, StoredFile
from cdc_lib.apply.table_part import DeletesOf
from cdc_lib.apply.tasks import TouchedFile, joined

NONE = np.array([], dtype=np.int64)
FILE = StoredFile("a.parquet", 1, 9, ())


def of_task(settled, positions):
    return TouchedFile("a.parquet", settled, positions)


def of_thread(settled, positions):
    return DeletesOf(FILE, DeadRows(NONE, NONE, NONE), settled, positions)


@pytest.mark.parametrize("make", [of_task, of_thread])
def test_rows_that_both_touched_count_once_and_in_order(make):
    one, other = make(np.array([1, 5]), np.array([5])), make(np.array([0, 5]), np.array([2, 5]))
    both = joined(one, other)
    assert type(both) is type(one)
    assert (both.settled.tolist(), both.positions.tolist()) == ([0, 1, 5], [2, 5])
    assert joined(one, None) is one
