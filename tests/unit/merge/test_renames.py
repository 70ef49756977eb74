"""Which renames count for rows of a place, and what they do to the columns of a lake table."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from cdc_lib.errors import ConfigError, IncompatibleSchema, MergeError
from cdc_lib.merge.renames import NamesAt as At
from cdc_lib.merge.renames import at_point, filled_column, now_called, renamed_schema, renames_after, renaming
from cdc_lib.model.binlog_checkpoint import BinlogCheckpoint
from cdc_lib.model.column_rename import ColumnRename, from_json, to_json
from cdc_lib.model.cursor import EpochChange
from cdc_lib.model.lake_table import LakeColumn, LakeTable, Marker, Reselected, SnapshotMark
from cdc_lib.model.position import Point
from tests.harness.batches import BIGINT, IDENTITY, TEXT, at, table

SWAP = ColumnRename("db.t", Point(1, 1, 100), (("a", "b"), ("b", "a")), "uuid:7", 1000)
AWAY = ColumnRename("db.t", Point(1, 1, 200), (("a", "c"),), "uuid:9", 2000)


def place(offset, epoch=1):
    return at_point(Point(epoch, 1, offset))


def state(*columns, renames=(), rows=True):
    found = tuple(LakeColumn(name, "bigint") for name in columns)
    return LakeTable(found, ("id",), "mirror", Marker(), 5 if rows else None, records=int(rows), renames=renames)


def done(lake, told, marker=None, keeps=lambda _: True, others=(), switches=()):
    return renaming(lake, marker or Marker(Point(1, 1, 4)), told, keeps, others, switches)


def left(seconds):
    there = BinlogCheckpoint(IDENTITY, at(500), datetime.fromtimestamp(seconds, UTC), "", False, None)
    return EpochChange(2, "failover", there.time, "test", "test", there, there)


def test_rows_get_the_names_of_the_renames_behind_them():
    """In order, and none of those before them."""
    renames = (SWAP, AWAY)
    assert [now_called("a", renames_after(place(there), renames)) for there in (50, 100, 150, 250)] == [
        "b",
        "b",
        "c",
        "a",
    ]
    assert [now_called("b", renames_after(place(there), renames)) for there in (50, 150, 250)] == ["c", "b", "b"]


def test_a_rename_that_comes_again_in_a_later_epoch_counts_once():
    """For rows of the former epoch, of either side; for the rows that are read again, of either side; and later on."""
    again = replace(SWAP, at=Point(2, 3, 40))
    renames = (SWAP, again)
    told = [
        now_called("a", renames_after(place(there, epoch), renames)) for there, epoch in ((50, 1), (150, 1), (50, 3))
    ]
    assert told == ["b", "a", "a"]
    replayed = [now_called("a", renames_after(at_point(Point(2, 3, there)), renames)) for there in (30, 50)]
    assert replayed == ["b", "a"]
    assert now_called("a", renames_after(place(50), (again,))) == "b"
    assert not renames_after(place(50, 3), (again,))


def test_the_same_statement_is_known_by_gtid_or_by_its_time_at_the_first_server():
    """Replicas repeat both; another statement of the same names has another of either."""
    there = replace(SWAP, at=Point(2, 1, 7))
    assert there.is_again(SWAP)
    assert not replace(there, gtid="uuid:8").is_again(SWAP)
    assert replace(there, gtid="").is_again(SWAP)
    assert not replace(there, gtid="", stamp=1001).is_again(SWAP)
    assert not replace(SWAP, at=Point(1, 1, 101)).is_again(SWAP)


def test_rows_that_are_read_while_a_column_is_renamed_show_it_by_their_names():
    """Where names were exchanged nothing does, and a new snapshot is asked for."""
    around = At(Point(1, 1, 150), Point(1, 1, 250))
    assert renames_after(around._replace(names=frozenset({"id", "a"})), (AWAY,)) == (AWAY,)
    assert renames_after(around._replace(names=frozenset({"id", "c"})), (AWAY,)) == ()
    early = At(Point(1, 1, 50), Point(1, 1, 150), frozenset({"id", "a", "b"}))
    with pytest.raises(IncompatibleSchema, match=r"a to b, b to a.*cdc snapshot"):
        renames_after(early, (SWAP,))


def test_a_column_that_lost_its_name_to_another_is_left_out():
    """It was dropped in between: its cells of before are not those of the other one."""
    schema = table("db.t", {"id": BIGINT, "b": TEXT, "a": BIGINT})
    found = renamed_schema(schema, (replace(SWAP, names=(("a", "b"), ("id", "number"))),))
    assert [(column.name, column.type) for column in found.columns] == [("number", BIGINT), ("b", BIGINT)]
    assert found.primary_key == ("number",)


def test_the_lakes_columns_follow_all_renames_at_once():
    """Each is done once: what the table knows, also from another epoch, changes nothing again."""
    found = done(state("id", "A", "b"), (SWAP, AWAY))
    assert found.names == {"A": "b", "b": "c"}
    assert found.renames == (SWAP, AWAY)
    knows = state("id", "b", "c", renames=found.renames)
    assert done(knows, (SWAP, AWAY)) is None
    again = done(knows, (replace(SWAP, at=Point(2, 1, 9)),))
    assert again.names == {}
    assert [one.at.epoch for one in again.renames] == [1, 1, 2]


def test_a_column_that_the_source_had_dropped_makes_way():
    """The lake keeps it under a name that is free, and knows what became of it."""
    found = done(state("id", "a", "c", "c_old"), (AWAY,))
    assert found.names == {"a": "c", "c": "c_old1"}
    assert now_called("c", found.renames) == "c_old1"
    assert from_json(to_json(found.renames), "db.t") == found.renames
    later = done(state("id", "c", renames=found.renames), (replace(AWAY, at=Point(2, 1, 9)),))
    assert later.renames[-1].displaced == (("c", "c_old1"),)


def test_a_table_that_was_read_behind_a_rename_has_its_names():
    """By a snapshot, or because its windows are merged; one without rows has the names of its merge."""
    whole = SnapshotMark("s", 1, True, Point(1, 1, 150), Point(1, 1, 150), Point(1, 1, 160))
    read = Marker(Point(1, 1, 4), (whole,))
    assert done(state("id", "a", "b"), (SWAP,), read).names == {}
    assert done(state("id", "a", "b"), (AWAY,), read).names == {"a": "c"}
    assert done(state("id", "a", "b"), (SWAP,), Marker(Point(1, 1, 300))).names == {}
    assert done(state("id", "a", "b", rows=False), (SWAP,)).names == {"a": "b", "b": "a"}


def test_a_rename_while_a_snapshot_was_read_shows_in_the_lakes_names():
    """Where it does not, the merge asks for a new snapshot."""
    around = SnapshotMark("s", 2, True, Point(1, 1, 50), Point(1, 1, 150), Point(1, 1, 300))
    marker = Marker(Point(1, 1, 4), (around,))
    assert done(state("id", "a"), (AWAY,), marker).names == {"a": "c"}
    assert done(state("id", "c"), (AWAY,), marker).names == {}
    for columns, told in ((("id", "a", "c"), AWAY), (("id", "a", "b"), SWAP)):
        with pytest.raises(IncompatibleSchema, match="cdc snapshot"):
            done(state(*columns), (told,), marker)


def test_a_rename_behind_which_a_snapshot_was_read_before_a_rewind_shows_in_the_lakes_names():
    """The rewind kept it from being drained in the snapshot's epoch; an exchange of names asks for a new snapshot."""
    read = SnapshotMark("s", 1, True, Point(1, 1, 300), Point(1, 1, 300), Point(1, 1, 300))
    marker, rewound = Marker(Point(1, 1, 90), (read,)), [replace(left(500), kind="rewind")]
    swap, away = (replace(one, at=one.at._replace(epoch=2)) for one in (SWAP, AWAY))
    assert done(state("id", "a"), (away,), marker, switches=rewound).names == {"a": "c"}
    assert done(state("id", "c"), (away,), marker, switches=rewound).names == {}
    with pytest.raises(IncompatibleSchema, match="cdc snapshot"):
        done(state("id", "a", "b"), (swap,), marker, switches=rewound)
    behind_it = replace(swap, at=Point(2, 1, 300))
    for told, switches in ((behind_it, rewound), (swap, [left(500)])):
        assert done(state("id", "a", "b"), (told,), marker, switches=switches).names == {"a": "b", "b": "a"}


def test_a_rename_of_before_a_switch_that_the_lake_does_not_know_is_done_only_where_its_columns_show_it():
    """The former epoch had it where nothing of the table was merged; one that was run later is done."""
    swap, away = (replace(one, at=Point(2, 1, 9)) for one in (SWAP, AWAY))
    switches = [left(2000)]
    assert done(state("id", "a", "b"), (swap,), switches=switches).names == {}
    assert done(state("id", "a"), (away,), switches=switches).names == {"a": "c"}
    assert done(state("id", "a", "c"), (away,), switches=switches).names == {}
    later = (replace(away, stamp=2001),)
    assert done(state("id", "c"), later, switches=switches).names == {"c": "c_old"}
    assert done(state("id", "a", "b"), (replace(swap, stamp=2001),), switches=switches).names == {"a": "b", "b": "a"}


def test_what_the_lake_cannot_follow_stops_the_table():
    """Columns that others share, a route that keeps the old name alone, and a name that the lake has for itself."""
    with pytest.raises(IncompatibleSchema, match=r"db\.u share it"):
        done(state("id", "a"), (AWAY,), others=["db.u"])
    with pytest.raises(ConfigError, match="a route keeps column a, which is now called c"):
        done(state("id", "a"), (AWAY,), keeps=lambda name: name != "c")
    with pytest.raises(IncompatibleSchema, match="is reserved in the lake"):
        done(state("id", "a"), (replace(AWAY, names=(("a", "_ts"),)),))
    assert done(state("id"), (AWAY,), others=["db.u"]).names == {}


def test_a_property_of_another_release_is_refused():
    """A rename that is not understood could be done twice."""
    assert from_json(None, "db.t") == ()
    for text in ("{}", "x", to_json([SWAP]).replace('"format_version":1', '"format_version":2')):
        with pytest.raises(MergeError, match=r"cdc\.renames"):
            from_json(text, "db.t")


def test_columns_whose_names_came_back_before_rows_were_read_back_stop_the_table():
    """The look at its columns saw the names that it knew: whether they are those of the same columns it could not see."""
    marker = Marker(Point(1, 1, 4), reselected=Reselected(Point(1, 1, 90), Point(1, 1, 300)))
    for columns, told in ((("id", "a", "b"), SWAP), (("id", "a"), AWAY), (("id", "a", "c"), AWAY)):
        with pytest.raises(IncompatibleSchema, match="it is unknown"):
            done(state(*columns), [told], marker)
    behind_it = replace(marker, reselected=Reselected(Point(1, 1, 20), Point(1, 1, 100)))
    assert done(state("id", "a", "b"), [SWAP], behind_it).names == {"a": "b", "b": "a"}


def test_a_column_that_was_added_and_renamed_before_rows_were_read_back_has_its_name():
    """Its values are those of the rows that were read, and do not make way for others."""
    marker = Marker(Point(1, 1, 4), reselected=Reselected(Point(1, 1, 250), Point(1, 1, 300)))
    found = done(state("id", "c"), [AWAY], marker)
    assert (found.names, found.renames) == ({}, (AWAY,))
    further = replace(AWAY, at=Point(1, 1, 220), names=(("c", "d"),))
    assert done(state("id", "d"), [AWAY, further], marker).names == {}


def test_a_value_for_a_column_is_void_once_another_column_has_its_name():
    """The column was dropped in between; one that the lake put aside for it keeps the value."""
    assert filled_column("a", [AWAY]) == "c"
    assert filled_column("c", [AWAY]) is None
    assert filled_column("c", [replace(AWAY, displaced=(("c", "c_old"),))]) == "c_old"
    assert filled_column("a", [SWAP]) == "b"
