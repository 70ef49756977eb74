from __future__ import annotations

from random import Random

from hypothesis import given
from hypothesis import strategies as st

from cdc_lib.verify.changed.keys import chosen_files, chosen_keys

sizes = st.lists(st.integers(0, 50), max_size=20)


@given(sizes, st.integers(1, 200), st.integers())
def test_files_are_read_until_enough_rows_are_among_them(rows, most, seed):
    """All of them if that is no more; else no file more than is needed."""
    chosen = chosen_files(rows, Random(seed), most)
    assert chosen == sorted(set(chosen))
    read = [rows[number] for number in chosen]
    if sum(rows) <= most:
        assert chosen == list(range(len(rows)))
    else:
        assert sum(read) >= most
        assert sum(read) - max(read) < most
        assert chosen == chosen_files(rows, Random(seed), most)


@given(st.integers(0, 500), st.integers(1, 50), st.integers())
def test_at_most_so_many_keys_are_compared(count, most, seed):
    """All of them if there are no more."""
    chosen = chosen_keys(count, most, Random(seed))
    assert len(chosen) == len(set(chosen)) == min(count, most)
    assert set(chosen) <= set(range(count))
    assert chosen == sorted(chosen) == chosen_keys(count, most, Random(seed))


def test_every_key_and_every_file_is_chosen_at_some_time():
    """The seed of each merge is another one."""
    assert set().union(*(chosen_keys(30, 3, Random(seed)) for seed in range(200))) == set(range(30))
    assert set().union(*(chosen_files([10] * 9, Random(seed), 20) for seed in range(200))) == set(range(9))
