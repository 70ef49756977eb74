"""Which renames apply to rows of a place, and how they change the columns of a lake table."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from cdc_lib.errors import ConfigError, IncompatibleSchema, MergeError
from cdc_lib.merge.renames import NamesAt as At
from cdc_lib.merge.renames import at_point, current_name, filled_column, renamed_schema, renames_after, renaming
from cdc_lib.model.binlog_checkpoint import BinlogCheckpoint
from cdc_lib.model.column_rename import ColumnRename, from_json, to_json
from cdc_lib.model.cursor import EpochChange
from cdc_lib.model.lake_table import LakeColumn, LakeTable, Marker, Reselected, SnapshotMark
from cdc_lib.model.position import Point
from tests.harness.lake.batches import BIGINT, IDENTITY, TEXT, at, table

UUID = "00000000-0000-0000-0000-00000000000a"
SWAP = ColumnRename("db.t", Point(1, 1, 100), (("a", "b"), ("b", "a")), f"{UUID}:7", 1000)
AWAY = ColumnRename("db.t", Point(1, 1, 200), (("a", "c"),), f"{UUID}:9", 2000)


def names_at(offset, epoch=1):
    return at_point(Point(epoch, 1, offset))


def state(*columns, renames=(), rows=True):
    found = tuple(LakeColumn(name, "bigint") for name in columns)
    return LakeTable(found, ("id",), "mirror", Marker(), 5 if rows else None, records=int(rows), renames=renames)


def done(lake, renames, marker=None, keeps=lambda _: True, others=(), switches=()):
    return renaming(lake, marker or Marker(Point(1, 1, 4)), renames, keeps, others, switches)


def left(seconds, gtid_set="", flavor="mysql"):
    there = BinlogCheckpoint(
        replace(IDENTITY, flavor=flavor), at(500), datetime.fromtimestamp(seconds, UTC), gtid_set, bool(gtid_set), None
    )
    return EpochChange(2, "failover", there.time, "test", "test", there, there)


def test_later_renames_apply_to_rows():
    """In order, and none of the earlier ones."""
    renames = (SWAP, AWAY)
    assert [current_name("a", renames_after(names_at(there), renames)) for there in (50, 100, 150, 250)] == [
        "b",
        "b",
        "c",
        "a",
    ]
    assert [current_name("b", renames_after(names_at(there), renames)) for there in (50, 150, 250)] == ["c", "b", "b"]


def test_a_rename_replayed_in_a_later_epoch_applies_once():
    """To rows before and after it, of the earlier epoch and of the replay."""
    again = replace(SWAP, at=Point(2, 3, 40))
    renames = (SWAP, again)
    names = [
        current_name("a", renames_after(names_at(there, epoch), renames))
        for there, epoch in ((50, 1), (150, 1), (50, 3))
    ]
    assert names == ["b", "a", "a"]
    replayed = [current_name("a", renames_after(at_point(Point(2, 3, there)), renames)) for there in (30, 50)]
    assert replayed == ["b", "a"]
    assert current_name("a", renames_after(names_at(50), (again,))) == "b"
    assert not renames_after(names_at(50, 3), (again,))


def test_a_replayed_statement_has_the_same_gtid_or_original_time():
    """Replicas keep both; another statement with the same names differs in one."""
    there = replace(SWAP, at=Point(2, 1, 7))
    assert there.is_again(SWAP)
    assert not replace(there, gtid="uuid:8").is_again(SWAP)
    assert replace(there, gtid="").is_again(SWAP)
    assert not replace(there, gtid="", stamp=1001).is_again(SWAP)
    assert not replace(SWAP, at=Point(1, 1, 101)).is_again(SWAP)


def test_rows_read_during_a_rename_are_placed_by_their_names():
    """If names were exchanged, a new snapshot is needed."""
    around = At(Point(1, 1, 150), Point(1, 1, 250))
    assert renames_after(around._replace(names=frozenset({"id", "a"})), (AWAY,)) == (AWAY,)
    assert renames_after(around._replace(names=frozenset({"id", "c"})), (AWAY,)) == ()
    early = At(Point(1, 1, 50), Point(1, 1, 150), frozenset({"id", "a", "b"}))
    with pytest.raises(IncompatibleSchema, match=r"a to b, b to a.*cdc snapshot"):
        renames_after(early, (SWAP,))


def test_a_column_whose_name_another_one_took_is_left_out():
    """It was dropped in between: its older cells are not those of the other column."""
    schema = table("db.t", {"id": BIGINT, "b": TEXT, "a": BIGINT})
    found = renamed_schema(schema, (replace(SWAP, names=(("a", "b"), ("id", "number"))),))
    assert [(column.name, column.type) for column in found.columns] == [("number", BIGINT), ("b", BIGINT)]
    assert found.primary_key == ("number",)


def test_the_lakes_columns_follow_all_renames_at_once():
    """Each applies once: renames that the table knows, also from another epoch, change nothing."""
    found = done(state("id", "A", "b"), (SWAP, AWAY))
    assert found.names == {"A": "b", "b": "c"}
    assert found.renames == (SWAP, AWAY)
    knows = state("id", "b", "c", renames=found.renames)
    assert done(knows, (SWAP, AWAY)) is None
    again = done(knows, (replace(SWAP, at=Point(2, 1, 9)),))
    assert again.names == {}
    assert [one.at.epoch for one in again.renames] == [1, 1, 2]


def test_a_dropped_column_gets_a_free_name_if_another_takes_its_name():
    """The lake keeps it, and records its new name."""
    found = done(state("id", "a", "c", "c_old"), (AWAY,))
    assert found.names == {"a": "c", "c": "c_old1"}
    assert current_name("c", found.renames) == "c_old1"
    assert from_json(to_json(found.renames), "db.t") == found.renames
    later = done(state("id", "c", renames=found.renames), (replace(AWAY, at=Point(2, 1, 9)),))
    assert later.renames[-1].displaced == (("c", "c_old1"),)


def test_a_table_read_after_a_rename_has_the_new_names():
    """By a snapshot, or because its windows are merged; an empty table has the names of its merge."""
    whole = SnapshotMark("s", 1, True, Point(1, 1, 150), Point(1, 1, 150), Point(1, 1, 160))
    read = Marker(Point(1, 1, 4), (whole,))
    assert done(state("id", "a", "b"), (SWAP,), read).names == {}
    assert done(state("id", "a", "b"), (AWAY,), read).names == {"a": "c"}
    assert done(state("id", "a", "b"), (SWAP,), Marker(Point(1, 1, 300))).names == {}
    assert done(state("id", "a", "b", rows=False), (SWAP,)).names == {"a": "b", "b": "a"}


def test_a_rename_during_a_snapshot_is_found_by_the_lakes_names():
    """If it cannot be found, the merge needs a new snapshot."""
    around = SnapshotMark("s", 2, True, Point(1, 1, 50), Point(1, 1, 150), Point(1, 1, 300))
    marker = Marker(Point(1, 1, 4), (around,))
    assert done(state("id", "a"), (AWAY,), marker).names == {"a": "c"}
    assert done(state("id", "c"), (AWAY,), marker).names == {}
    for columns, renames in ((("id", "a", "c"), AWAY), (("id", "a", "b"), SWAP)):
        with pytest.raises(IncompatibleSchema, match="cdc snapshot"):
            done(state(*columns), (renames,), marker)


def test_a_rename_skipped_by_a_rewind_after_a_snapshot_is_found_by_the_lakes_names():
    """The rewind kept its window from being drained in the snapshot's epoch; an exchange of names needs a new snapshot."""
    read = SnapshotMark("s", 1, True, Point(1, 1, 300), Point(1, 1, 300), Point(1, 1, 300))
    marker, rewound = Marker(Point(1, 1, 90), (read,)), [replace(left(500), kind="rewind")]
    swap, away = (replace(one, at=one.at._replace(epoch=2)) for one in (SWAP, AWAY))
    assert done(state("id", "a"), (away,), marker, switches=rewound).names == {"a": "c"}
    assert done(state("id", "c"), (away,), marker, switches=rewound).names == {}
    with pytest.raises(IncompatibleSchema, match="cdc snapshot"):
        done(state("id", "a", "b"), (swap,), marker, switches=rewound)
    behind_it = replace(swap, at=Point(2, 1, 300))
    for renames, switches in ((behind_it, rewound), (swap, [left(500)])):
        assert done(state("id", "a", "b"), (renames,), marker, switches=switches).names == {"a": "b", "b": "a"}


def test_a_rename_that_its_gtid_shows_as_replayed_is_done_only_if_the_columns_need_it():
    """The earlier epoch had it before anything of the table was merged; a later one is done."""
    swap, away = (replace(one, at=Point(2, 1, 9)) for one in (SWAP, AWAY))
    switches = [left(2000, f"{UUID}:1-9")]
    assert done(state("id", "a", "b"), (swap,), switches=switches).names == {}
    assert done(state("id", "a"), (away,), switches=switches).names == {"a": "c"}
    assert done(state("id", "a", "c"), (away,), switches=switches).names == {}
    later = (replace(away, gtid=f"{UUID}:10"),)
    assert done(state("id", "c"), later, switches=switches).names == {"c": "c_old"}
    later = (replace(swap, gtid=f"{UUID}:10"),)
    assert done(state("id", "a", "b"), later, switches=switches).names == {"a": "b", "b": "a"}


def test_a_rename_on_a_server_whose_clock_is_slow_is_done():
    """Its time is before the end of the earlier epoch; its GTID shows that it is new."""
    swap = replace(SWAP, at=Point(2, 1, 9), gtid="00000000-0000-0000-0000-00000000000b:1", stamp=1000)
    found = done(state("id", "a", "b"), (swap,), switches=[left(2000, f"{UUID}:1-9")])
    assert found.names == {"a": "b", "b": "a"}


def test_a_mariadb_rename_is_compared_by_the_gtid_of_its_server():
    swap = replace(SWAP, at=Point(2, 1, 9), stamp=1000)
    switches = [left(2000, "0-1-9,0-2-4", "mariadb")]
    for gtid, names in (("0-1-9", {}), ("0-1-10", {"a": "b", "b": "a"}), ("0-2-5", {"a": "b", "b": "a"})):
        renames = (replace(swap, gtid=gtid),)
        assert done(state("id", "a", "b"), renames, switches=switches).names == names


def test_without_gtids_a_possibly_replayed_rename_is_found_by_the_lakes_names():
    """Or needs a new snapshot: clocks of two servers may differ, so only a later time than any end proves something."""
    swap, away = (replace(one, at=Point(2, 1, 9), gtid="") for one in (SWAP, AWAY))
    switches = [left(2000)]
    assert done(state("id", "a"), (away,), switches=switches).names == {"a": "c"}
    assert done(state("id", "c"), (away,), switches=switches).names == {}
    for columns, renames in ((("id", "a", "b"), swap), (("id", "a", "c"), away)):
        with pytest.raises(IncompatibleSchema, match="cdc snapshot"):
            done(state(*columns), (renames,), switches=switches)
    later = (replace(away, stamp=2001),)
    assert done(state("id", "c"), later, switches=switches).names == {"c": "c_old"}
    assert done(state("id", "a", "b"), (replace(swap, stamp=2001),), switches=switches).names == {"a": "b", "b": "a"}


def test_renames_that_the_lake_cannot_follow_stop_the_table():
    """Shared columns, a route that keeps only the old name, and a name that is reserved in the lake."""
    with pytest.raises(IncompatibleSchema, match=r"db\.u share it"):
        done(state("id", "a"), (AWAY,), others=["db.u"])
    with pytest.raises(ConfigError, match="a route keeps column a, which is now called c"):
        done(state("id", "a"), (AWAY,), keeps=lambda name: name != "c")
    with pytest.raises(IncompatibleSchema, match="is reserved in the lake"):
        done(state("id", "a"), (replace(AWAY, names=(("a", "_ts"),)),))
    assert done(state("id"), (AWAY,), others=["db.u"]).names == {}


def test_a_property_of_another_release_is_refused():
    """An unknown rename could be applied twice."""
    assert from_json(None, "db.t") == ()
    for text in ("{}", "x", to_json([SWAP]).replace('"format_version":1', '"format_version":2')):
        with pytest.raises(MergeError, match=r"cdc\.renames"):
            from_json(text, "db.t")


def test_columns_whose_names_were_reused_before_a_reselection_stop_the_table():
    """The re-selection saw known names, which may be other columns."""
    marker = Marker(Point(1, 1, 4), reselected=Reselected(Point(1, 1, 90), Point(1, 1, 300)))
    for columns, renames in ((("id", "a", "b"), SWAP), (("id", "a"), AWAY), (("id", "a", "c"), AWAY)):
        with pytest.raises(IncompatibleSchema, match="it is unknown"):
            done(state(*columns), [renames], marker)
    behind_it = replace(marker, reselected=Reselected(Point(1, 1, 20), Point(1, 1, 100)))
    assert done(state("id", "a", "b"), [SWAP], behind_it).names == {"a": "b", "b": "a"}


def test_a_column_added_and_renamed_before_a_reselection_has_its_new_name():
    """Its values are those of the re-selected rows."""
    marker = Marker(Point(1, 1, 4), reselected=Reselected(Point(1, 1, 250), Point(1, 1, 300)))
    found = done(state("id", "c"), [AWAY], marker)
    assert (found.names, found.renames) == ({}, (AWAY,))
    further = replace(AWAY, at=Point(1, 1, 220), names=(("c", "d"),))
    assert done(state("id", "d"), [AWAY, further], marker).names == {}


def test_a_default_is_dropped_once_another_column_has_the_columns_name():
    """The column was dropped in between; the renamed old column in the lake keeps the value."""
    assert filled_column("a", [AWAY]) == "c"
    assert filled_column("c", [AWAY]) is None
    assert filled_column("c", [replace(AWAY, displaced=(("c", "c_old"),))]) == "c_old"
    assert filled_column("a", [SWAP]) == "b"
