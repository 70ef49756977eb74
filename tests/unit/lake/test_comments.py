"""Which comments of a lake table follow the source."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from cdc_lib.lake.comments import CommentChange, carried_comments, comment_change
from cdc_lib.model.comments import TableComments
from cdc_lib.model.lake_table import LakeColumn, LakeTable, Marker
from cdc_lib.model.table_name import TableName

NAME = TableName("shop", "orders")
COLUMNS = ("id", "Total", "note")
TEXTS = st.sampled_from(("", "a", "b"))
COMMENTS = st.builds(
    lambda comment, texts: TableComments(NAME, comment, {name: text for name, text in texts.items() if text}),
    TEXTS,
    st.dictionaries(st.sampled_from(("id", "total", "later")), TEXTS),
)


def lake(carried=None):
    columns = tuple(LakeColumn(name, "int") for name in COLUMNS)
    return LakeTable(columns, ("id",), "mirror", Marker(), None, 0, comments=carried or {})


def test_a_comment_that_was_removed_at_the_source_is_removed_only_if_it_came_from_there():
    docs = {"id": "from the source", "Total": "by hand", "note": "changed by hand"}
    state = lake({"id": "from the source", "note": "from the source", "": "t"})
    change = comment_change(state, docs, "t", [TableComments(NAME)], shared=False)
    assert change == CommentChange({"id": None}, "", "{}")


def test_a_column_that_the_lake_does_not_have_yet_is_remembered():
    change = comment_change(lake(), {}, "", [TableComments(NAME, "", {"later": "x"})], shared=False)
    assert change is not None
    assert (change.columns, change.table, json.loads(change.carried)) == ({}, None, {"later": "x"})


def test_a_property_that_is_not_this_library_s_counts_as_none():
    assert [carried_comments(text) for text in (None, "{", "[1]", '{"a": "b"}')] == [{}, {}, {}, {"a": "b"}]


@given(st.lists(COMMENTS, min_size=1, max_size=3), st.booleans(), st.dictionaries(st.sampled_from(COLUMNS), TEXTS))
def test_the_same_comments_again_change_nothing(wanted, shared, docs):
    """A repeated merge commits nothing; and what the source says is in the lake, unless tables share it."""
    docs, comment, state = {name: text for name, text in docs.items() if text}, "", lake()
    change = comment_change(state, docs, comment, wanted, shared=shared)
    if change is not None:
        docs = {name: text for name, text in (docs | dict(change.columns)).items() if text}
        comment = comment if change.table is None else change.table
        state = lake(carried_comments(change.carried))
    assert comment_change(state, docs, comment, wanted, shared=shared) is None
    if not shared:
        have = {name.lower(): text for name, text in docs.items()}
        assert all(have[name] == text for name, text in wanted[-1].columns.items() if name != "later")
        assert comment == wanted[-1].comment
