"""From where on a table may begin again with another definition: decided with values."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cdc_lib.lake.evolution import misfit
from cdc_lib.merge.contribution import kept_fills
from cdc_lib.merge.plan import TableWork
from cdc_lib.merge.redefinition import (
    FROM_THE_START,
    beginning_at,
    emptied_at,
    loses_history,
    obsolete_before,
)
from cdc_lib.model.ddl_effect import AddedDefault
from cdc_lib.model.lake_table import LakeColumn, LakeTable, Marker, PlacedDefault
from cdc_lib.model.position import Point
from cdc_lib.model.table_mode import TableReset
from cdc_lib.model.table_name import TableName
from tests.harness.lake.batches import BIGINT, INT, TEXT, table

NAME = TableName("shop", "orders")
AT = {number: Point(1, 1, number) for number in (100, 200, 300)}
WORK = TableWork(NAME, "mirror", (), Marker())
LAKE = LakeTable((LakeColumn("id", "bigint"),), ("id",), "mirror", Marker(), 7, 3)


@pytest.mark.parametrize(
    ("changes", "emptied", "state", "since"),
    [
        ({}, None, LAKE, None),
        ({"reset_before": AT[100]}, None, LAKE, AT[100]),
        ({"rebuild_before": AT[200]}, None, LAKE, AT[200]),
        ({"reset_before": AT[100], "rebuild_before": AT[200]}, None, LAKE, AT[200]),
        ({}, AT[100], LAKE, AT[100]),
        ({"rebuild_before": AT[200], "kept": (AT[100],)}, None, LAKE, None),
        ({"rebuild_before": AT[200], "kept": (AT[300],)}, None, LAKE, AT[200]),
        ({}, None, replace(LAKE, snapshot_id=None), FROM_THE_START),
        ({}, None, None, FROM_THE_START),
    ],
)
def test_older_rows_count_unless_something_removed_or_replaces_them(changes, emptied, state, since):
    """A statement in this merge or an earlier one, or a snapshot; never rows that the lake kept at a statement."""
    assert obsolete_before(replace(WORK, **changes), Marker(emptied=emptied), state) == since


def test_a_table_is_empty_from_a_statement_to_its_next_row():
    """The marker remembers it, so that the rows may come with a later merge."""
    reset, listed = replace(WORK, reset_before=AT[200]), replace(WORK, resets=(TableReset(*AT[200], None),))
    for work in (reset, listed):
        assert emptied_at(work, Marker(), has_rows=False) == AT[200]
        assert emptied_at(work, Marker(emptied=AT[100]), has_rows=True) is None
    assert emptied_at(WORK, Marker(emptied=AT[100]), has_rows=False) == AT[100]
    assert emptied_at(WORK, Marker(), has_rows=False) is None
    assert Marker.from_json(Marker(emptied=AT[100]).to_json(), NAME).emptied == AT[100]


def test_a_table_that_begins_again_forgets_the_values_of_columns_that_were_added_before():
    """The rows that got them do not stay, and another column may have the name."""
    early, there, late = (PlacedDefault(AT[number], AddedDefault("n", str(number))) for number in (100, 200, 300))
    work = replace(WORK, added_defaults=(early, there, late))
    assert beginning_at(work, AT[200]).added_defaults == (late,)


def test_the_last_default_of_a_name_counts():
    """Another column had the name before. A later epoch that replays its ADD COLUMN leaves earlier ones to their rows."""
    no, seven = PlacedDefault(AT[200], AddedDefault("N", None)), PlacedDefault(AT[100], AddedDefault("n", "7"))
    other, again = (
        PlacedDefault(AT[100], AddedDefault("m", "1")),
        PlacedDefault(AT[300], AddedDefault("n", "7"), since=AT[200]),
    )
    assert list(kept_fills((seven, other, no), (), lambda _: True)) == [(other, "m"), (no, "N")]
    assert list(kept_fills((seven, again), (), lambda _: True)) == [(seven, "n"), (again, "n")]
    assert list(kept_fills((seven, other), (), lambda name: name == "m")) == [(other, "m")]


def test_only_history_that_the_source_file_asks_for_waits_for_a_person():
    """A table without a key is a list of changes for want of a key."""
    assert [loses_history(mode, None) for mode in ("mirror", "append")] == [False, False]
    assert [loses_history(mode, mode) for mode in ("soft_delete", "scd2", "append")] == [True, True, True]


def test_statements_before_the_beginning_are_no_entries_of_the_list():
    resets = tuple(TableReset(*AT[number], None) for number in (100, 200, 300))
    assert beginning_at(replace(WORK, mode="append", resets=resets), AT[200]).resets == resets[1:]


def test_schemas_fit_one_table_or_say_why_not():
    """Also beside the columns that the table has."""
    plain, wider = table("shop.orders", {"id": BIGINT, "v": INT}), table("shop.orders", {"id": BIGINT, "v": BIGINT})
    other = table("shop.orders", {"id": BIGINT, "v": TEXT})
    assert misfit([plain, wider, table("shop.orders", {"id": BIGINT, "w": TEXT})], None) is None
    assert "v is int in the lake and string" in misfit([plain, other], None).message
    assert "primary key changed" in misfit([plain, table("shop.orders", {"id": BIGINT}, key=())], None).message
    assert misfit([plain], None, LAKE) is None
    assert misfit([table("shop.orders", {"id": TEXT})], None, LAKE) is not None
