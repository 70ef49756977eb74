"""Laws of tables' names: one text, one pattern and one marker for each pair."""

from __future__ import annotations

from hypothesis import assume, given
from hypothesis import strategies as st

from cdc_lib.config.patterns import exact_table, is_exact, matches, problem
from cdc_lib.model.lake_table import LakeName, marker_property
from cdc_lib.model.table_name import TableName
from cdc_lib.store.layout import table_folder

PARTS = st.text(alphabet="ab.`*?/, \\$店", min_size=1, max_size=4) | st.text(min_size=1, max_size=8)
NAMES = st.builds(TableName, PARTS, PARTS)


@given(NAMES)
def test_a_text_is_read_back_as_its_pair(name):
    """Alone and among others."""
    assert TableName.parse(str(name)).pair == name.pair
    assert [one.pair for one in TableName.listed(f"{name}, a.b, {name}")] == [name.pair, ("a", "b"), name.pair]


@given(NAMES, NAMES)
def test_two_pairs_have_two_texts_folders_and_markers(one, other):
    """And one pair has one of each."""
    alike = one.pair == other.pair
    assert (str(one) == str(other)) is alike
    assert (one == other) is alike
    assert (table_folder(one) == table_folder(other)) is alike
    assert (marker_property("s", one, routed=True) == marker_property("s", other, routed=True)) is alike


@given(NAMES, NAMES)
def test_the_text_of_a_name_is_a_pattern_of_that_table_alone(one, other):
    """Also with wildcards in it, which backticks take for themselves."""
    assume(one.database.lower() not in {"mysql", "sys"} and str(one) == str(one).strip())
    pattern = str(one)
    assert problem(pattern) is None
    assert is_exact(pattern)
    assert exact_table(pattern) == one
    assert matches(pattern, *one.pair)
    assert matches(pattern, *other.pair) is (one.pair == other.pair)


@given(st.lists(PARTS, min_size=2, max_size=4), st.lists(PARTS, min_size=2, max_size=4))
def test_two_lake_tables_have_two_texts(one, other):
    """Also where their namespaces hold dots."""
    first, second = (LakeName("lake", tuple(parts[:-1]), parts[-1]) for parts in (one, other))
    assert (str(first) == str(second)) is (one == other)
