"""Whether a lake table still holds what the last cut left, from its markers, sequence numbers and columns."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from cdc_lib.merge.foreign_changes import fault_of, foreign_commits, foreign_table, refuse
from cdc_lib.model.column_rename import ColumnRename
from cdc_lib.model.foreign import LakeCommit, LakeField, Past
from cdc_lib.model.lake_table import LakeTable, Marker, TableFingerprint
from cdc_lib.model.merge_plan import TableCut
from cdc_lib.model.position import Point

NOW = datetime(2026, 11, 21, tzinfo=UTC)
TABLE, LIFE = "shop.orders", "aa"
FIELDS = (LakeField(1, "id", "int"), LakeField(2, "v", "string"))
CUT = TableCut(TABLE, "lake.shop.orders", 70, 0, fingerprint=TableFingerprint("u", 0, 7, Point(1, 2, 500)))


def lake(*, merged=(1, 2, 500), sequence=7, source_uuid=LIFE, **changed):
    """The lake table as the cut left it, but for what is given."""
    marker = Marker(Point(*merged), source_uuid=source_uuid) if merged else Marker()
    sequences = {TABLE: sequence} if merged else {}
    found = LakeTable(
        (), ("id",), "mirror", marker, 70, 10, {TABLE: marker}, uuid="u", sequences=sequences, last_sequence=20
    )
    return replace(found, **changed)


def past(*fields):
    return Past((), tuple(fields), FIELDS)


def what(found, history=None):
    fault = fault_of(CUT, found, history, LIFE)
    return fault.what if fault is not None else None


@pytest.mark.parametrize(
    "found",
    [
        lake(),
        lake(merged=(1, 3, 4), sequence=9, snapshot_id=71),
        lake(sequence=8, snapshot_id=72),
        lake(uuid="other", merged=(1, 2, 500), sequence=1),
        lake(sequence=5, last_sequence=5),
    ],
    ids=["untouched", "merged on by a killed merge", "repaired", "made again by a backfill", "back from a backup"],
)
def test_a_table_with_a_marker_as_new_as_the_cut_holds_everything(found):
    """Also if the snapshots in between were expired."""
    assert what(found) is None


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (None, "does not exist any more"),
        (lake(merged=None), "was replaced"),
        (lake(merged=None, records=0), "rolled back to before its first merge"),
        (lake(merged=None, uuid="other"), "another table"),
        (lake(source_uuid="bb"), "with another id or name"),
        (lake(sequence=6), "was rolled back"),
        (lake(merged=(1, 2, 400), sequence=9), "was rolled back"),
        (lake(uuid="other", merged=(1, 2, 400)), "was rolled back"),
    ],
)
def test_missing_changes_are_reported(found, words):
    """A marker of an older commit is not enough, nor one that a repair repeated after a rollback."""
    assert words in str(what(found))


def test_a_table_that_its_source_dropped_may_be_dropped_in_the_lake():
    """A table that the source creates again begins empty."""
    assert fault_of(replace(CUT, dropped=Point(1, 2, 400)), None, None, LIFE) is None


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        (FIELDS, None),
        ((*FIELDS, LakeField(3, "more", "string")), None),
        ((LakeField(1, "id", "bigint"), FIELDS[1]), None),
        (FIELDS[:1], "column v was dropped"),
        ((FIELDS[0], LakeField(3, "v", "string")), "column v was dropped"),
        ((FIELDS[0], LakeField(2, "w", "string")), "column v was renamed to w"),
        ((LakeField(1, "id", "string"), FIELDS[1]), "column id was int and is string"),
    ],
)
def test_columns_are_compared_by_field_id(fields, words):
    """A column that was dropped and created again has another one; wider types and more columns lose nothing."""
    said = what(lake(schema_id=1), past(*fields))
    assert (said is None) if words is None else words in said


def test_a_rename_by_a_merge_is_no_foreign_change():
    """It is among the table's recorded renames."""
    renamed = ColumnRename(TABLE, Point(1, 2, 450), (("v", "w"),))
    assert what(lake(schema_id=1, renames=(renamed,)), past(FIELDS[0], LakeField(2, "w", "string"))) is None


def test_a_column_that_a_merge_dropped_is_no_foreign_change():
    """Others that are missing are."""
    assert what(lake(schema_id=1, dropped_fields=frozenset([2])), past(*FIELDS[:1])) is None
    assert "column v was dropped" in what(lake(schema_id=1, dropped_fields=frozenset([3])), past(*FIELDS[:1]))


def commit(number, *, operation="append", marked=False, added=1, deleted=0):
    return LakeCommit(number, operation, marked, NOW, added, deleted)


def test_only_commits_of_other_writers_that_changed_rows_are_foreign():
    """Each commit of a merge is marked: one right before it, of the same Spark too, is a stranger's."""
    history = (
        commit(9, operation="replace", added=5, deleted=5),
        commit(8, marked=True),
        commit(7, operation="delete", added=0, deleted=3),
        commit(5),
        commit(4, marked=True),
        commit(3),
        commit(2, added=0),
    )
    assert [one.snapshot_id for one in foreign_commits(Past(history, (), None))] == [3, 5, 7]


def test_a_table_with_rows_that_no_merge_wrote_is_foreign():
    """An empty one may be left by a killed merge."""
    assert foreign_table(lake(merged=None)) is not None
    assert foreign_table(None) is None
    assert foreign_table(lake(merged=None, records=0)) is None
    assert foreign_table(lake(merged=None, carried={"cdc.merged-to.other/db.t": "{}"})) is None
    assert foreign_table(lake()) is None


def test_the_hint_is_a_command_for_the_affected_tables():
    """A table to drop comes first."""
    dropped = fault_of(CUT, None, None, LIFE)
    assert refuse("shop", "lake.shop.orders", [TABLE], dropped).hint.startswith("cdc snapshot shop shop.orders:")
    replaced = fault_of(CUT, lake(merged=None), None, LIFE)
    hint = refuse("shop", "lake.shop.orders", [TABLE], replaced).hint
    assert hint.startswith("cdc lake drop shop shop.orders, then cdc snapshot shop shop.orders")
