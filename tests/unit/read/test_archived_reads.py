"""Rows that snapshots read, as versions of a mirror's rows beside the changes of the binlog; no server, no Spark."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cdc_lib.errors import BatchesMissing, CorruptBatch
from cdc_lib.model.position import Point
from cdc_lib.model.row_selection import RowSelection
from cdc_lib.model.schema import SourceType
from cdc_lib.store.windows import stored_windows
from tests.harness.lake.archived_source import Source, change, shown, time, versions
from tests.harness.lake.batches import INT, TEXT, table
from tests.harness.lake.small_lake import row


@pytest.fixture
def source(tmp_path):
    """Two keys were read at 50; the first is updated later."""
    made = Source(tmp_path)
    made.window()
    made.chunk(50, "Ada", "Bo")
    made.window(change("u", 110, "Eve"))
    return made


def merged(source, last=110, marks=(("s1", 50),)):
    source.merged([row("de", 1, "lake", last), row("de", 2, "Bo", 50) | {"_row": -1}], marks=marks)


def test_the_row_that_a_snapshot_read_is_the_first_version(source):
    """With the low watermark as its position and the time of its SELECT; the first change is compared with it."""
    merged(source)
    found = versions(source)
    assert shown(found) == [("u", 110, "Eve", ["name"]), ("r", 50, "Ada", None)]
    first = found.rows.to_pylist()[-1]
    assert (first["_ts"], first["_row"], first["raw"]) == (time(50), -1, b"\x00\xff")
    assert shown(versions(source, ("de", 2))) == [("r", 50, "Bo", None)]
    assert shown(versions(source, ("de", 3))) == []
    assert shown(versions(source, limit=1)) == shown(found)[:1]
    assert shown(versions(source, until=time(110))) == shown(found)[1:]
    assert (found.complete_from, found.why) == (Point(1, 1, 4), "earlier batches are not stored")


@pytest.mark.parametrize(
    ("read", "changes", "expected"),
    [
        ("Ada", [("u", "Eve")], ["Eve", "Ada"]),
        ("Eve", [("u", "Eve")], ["Eve"]),
        ("Eve", [("u", "Eve"), ("u", "Fay")], ["Fay", "Eve"]),
        ("Ada", [("u", "Eve"), ("u", "Ada")], ["Ada", "Eve"]),
        ("Ada", [("d", "Ada")], ["Ada", "Ada"]),
        ("Ada", [("d", "Ada"), ("c", "Eve")], ["Eve", "Ada", "Ada"]),
        ("Ada", [("c", "Ada"), ("u", "Eve")], ["Eve", "Ada"]),
        ("odd", [("c", "Ada")], ["Ada"]),
    ],
    ids=["before", "after", "between", "either", "deleted", "deleted-and-new", "new", "no-row-before"],
)
def test_a_change_between_the_watermarks_may_be_in_the_row(tmp_path, read, changes, expected):
    """The row is a version if it shows what no change between them made: then it was read before the first one."""
    source = Source(tmp_path)
    source.chunk(50, read, high=90)
    source.window(
        *(change(op, 50 + number, name) for number, (op, name) in enumerate(changes)), change("u", 90, "last")
    )
    merged(source, 90)
    assert [one[2] for one in shown(versions(source))] == ["last", *expected]


def test_a_row_that_is_read_again_is_a_version_only_if_it_differs(source):
    """The state began with the earlier one. What was lost in between shows as a difference."""
    source.window(change("d", 210, "Eve"))
    for number, names in enumerate((["Eve", "Bo"], ["Eve", "Bo"], ["Eve", "Ida"]), 2):
        source.chunk(200 + 20 * number, *names, snapshot=f"s{number}")
    merged(source, 210, [("s1", 50), ("s2", 240), ("s3", 260), ("s4", 280)])
    assert shown(versions(source, ("de", 2))) == [("r", 280, "Ida", ["name"]), ("r", 50, "Bo", None)]
    deleted = [("d", 210, "Eve", None), ("u", 110, "Eve", ["name"]), ("r", 50, "Ada", None)]
    assert shown(versions(source)) == [("r", 240, "Eve", None), *deleted]


def test_only_reads_that_the_history_reaches_are_versions(source):
    """Not those from before the first stored change, and not those of a snapshot that the lake does not have."""
    source.chunk(150, "no", snapshot="waits")
    source.window()
    merged(source)
    assert shown(versions(source)) == [("u", 110, "Eve", ["name"]), ("r", 50, "Ada", None)]
    source.remove_first_window()
    assert shown(versions(source)) == [("u", 110, "Eve", None)]
    assert shown(versions(source, ("de", 2))) == [("r", 50, "Bo", None)]  # of the lake


def test_reads_alone_tell_since_when_versions_are_known(source):
    """No change of the binlog has a time; else the earlier of both counts, because all changes after the read are stored."""
    source.store.delete([one.key for one in stored_windows(source.store, "shop")])
    source.chunk(204, "Ada", snapshot="s2")
    merged(source, 203, marks=[("s2", 204)])
    found = versions(source)
    assert shown(found)[0] == ("r", 204, "Ada", ["name"])
    assert found.complete_since == time(0)


def test_of_many_chunks_one_is_read(tmp_path):
    """By their last keys, as far as these are numbers or times: after a text all chunks of that text may have a key."""
    source = Source(tmp_path)
    source.window()
    source.schema = replace(source.schema, primary_key=("id", "country"))
    lake_key = ("id", "country")
    for number in range(20):
        source.chunk(
            50, *[None] * number, f"n{number}", number=number, last=number == 19, last_key=(str(number + 1), "6465")
        )
    source.merged([], marks=[("s1", 50)], key=lake_key)
    for info in source.store.list("shop/snapshots/"):
        if info.key.endswith(".parquet") and "/000007/" not in info.key and "/000008/" not in info.key:
            source.store.delete([info.key])
    assert shown(versions(source, (8, "de"))) == [("r", 50, "n7", None)]
    with pytest.raises(CorruptBatch):
        versions(source, (5, "de"))


def test_chunks_of_ranges_are_in_the_order_of_their_keys(tmp_path):
    """Whatever order they were read in; one range has no rows. The row has the watermark of its own chunk."""
    source = Source(tmp_path)
    source.window()
    source.schema = replace(source.schema, primary_key=("id", "country"))
    chunks = [(2, 0, 40, 8, 9), (0, 0, 50, 1, 3), (0, 1, 60, 4, 5), (2, 1, 70, 10, 11), (1, 0, 80, 0, 0)]
    for range_number, number, low, first, last in chunks:
        names = [f"n{key}" if first <= key <= last else None for key in range(1, last + 1)]
        more = {"last_key": (str(last), "6465")} if last else {}
        source.chunk(low, *names, number=number, of_range=(range_number, 3), **more)
    source.merged([], marks=[("s1", 40)], key=("id", "country"))
    found = {key: shown(versions(source, (key, "de"))) for key in range(1, 13)}
    lows = {key: low for _, _, low, first, last in chunks if last for key in range(first, last + 1)}
    assert found == {key: [("r", lows[key], f"n{key}", None)] if key in lows else [] for key in range(1, 13)}


def test_a_read_has_the_columns_of_its_time(tmp_path):
    """An added column is null and was not changed, a dropped one is left out, and what another type cannot hold is an error."""
    source = Source(tmp_path)
    source.window()
    before = {"country": TEXT, "id": INT, "raw": SourceType("bytes"), "dropped": TEXT}
    old = table("shop.people", before, key=("country", "id"))
    values = {"country": "de", "id": 1, "raw": b"\x00\xff", "dropped": "x"}
    source.batches.chunk(old, 50, [values])
    source.window(change("u", 110, "Eve"))
    merged(source)
    assert shown(versions(source)) == [("u", 110, "Eve", []), ("r", 50, None, None)]


def test_a_read_before_columns_were_renamed_or_under_another_key_is_no_version(tmp_path):
    """It cannot be compared with the lake's rows."""
    source = Source(tmp_path)
    source.window()
    source.chunk(50, "Ada")
    source.window(change("u", 130, "Eve"), statements=[("rename_columns", "shop.people", 120)])
    source.batches.chunk(replace(source.schema, primary_key=("id",)), 140, [change("r", 1, "no").values], snapshot="s2")
    merged(source, 130, marks=[("s1", 50), ("s2", 140)])
    assert shown(versions(source)) == [("u", 130, "Eve", None)]


def test_a_chunk_that_is_removed_meanwhile_is_no_version_and_a_lost_file_is_an_error(source):
    """What one reader has read of it, it keeps."""
    merged(source)
    with source.opened() as lake:
        reader = lake.table("shop.people")
        assert shown(reader.archived_versions(("de", 2))) == [("r", 50, "Bo", None)]
        files = [info.key for info in source.store.list("shop/snapshots/") if info.key.endswith(".parquet")]
        source.store.delete(files)
        with pytest.raises(CorruptBatch):
            reader.archived_versions(("de", 1))
        source.store.delete([info.key for info in source.store.list("shop/snapshots/")])
        with pytest.raises(BatchesMissing, match="a batch was removed while it was read"):
            reader.archived_versions(("de", 1))
        reader.refresh()
        assert shown(reader.archived_versions(("de", 1))) == [("u", 110, "Eve", None)]


@pytest.mark.parametrize(
    ("bounds", "deleted"),
    [((1, 1), True), ((None, 5), True), ((2, None), False), ((None, 0), False), (("zero", None), True)],
    ids=["key", "up-to", "after", "before", "unknown"],
)
def test_a_row_that_a_range_lacked_is_deleted_with_it(tmp_path, bounds, deleted):
    """At the low watermark, where the lake deleted it; a range that has not the key did not. An insert comes after it."""
    source = Source(tmp_path)
    source.schema = replace(source.schema, primary_key=("id", "country"))
    source.window(change("c", 50, "Ada"))
    lower, upper = (None if one is None else (str(one),) for one in bounds)
    part = RowSelection(("id", "country"), lower, upper)
    source.chunk(80, None, None, "other", snapshot="s1", part=part)
    source.merged([], to=104, marks={"s1": 80}, partial=("s1",), key=("id", "country"))
    delete = [("d", 80, "Ada", None)] if deleted else []
    with source.opened() as lake:
        reader = lake.table("shop.people")
        assert shown(reader.archived_versions((1, "de"))) == [*delete, ("c", 50, "Ada", None)]
        assert shown(reader.archived_versions((1, "de"), limit=1)) == [*delete, ("c", 50, "Ada", None)][:1]
        assert shown(reader.archived_versions((9, "de"))) == []
