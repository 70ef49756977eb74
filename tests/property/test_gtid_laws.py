"""Sets of GTIDs against plain sets of (source, number)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdc_lib.errors import ConfigError
from cdc_lib.model.gtid import GtidSet, is_at_or_after
from cdc_lib.plan.locate import last_file_within

ONE, TWO = "3e11fa47-71ca-11e1-9e33-c80aa9429562", "3e11fa47-71ca-11e1-9e33-c80aa9429563"
SOURCES = st.sampled_from([ONE, TWO, f"{ONE}:blue"])
RUNS = st.lists(st.tuples(SOURCES, st.tuples(st.integers(1, 20), st.integers(0, 5)).map(lambda r: (r[0], sum(r)))))
MARIADB = st.dictionaries(st.sampled_from(["0-1", "0-2", "7-1"]), st.integers(1, 20).map(lambda n: ((1, n),)))


def plain(gtids: GtidSet) -> set[tuple[str, int]]:
    return {(source, n) for source, runs in gtids.runs.items() for first, last in runs for n in range(first, last + 1)}


@given(RUNS, RUNS)
def test_sets_of_mysql_are_sets(one, other):
    """Union, difference and what a server lacks, number by number."""
    a, b = GtidSet.of("mysql", one), GtidSet.of("mysql", other)
    assert plain(a.union(b)) == plain(a) | plain(b)
    assert plain(a.minus(b)) == plain(a) - plain(b)
    assert plain(a.lacks(b)) == plain(b) - plain(a)
    assert plain(a.common(b)) == plain(a) & plain(b)
    assert a.count == len(plain(a))
    assert bool(a) == bool(plain(a))


@given(RUNS)
def test_a_set_is_read_as_it_is_written(runs):
    """And one set has one text, whatever order it was made in."""
    made = GtidSet.of("mysql", runs)
    assert GtidSet.parse("mysql", str(made)) == made
    assert str(GtidSet.of("mysql", reversed(runs))) == str(made)


@given(MARIADB, MARIADB)
def test_sets_of_mariadb_reach_back_to_the_first_number(one, other):
    """Their text names the last number of each server in each domain."""
    a, b = GtidSet("mariadb", one), GtidSet("mariadb", other)
    assert GtidSet.parse("mariadb", str(a)) == a
    assert plain(a.union(b)) == plain(a) | plain(b)
    assert plain(a.common(b)) == plain(a) & plain(b)
    assert a.lacks(a).count == 0


def test_a_domain_is_there_when_its_last_transaction_is():
    """A standby that was made from a dump never heard of the servers before."""
    cursor = GtidSet.parse("mariadb", "0-5-20,0-1-100")
    assert not GtidSet.parse("mariadb", "0-1-150").lacks(cursor)
    assert str(GtidSet.parse("mariadb", "0-1-99,0-2-150").lacks(cursor)) == "0-1-100"


def test_a_position_of_a_domain_means_all_servers_before_it():
    """Which is how people name it."""
    state = GtidSet.parse("mariadb", "0-1-50,0-2-120,3-1-9")
    assert str(GtidSet.parse("mariadb", "0-2-100").widened(state)) == "0-1-50,0-2-100"


def _state(servers: list[str], count: int) -> GtidSet:
    """The set of the first transactions of a domain; number ``i`` was written by the server in place ``i - 1``."""
    return GtidSet.of("mariadb", [(f"0-{server}", (1, i)) for i, server in enumerate(servers[:count], 1)])


@given(st.lists(st.sampled_from("1234"), min_size=1, max_size=20), st.data())
def test_a_set_of_a_server_that_took_over_again_is_found_in_its_file(servers, data):
    """Whoever wrote before and after it: no file is passed over that holds a transaction outside the set."""
    read = data.draw(st.integers(1, len(servers)))
    starts = [0, *sorted(data.draw(st.sets(st.integers(0, len(servers)))))]
    exact, executed = _state(servers, read), _state(servers, len(servers))
    numbers = {f"{number}": _state(servers, start) for number, start in enumerate(starts)}
    included = exact.widened(executed)
    begin = starts[int(last_file_within(list(numbers), numbers.__getitem__, included))]
    assert begin == max(start for start in starts if start <= read)
    outside = [i for i, server in enumerate(servers, 1) if i > begin and (f"0-{server}", i) not in plain(included)]
    assert outside == list(range(read + 1, len(servers) + 1))


@pytest.mark.parametrize(
    ("flavor", "text"),
    [("mysql", "0-1-2"), ("mysql", ONE), ("mysql", f"{ONE}:0"), ("mysql", f"{ONE}:5-4"), ("mysql", f"{ONE}:1-"),
     ("mariadb", f"{ONE}:1"), ("mariadb", "0-1"), ("mariadb", "0-4294967296-1"), ("mariadb", "0-1-0")],
)  # fmt: skip
def test_what_is_no_set_is_refused_with_an_example(flavor, text):
    """Instead of being taken for an empty one."""
    with pytest.raises(ConfigError, match="It looks like"):
        GtidSet.parse(flavor, text)


def test_servers_break_long_sets_into_lines():
    """SHOW BINARY LOG STATUS does."""
    assert str(GtidSet.parse("mysql", f"{TWO.upper()}:1-3,\n{ONE}:5:blue:1")) == f"{ONE}:5,{ONE}:blue:1,{TWO}:1-3"


@pytest.mark.parametrize(
    ("gtid", "first", "known"),
    [
        ("0-1-7", "0-2-7", True), ("0-1-8", "0-2-7", True), ("0-1-6", "0-2-7", False), ("1-1-8", "0-1-7", False),
        (f"{ONE}:7", f"{ONE}:7", True), (f"{ONE}:6", f"{ONE}:7", False), (f"{ONE}:9", f"{TWO}:7", False),
        (f"{ONE}:blue:9", f"{ONE}:blue:7", True), (f"{ONE}:blue:9", f"{ONE}:7", False), ("", "0-1-7", False),
        ("0-1-7", "", False), (f"{ONE}:7", "", False),
    ],
)  # fmt: skip
def test_transactions_have_an_order_where_one_number_counts_them(gtid, first, known):
    """A domain of MariaDB over all its servers; a server of MySQL by its own, for each tag."""
    assert is_at_or_after(gtid, first) is known
