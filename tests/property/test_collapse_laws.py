from __future__ import annotations

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from cdc_lib.apply.rows import last_changes
from cdc_lib.model.lake_table import ORDER

NAMES = ("id", "b", "_op", *ORDER, "v")
# Numbers whose texts compare otherwise than they do, and neighbours.
NUMBERS = st.sampled_from([1, 2, 9, 10, 11, 99, 100, 23, 123])


@st.composite
def changes(draw):
    """Distinct order keys for each key, as a binlog has them."""
    keys = st.tuples(st.integers(0, 2), st.sampled_from(["a", "A", ""]))
    orders = st.tuples(NUMBERS, NUMBERS, NUMBERS, st.integers(-1, 12))
    placed = draw(st.lists(st.tuples(keys, orders), unique=True, min_size=1, max_size=30))
    ops = draw(st.lists(st.sampled_from("cudr"), min_size=len(placed), max_size=len(placed)))
    return [(*key, op, *order, i) for i, ((key, order), op) in enumerate(zip(placed, ops, strict=True))]


def collapse(rows):
    relation = pa.Table.from_arrays([pa.array(column) for column in zip(*rows, strict=True)], names=list(NAMES))
    return sorted(tuple(row.values()) for row in last_changes(relation, ("id", "b"), begins=False).to_pylist())


@given(changes())
def test_the_last_change_of_each_key_wins_by_number_and_not_by_text(rows):
    """An oracle that compares tuples of numbers finds the same rows."""
    last = {}
    for row in rows:
        key, order = row[:2], row[3:7]
        if key not in last or order > last[key][3:7]:
            last[key] = row
    assert collapse(rows) == sorted(last.values())


@given(changes(), st.randoms())
def test_the_order_in_which_changes_arrive_does_not_matter(rows, random):
    """Files are read in parallel, so rows come in any order."""
    shuffled = list(rows)
    random.shuffle(shuffled)
    assert collapse(shuffled) == collapse(rows)


@given(changes(), st.integers(0, 30))
def test_collapsing_a_part_first_changes_nothing(rows, cut):
    """So batches may be merged together or one after the other."""
    head = collapse(rows[:cut]) if rows[:cut] else []
    assert collapse([*head, *rows[cut:]]) == collapse(rows)


def test_a_row_that_gets_a_key_freed_by_the_same_event_is_kept():
    """A delete and an upsert of one key can have the same order key; the row exists afterwards."""
    rows = [(1, "a", "d", 1, 1, 10, 0, 0), (1, "a", "u", 1, 1, 10, 0, 1)]
    assert collapse(rows) == [rows[1]]
    assert collapse(rows[::-1]) == [rows[1]]
