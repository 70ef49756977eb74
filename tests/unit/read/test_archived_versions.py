"""Earlier versions of a mirror's rows, from the batches of its source; no Spark."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from cdc_lib.errors import BatchesMissing, ConfigError, IncompatibleSchema, StoreError
from cdc_lib.model.binlog_checkpoint import BinlogCheckpoint
from cdc_lib.model.cursor import DRAIN, LAKE, Cursor
from cdc_lib.model.lake_table import Marker
from cdc_lib.model.position import Point
from cdc_lib.model.schema import SourceType
from cdc_lib.model.table_mode import STATEMENT_ROW
from cdc_lib.read import Lake
from cdc_lib.read.asynchronous import AsyncTableReader
from cdc_lib.store.cursors import ObjectCursorStore
from cdc_lib.store.windows import stored_windows
from tests.harness.lake.archived_source import GTIDS, KEY, PEOPLE, Source, change, shown, time, versions
from tests.harness.lake.batches import BIGINT, IDENTITY, START_TIME, TEXT, Row, at, table
from tests.harness.lake.small_lake import row


@pytest.fixture
def source(tmp_path):
    """Three windows: a row is inserted, updated twice, deleted and inserted again; others in between."""
    made = Source(tmp_path)
    made.window(change("c", 10, "Ada"), change("c", 20, "Bo", number=2), change("u", 30, "Eve"))
    made.window(change("u", 110, "Eve", country="fr"), change("d", 120, "Eve"))
    made.window(change("c", 210, "Ada"), change("u", 220, "Fay", row=1), change("u", 220, "Gil", row=2))
    return made


ALL = [
    ("u", 220, "Gil", ["name"]),
    ("u", 220, "Fay", ["name"]),
    ("c", 210, "Ada", None),
    ("d", 120, "Eve", None),
    ("u", 30, "Eve", ["name"]),
    ("c", 10, "Ada", None),
]


def test_versions_are_the_changes_of_a_key_newest_first(source):
    """With what each changed; the lake's row is the newest of them. The result says since when it has all."""
    source.merged([row("de", 1, "Gil", 220) | {"_row": 2}, row("de", 2, "Bo", 20)])
    found = versions(source)
    assert shown(found) == ALL
    assert (found.complete_since, found.complete_from) == (START_TIME, Point(1, 1, 4))
    assert found.why == "earlier batches are not stored"
    first = found.rows.to_pylist()[0]
    assert list(first) == [
        "_op",
        "_ts",
        "_gtid",
        "_epoch",
        "_binlog",
        "_offset",
        "_row",
        "country",
        "id",
        "name",
        "raw",
        "_changed",
    ]
    assert (first["_ts"], first["raw"], first["_epoch"], first["_binlog"]) == (time(220), b"\x00\xff", 1, 1)
    assert shown(versions(source, ("de", 2))) == [("c", 20, "Bo", None)]
    assert shown(versions(source, ("fr", 1))) == [("u", 110, "Eve", None)]
    assert shown(versions(source, ("fr", 2))) == shown(versions(source, ("fr", 2**70))) == []


def test_only_some_versions_are_returned(source):
    """By number, and by their commit time; what a version changed does not depend on it."""
    source.merged([row("de", 1, "Gil", 220) | {"_row": 2}])
    for limit in range(1, 8):
        assert shown(versions(source, limit=limit)) == ALL[:limit]
    assert shown(versions(source, since=time(30))) == ALL[:5]
    assert shown(versions(source, since=time(30), until=time(220))) == ALL[2:5]
    assert shown(versions(source, until=time(120), limit=1)) == ALL[4:5]
    names = versions(source, columns=["name", "_offset"]).rows.column_names
    assert names == ["_op", "_ts", "_gtid", "_epoch", "_binlog", "_offset", "_row", "name", "_changed"]


def test_what_the_lake_has_alone_is_a_version_too(source):
    """A change that no batch has any more, and a row that was read by SELECT, whose place is its position."""
    source.merged(
        [row("at", 7, "Ida", 2), row("de", 1, "Hal", 250) | {"_row": -1}, row("de", 2, "Bo", 3) | {"_row": -1}]
    )
    assert shown(versions(source, ("at", 7))) == [(None, 2, "Ida", None)]
    assert shown(versions(source)) == [("r", 250, "Hal", ["name"]), *ALL]
    assert shown(versions(source, ("de", 2))) == [("c", 20, "Bo", None), ("r", 3, "Bo", None)]


def test_times_before_the_first_batch_are_refused(source):
    """After the oldest window is removed: the error says since when versions are known."""
    source.merged([row("de", 1, "Gil", 220) | {"_row": 2}, row("de", 2, "Bo", 20)])
    assert shown(versions(source, since=START_TIME)) == ALL
    source.remove_first_window()
    found = versions(source)
    assert shown(found) == ALL[:4]
    assert found.complete_from == Point(1, 1, 104)
    assert shown(versions(source, ("de", 2))) == [(None, 20, "Bo", None)]
    source.store.delete([stored_windows(source.store, "shop")[0].key])
    with pytest.raises(
        BatchesMissing, match=r"all versions of rows are known since 2026-01-01 00:00:00\+00:00, and not since 2025"
    ):
        versions(source, since=START_TIME - timedelta(seconds=1))
    for one in stored_windows(source.store, "shop"):
        source.store.delete([one.key])
    found = versions(source)
    assert (shown(found), found.complete_since) == ([(None, 220, "Gil", None)], None)
    with pytest.raises(BatchesMissing, match="no earlier version of a row is known: earlier batches are not stored"):
        versions(source, since=START_TIME)
    for name in ("since", "until"):
        with pytest.raises(ConfigError, match="needs a time zone"):
            versions(source, **{name: datetime(2026, 1, 1)})  # noqa: DTZ001


def test_what_was_merged_after_the_snapshot_is_no_version(source):
    """A reader sees one snapshot; after a refresh it sees the windows that were merged meanwhile."""
    source.merged([row("de", 1, "Eve", 30)], to=104)
    cut = source.lake.cut(1, START_TIME, source.table)
    with source.opened() as lake:
        reader = lake.table("shop.people")
        assert shown(reader.archived_versions(("de", 1))) == ALL[4:]
        source.lake.add(source.table, [row("at", 1, "new", 250)], Marker(merged_to=Point(1, 1, 304)))
        assert shown(reader.archived_versions(("de", 1))) == ALL[4:]
        reader.refresh()
        assert [one[:3] for one in shown(reader.archived_versions(("de", 1)))][:2] == [
            ("u", 220, "Gil"),
            ("u", 220, "Fay"),
        ]
        assert shown(asyncio.run(AsyncTableReader(reader).archived_versions(("at", 1)))) == [(None, 250, "new", None)]
    with source.opened() as lake:
        found = lake.table("shop.people", cut=cut).archived_versions(("de", 1))
        assert (shown(found), found.complete_from) == (ALL[4:], Point(1, 1, 4))


def test_a_reader_of_an_earlier_snapshot_ends_there(source):
    """Also if its versions are first asked for after a later merge; an expired snapshot is an error."""
    source.merged([row("de", 1, "Eve", 30)], to=104)
    with source.opened() as lake:
        reader, other = lake.table("shop.people"), lake.table("shop.people")
        source.lake.add(source.table, [], Marker(merged_to=Point(1, 1, 304)))
        assert shown(reader.archived_versions(("de", 1))) == ALL[4:]
        source.table.refresh().maintenance.expire_snapshots().by_id(reader.snapshot_id).commit()
        with pytest.raises(StoreError, match="does not exist any more"):
            other.archived_versions(("de", 1))
        assert shown(reader.archived_versions(("de", 1))) == ALL[4:]


def test_windows_count_up_to_the_table_s_position_and_from_the_floor_on(source):
    """Both may lie inside of a window; then its last commit time is that from which on all versions are known."""
    source.window(change("u", 310, "X"), change("u", 340, "Y"), statements=[("rename_columns", "shop.people", 320)])
    source.window(change("u", 410, "Z"), change("u", 450, "later"))
    source.merged([row("de", 1, "Z", 410)], to=430)
    found = versions(source)
    assert shown(found) == [("u", 410, "Z", ["name"]), ("u", 340, "Y", None)]
    assert (found.complete_from, found.complete_since) == (Point(1, 1, 321), time(404))


def test_the_time_of_what_ends_the_history_is_told(source):
    source.window(decided={"x": (350, True)})
    source.window(change("u", 410, "Z"))
    source.merged([row("de", 1, "Z", 410)])
    found = versions(source)
    assert shown(found) == [("u", 410, "Z", None)]
    assert (found.complete_from, found.complete_since) == (Point(1, 1, 351), time(350))


def test_changes_to_and_from_null_are_changes(source):
    """Also an update that brings a deleted key back, and a key that one event frees and takes: the delete came first."""
    source.window(change("u", 310, None), change("u", 320, "Z"), change("d", 330, "Z"), change("u", 340, "Z"))
    source.window(change("u", 410, "Y"), change("d", 410, "Z"))
    source.merged([row("de", 1, "Y", 410)])
    assert shown(versions(source))[:6] == [
        ("u", 410, "Y", None),
        ("d", 410, "Z", None),
        ("u", 340, "Z", None),
        ("d", 330, "Z", None),
        ("u", 320, "Z", ["name"]),
        ("u", 310, None, ["name"]),
    ]


def test_older_files_are_not_read_once_there_are_enough_versions(source):
    for number in range(40):
        source.window(change("u", source.stop + 10, f"n{number}"))
    source.merged([])
    source.store.delete(
        [
            info.key
            for info in source.store.list("shop/batches/")
            if "000004-" in info.key and info.key.endswith(".parquet")
        ]
    )
    assert shown(versions(source, limit=30))[-1] == ("u", 1314, "n10", ["name"])
    with pytest.raises(StoreError, match="there is no such object"):
        versions(source)


def test_a_merge_that_is_not_acknowledged_yet_counts(source):
    """Its windows lie after the lake's cursor, and the table has their changes."""
    source.merged([row("de", 1, "Gil", 220) | {"_row": 2}])
    cursors = ObjectCursorStore(source.store)
    lake = cursors.load("shop", LAKE)
    cursors.swap(lake, replace(lake, position=at(104)))
    assert shown(versions(source)) == ALL


def test_a_statement_that_removes_all_rows_is_a_version(source):
    """Unless the row was deleted before."""
    source.window(statements=[("truncate", "shop.people", 310), ("truncate", "shop.people", 320)])
    source.window(change("c", 410, "Ida"), change("c", 415, "x", number=5), change("d", 420, "x", number=5))
    source.window(statements=[("truncate", "shop.people", 510)])
    source.merged([])
    reset = [("t", 510, None, None), ("c", 410, "Ida", None), ("t", 310, None, None)]
    assert shown(versions(source)) == [*reset, *ALL]
    for limit in range(1, 5):
        assert shown(versions(source, limit=limit)) == [*reset, *ALL][:limit]
    assert shown(versions(source, ("de", 5))) == [("d", 420, "x", None), ("c", 415, "x", None), ("t", 310, None, None)]
    assert shown(versions(source, ("de", 9))) == [("t", 310, None, None)]


def test_no_row_existed_before_its_table_was_created(source):
    """A later TRUNCATE removed nothing of a key that was never inserted."""
    source.window(statements=[("create", "shop.people", 305)])
    source.window(statements=[("truncate", "shop.people", 410)])
    source.window(change("c", 510, "Ida"))
    source.merged([row("de", 1, "Ida", 510)])
    assert shown(versions(source, ("de", 9))) == []
    assert shown(versions(source)) == [("c", 510, "Ida", None), *ALL]
    assert shown(versions(source, limit=2)) == [("c", 510, "Ida", None), ALL[0]]


def test_rows_of_xa_transactions_are_versions_at_their_commits(source):
    """With the commit's position, time and GTID; another transaction of the same file is not committed."""
    rows = [change("u", 310, "Xi"), change("u", 330, "no")]
    prepared = {"x": (310, {source.schema: rows}), "y": (330, {source.schema: [change("u", 330, "no")]})}
    source.window(prepared=prepared)
    source.window(decided={"x": (410, True), "y": (420, False)})
    source.merged([row("de", 1, "Xi", 410)])
    found = versions(source)
    assert shown(found) == [("u", 410, "Xi", ["name"]), *ALL]
    first = found.rows.to_pylist()[0]
    assert (first["_ts"], first["_gtid"]) == (time(410), "gtid:410")


def test_columns_that_were_added_are_null_before(source):
    """A column that one of two versions does not have is not compared. Other spelling of a name does not matter."""
    wider = table(
        "shop.people", {"COUNTRY": TEXT, "ID": BIGINT, "NAME": TEXT, "RAW": SourceType("bytes")}, key=("COUNTRY", "ID")
    )
    narrow = table("shop.people", {"country": TEXT, "id": BIGINT, "raw": SourceType("bytes")}, key=KEY)
    values = {"COUNTRY": "de", "ID": 1, "NAME": "Ida", "RAW": b"\x00\xff"}
    source.window(Row("u", 310, {"country": "de", "id": 1, "raw": b"b"}), schema=narrow)
    source.window(Row("u", 410, values), schema=wider)
    source.merged([row("de", 1, "Ida", 410)])
    assert shown(versions(source))[:3] == [("u", 410, "Ida", ["raw"]), ("u", 310, None, ["raw"]), ALL[0]]


def test_a_row_that_does_not_fit_into_the_lake_is_an_error(source):
    other = table("shop.people", {**PEOPLE, "raw": SourceType("datetime", scale=6)}, key=KEY)
    source.window(Row("u", 310, {"country": "de", "id": 1, "name": "x", "raw": datetime(2026, 1, 1)}), schema=other)  # noqa: DTZ001
    source.merged([])
    with pytest.raises(IncompatibleSchema, match="column raw has another type in an archived batch"):
        versions(source)
    assert versions(source, ("de", 2)).rows.num_rows == 1


def test_a_batch_that_is_removed_while_it_is_read_is_an_error(source):
    """Its keys are in memory, and its rows are not."""
    source.merged([])
    with source.opened() as lake:
        reader = lake.table("shop.people")
        assert shown(reader.archived_versions(("de", 1))) == ALL
        source.remove_first_window()
        with pytest.raises(BatchesMissing, match="a batch was removed while it was read"):
            reader.archived_versions(("de", 1))
        reader.refresh()
        assert shown(reader.archived_versions(("de", 1))) == ALL[:4]
        source.store.delete([info.key for info in source.store.list("shop/batches/") if info.key.endswith(".parquet")])
        with pytest.raises(StoreError, match="there is no such object"):
            reader.archived_versions(("de", 1))


def test_a_new_epoch_ends_the_history(source):
    """Its first window begins before the end of the epoch before, so that no change is missing."""
    end, start = (BinlogCheckpoint(IDENTITY, at(offset), time(offset), "", False, None) for offset in (304, 4))
    drain = Cursor("shop", DRAIN, 0, 1, IDENTITY, at(304)).with_new_epoch(
        start, "failover", at=START_TIME, by="x", why="y"
    )
    assert drain.epoch_changes[0].previous_end.position == end.position
    source.batches.window(4, 104, {source.schema: [change("u", 50, "new")]}, epoch=2)
    source.lake.make("people", [row("de", 1, "new", 50) | {"_epoch": 2}], marker=Marker(merged_to=Point(2, 1, 104)))
    for consumer in (DRAIN, LAKE):
        ObjectCursorStore(source.store).swap(None, replace(drain, consumer=consumer, position=at(104)))
    found = versions(source)
    assert (shown(found), found.complete_from) == ([("u", 50, "new", None)], Point(2, 1, 4))
    assert found.why == "epoch 2 of the source begins there (failover)"


def failed_over(source, gtids, last):
    """Move the source to another server, whose binlog begins with what follows these GTIDs; its epoch has one window."""
    ends = {"gtid_set": f"{GTIDS}:1-10", "gtids_known": True}
    start = BinlogCheckpoint(IDENTITY, at(4), time(204), gtids, True, None)
    drain = Cursor("shop", DRAIN, 0, 1, IDENTITY, at(source.stop), **ends).with_new_epoch(
        start, "failover", at=START_TIME, by="x", why="y"
    )
    source.batches.window(4, 104, {source.schema: [change("u", 50, last)]}, epoch=2)
    source.lake.make("people", [row("de", 1, last, 50) | {"_epoch": 2}], marker=Marker(merged_to=Point(2, 1, 104)))
    for consumer in (DRAIN, LAKE):
        ObjectCursorStore(source.store).swap(None, replace(drain, consumer=consumer, position=at(104)))


def test_versions_continue_over_a_failover_that_repeats_no_change(source):
    """By GTIDs the new epoch begins where the last one ended; the epoch comes first in the order, whatever the offsets are."""
    failed_over(source, f"{GTIDS}:1-10", "third")
    found = versions(source)
    assert shown(found) == [("u", 50, "third", ["name"]), *ALL]
    assert (found.complete_from, found.why) == (Point(1, 1, 4), "earlier batches are not stored")
    source.remove_first_window()
    found = versions(source)
    assert shown(found)[:2] == [("u", 50, "third", ["name"]), ("u", 220, "Gil", ["name"])]
    assert found.complete_from == Point(1, 1, 104)


def test_versions_end_at_a_failover_that_repeats_changes(source):
    """The new epoch begins before the end of the last one: its first changes would be shown twice."""
    failed_over(source, f"{GTIDS}:1-9", "second")
    found = versions(source)
    assert (shown(found), found.complete_from) == ([("u", 50, "second", None)], Point(2, 1, 4))
    assert found.why == "epoch 2 of the source begins there (failover)"


def test_deleted_rows_of_soft_delete_tables_have_versions(source):
    """Those in batches as in a mirror; without them the marked row is a delete with its last values, or a statement without."""

    def deleted(country, name, offset, number=0):
        return row(country, 1, name, offset) | {"_is_deleted": True, "_row": number}

    source.window(change("d", 310, "Gil"), statements=[("truncate", "shop.people", 350)])
    source.merged(
        [
            deleted("de", "Gil", 310),
            deleted("fr", "Eve", 350, STATEMENT_ROW),
            deleted("at", "Ida", 2),
            deleted("ch", "Ed", 3, STATEMENT_ROW),
        ],
        "soft_delete",
    )
    assert shown(versions(source)) == [("d", 310, "Gil", None), *ALL]
    assert shown(versions(source, ("fr", 1))) == [("t", 350, None, None), ("u", 110, "Eve", None)]
    assert shown(versions(source, ("at", 1))) == [("d", 2, "Ida", None)]
    assert shown(versions(source, ("ch", 1))) == [("t", 3, None, None)]
    found = versions(source, ("at", 1))
    assert "_is_deleted" not in found.rows.column_names
    assert versions(source, columns=["name", "_is_deleted"]).rows.column_names[-2:] == ["name", "_changed"]
    source.store.delete([one.key for one in stored_windows(source.store, "shop")])
    assert shown(versions(source)) == [("d", 310, "Gil", None)]


@pytest.mark.parametrize("mode", ["scd2", "append"])
def test_tables_of_other_modes_are_refused(source, mode):
    source.merged([], mode)
    with pytest.raises(
        ConfigError, match=f"it is in {mode} mode, and archived versions are those of mirror and soft_delete tables"
    ):
        versions(source)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"filters": [{"tables": "shop.people", "where": "id > 5"}]}, "the source file filters its rows"),
        (
            {"routes": [{"tables": "shop.people", "into": "shop.people"}]},
            "a route makes it, perhaps from several tables",
        ),
    ],
    ids=["filters", "routes"],
)
def test_tables_that_do_not_follow_from_their_batches_are_refused(tmp_path, changed, message):
    source = Source(tmp_path, **changed)
    source.window(change("c", 10, "Ada"))
    source.merged([])
    with pytest.raises(ConfigError, match=message):
        versions(source)


def test_a_table_that_no_merge_of_the_source_wrote_is_refused(source):
    """By its marker: none, or that of another source of the same name."""
    made = source.lake.make("people", [row("de", 1, "Ada")])
    source.cursors(source_uuid="one")
    with pytest.raises(ConfigError, match="no merge of this source wrote it"):
        versions(source)
    source.lake.add(made, [], Marker(merged_to=Point(1, 1, 304), source_uuid="another"))
    with pytest.raises(ConfigError, match="it is of another source of the same name"):
        versions(source)


def test_a_reader_without_the_store_is_refused(source):
    source.merged([])
    with Lake.open(source.config) as lake, pytest.raises(ConfigError, match=r"Lake.open\(config, store"):
        lake.table("shop.people").archived_versions(("de", 1))
    with source.opened() as lake, pytest.raises(ConfigError, match="reads waiting changes"):
        lake.table("shop.people", fresh=True).archived_versions(("de", 1))
