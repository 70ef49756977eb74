"""What every object store does: one suite over a local folder, a real S3 server, and a server of Google Cloud Storage."""

from __future__ import annotations

import hashlib
import os
import random
from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cdc_lib.errors import ConfigError, CorruptBatch
from tests.harness.processes.races import at_once
from tests.harness.store.stores import KINDS, LISTS_UNFINISHED, empty_store


@pytest.fixture(params=KINDS)
def store(request, tmp_path):
    return empty_store(request.param, request, tmp_path)


class Stopped(Exception):
    """Whatever stops a writer in the middle."""


def write_and_stop(store, key, size):
    with store.open_write(key) as file:
        file.write(os.urandom(size))
        raise Stopped


def keys(store, prefix=""):
    return [info.key for info in store.list(prefix)]


def test_an_object_comes_back_as_it_was_put(store):
    """Any bytes, none at all included."""
    for data in (b"", b"\x00\xff\r\n", "日本".encode(), os.urandom(100_000)):
        etag = store.put("shop/a.bin", data)
        assert store.get("shop/a.bin") == type(store.get("shop/a.bin"))(data, etag)


def test_a_missing_object_is_none(store):
    """Neither a name of nothing nor a name of a folder is an object."""
    store.put("shop/batches/x/manifest.json", b"{}")
    assert store.get("shop/none") is None
    assert store.get("shop/batches") is None
    assert store.get("shop/batches/x/manifest.json/below") is None


def test_put_writes_over_and_the_etag_follows_the_contents(store):
    """Other contents have another etag."""
    first, second = store.put("a", b"1"), store.put("a", b"2")
    assert first != second
    assert store.get("a").data == b"2"
    assert store.get("a").etag == second


def test_put_if_absent_writes_once(store):
    """The second writer is refused, and changes nothing."""
    assert store.put_if_absent("shop/m.json", b"first") is True
    assert store.put_if_absent("shop/m.json", b"second") is False
    assert store.put_if_absent("shop/m.json", b"first") is False
    assert store.get("shop/m.json").data == b"first"


def test_put_if_absent_writes_again_after_a_delete(store):
    """What was deleted is absent."""
    store.put("a", b"1")
    store.delete(["a"])
    assert store.put_if_absent("a", b"2") is True


def test_put_if_match_writes_over_the_etag_it_was_given(store):
    """It returns the etag by which the next one continues."""
    etag = store.put("c", b"1")
    for number in range(2, 6):
        etag = store.put_if_match("c", str(number).encode(), etag)
        assert etag == store.get("c").etag
    assert store.get("c").data == b"5"


def test_put_if_match_refuses_an_old_etag(store):
    """The object stays as somebody else wrote it."""
    old = store.put("c", b"1")
    store.put("c", b"2")
    assert store.put_if_match("c", b"3", old) is None
    assert store.get("c").data == b"2"


def test_put_if_match_refuses_a_deleted_object(store):
    """A deleted object has no etag any more."""
    etag = store.put("c", b"1")
    store.delete(["c"])
    assert store.put_if_match("c", b"2", etag) is None
    assert store.get("c") is None


def test_of_sixteen_creators_exactly_one_wins(store):
    """Ten times over, and the object is the winner's."""
    for turn in range(10):
        won = at_once(lambda n, key=f"m/{turn}": store.put_if_absent(key, f"writer {n}".encode()))
        assert won.count(True) == 1
        assert store.get(f"m/{turn}").data == f"writer {won.index(True)}".encode()


def test_of_sixteen_swappers_exactly_one_wins(store):
    """Ten times over, and the object is the winner's."""
    etag = store.put("c", b"start")
    for turn in range(10):
        got = at_once(lambda n, turn=turn, etag=etag: store.put_if_match("c", f"{turn} writer {n}".encode(), etag))
        winners = [n for n, new in enumerate(got) if new]
        assert len(winners) == 1
        etag = got[winners[0]]
        assert store.get("c").data == f"{turn} writer {winners[0]}".encode()
        assert store.get("c").etag == etag


def test_a_reader_sees_one_version_whole(store):
    """Never a mixture, never a part, never nothing, while others write over it."""
    size = 200_000
    store.put("c", b"0" * size)

    def work(number):
        if number < 2:
            return [store.put("c", str(turn % 10).encode() * size) for turn in range(20)]
        return [store.get("c").data for _ in range(20)]

    seen = at_once(work, 4)[2:]
    assert all(len(data) == size and len(set(data)) == 1 for each in seen for data in each)


def test_streaming_twenty_megabytes_keeps_every_byte(store):
    """More than one part of a multipart upload, in pieces of any size."""
    digest, pieces = hashlib.sha256(), random.Random(7)
    written = 0
    with store.open_write("big/part-00000.parquet") as file:
        while written < 20_000_000:
            piece = pieces.randbytes(pieces.choice([1, 700, 65_536, 3_000_000]))
            assert file.write(piece) == len(piece)
            digest.update(piece)
            written += len(piece)
            assert file.tell() == written
    with store.open_read("big/part-00000.parquet") as file:
        assert hashlib.sha256(file.read()).hexdigest() == digest.hexdigest()
    (info,) = store.list("big/")
    assert info.size == written


@pytest.mark.parametrize("size", [0, 1, 16 << 20, (16 << 20) + 1, 40 << 20])
def test_streams_of_sizes_around_a_part_are_whole(store, size):
    """One write of everything is the same as many."""
    data = os.urandom(size)
    with store.open_write("x") as file:
        file.write(data)
    assert store.get("x").data == data


def test_a_stream_is_invisible_until_its_block_ends(store):
    """Neither reading nor listing shows it, however much of it was sent."""
    with store.open_write("big/file") as file:
        file.write(os.urandom(20 << 20))
        assert store.get("big/file") is None
        assert keys(store) == []
    assert keys(store) == ["big/file"]


def test_an_aborted_stream_leaves_nothing(store):
    """The error continues its way, and no object is there."""
    for size in (10, 20 << 20):
        with pytest.raises(Stopped):
            write_and_stop(store, "big/file", size)
        assert store.get("big/file") is None
        assert keys(store) == []


@pytest.mark.parametrize("store", [kind for kind in KINDS if kind in LISTS_UNFINISHED], indirect=True)
def test_unfinished_writes_of_a_crashed_process_are_found_and_discarded(store):
    """By when it was touched last and by where its object would be; what others write continues."""
    now = datetime.now(UTC)
    died = store.open_write("shop/big/file")
    died.__enter__().write(os.urandom(40 << 20))  # and never comes to its end
    store.put("shop/whole", b"data")
    assert store.unfinished("shop/", now - timedelta(days=1)) == []
    assert store.unfinished("stock/", now + timedelta(days=1)) == []
    (found,) = store.unfinished("shop/", now + timedelta(days=1))
    assert found.key.startswith("shop/big")
    assert abs(found.modified - now) < timedelta(minutes=10)
    store.discard([found])
    store.discard([found])
    assert store.unfinished("shop/", now + timedelta(days=1)) == []
    assert keys(store) == ["shop/whole"]


def test_an_aborted_stream_leaves_the_old_object(store):
    """What stood there before stands there still."""
    store.put("big/file", b"old")
    with pytest.raises(Stopped):
        write_and_stop(store, "big/file", 20 << 20)
    assert store.get("big/file").data == b"old"


def test_a_file_that_the_writer_closed_is_still_written(store):
    """Libraries close what they are given."""
    with store.open_write("x") as file:
        file.write(b"data")
        file.close()
    assert store.get("x").data == b"data"


def test_a_parquet_file_is_written_and_read_as_a_stream(store):
    """Row group after row group out, and by footer and columns back."""
    table = pa.table({"id": list(range(50_000)), "name": [f"name {n}" for n in range(50_000)]})
    with store.open_write("t/part-00000.parquet") as file, pq.ParquetWriter(file, table.schema) as writer:
        for start in range(0, table.num_rows, 10_000):
            writer.write_table(table.slice(start, 10_000))
    with store.open_read("t/part-00000.parquet") as file:
        parquet = pq.ParquetFile(file)
        assert parquet.num_row_groups == 5
        assert parquet.read_row_group(3, ["name"]) == table.slice(30_000, 10_000).select(["name"])
        assert parquet.read() == table


def test_reading_starts_at_any_offset(store):
    """Seek from the beginning, from here and from the end, and read past the end."""
    data = os.urandom(1_000_000)
    store.put("x", data)
    with store.open_read("x") as file:
        assert file.seekable()
        assert file.read(4) == data[:4]
        assert file.seek(-8, os.SEEK_END) == len(data) - 8
        assert file.read() == data[-8:]
        assert file.read() == b""
        assert file.seek(500_000) == 500_000
        assert file.read(10) == data[500_000:500_010]
        assert file.seek(-5, os.SEEK_CUR) == 500_005
        assert file.read(300_000) == data[500_005:800_005]
        file.seek(0)
        assert file.read() == data


def test_opening_an_object_that_is_not_there_says_so(store):
    """By the error of a batch that lost a file, with its name."""
    with pytest.raises(CorruptBatch, match=r"shop/none\.parquet"):
        store.open_read("shop/none.parquet")
    for lost, way_out in (
        ("shop/batches/000001/w/a/part-00000.parquet", "cdc batches refill shop writes it again"),
        ("shop/snapshots/s/a/0/part-00000.parquet", "cdc snapshot shop TABLE reads its table again"),
    ):
        with pytest.raises(CorruptBatch, match="no such object") as error:
            store.open_read(lost)
        assert way_out in error.value.hint


def test_a_listing_comes_in_the_order_of_keys(store):
    """Not in the order of folders: a dash and a dot come before a slash, a letter after it."""
    unordered = ["a/c", "a/b/2", "a-b", "a.b", "a/b/10", "ab", "a/b-1", "B", "a/ü", "a/b.x/y"]
    for key in random.Random(1).sample(unordered, len(unordered)):
        store.put(key, b"")
    assert keys(store) == sorted(unordered)


def test_a_listing_takes_any_beginning_of_a_key(store):
    """Also one that ends in the middle of a name."""
    for key in ("s/b/000001/x", "s/b/000001-y", "s/b/000002/x", "s2/b", "s/c"):
        store.put(key, b"")
    assert keys(store, "s/b/000001") == ["s/b/000001-y", "s/b/000001/x"]
    assert keys(store, "s/b/000001/") == ["s/b/000001/x"]
    assert keys(store, "s/") == ["s/b/000001-y", "s/b/000001/x", "s/b/000002/x", "s/c"]
    assert keys(store, "s/b/000002/x") == ["s/b/000002/x"]
    assert keys(store, "nothing/here") == []


def test_a_listing_of_more_than_one_page_is_whole(store):
    """S3 gives a thousand at a time, and deletes a thousand at a time."""
    names = [f"many/{n:04d}" for n in range(1_050)]
    at_once(lambda n: [store.put(name, b"") for name in names[n::8]], 8)
    assert keys(store, "many/") == names
    store.delete(names[1:])
    assert keys(store) == names[:1]


def test_a_listing_has_size_and_time(store):
    """Bytes, and a time in UTC."""
    store.put("a", b"12345")
    (info,) = store.list("")
    assert info.size == 5
    assert info.modified.tzinfo is UTC
    assert abs(datetime.now(UTC) - info.modified) < timedelta(minutes=1)


def test_deleting_what_is_not_there_is_no_error(store):
    """And the others of the same call go."""
    store.put("d/a", b"")
    store.put("d/b", b"")
    store.delete(["d/none", "d/a", "elsewhere/none"])
    store.delete([])
    assert keys(store) == ["d/b"]


@pytest.mark.parametrize(
    "key", ["", "/a", "a//b", "a/", "../a", "a/../b", "a/./b", ".locks/00", "a/.tmp-1", "a\\b", "a\nb", "x" * 201]
)
def test_keys_that_lead_elsewhere_are_refused(store, key):
    """By every method, before anything is written."""
    calls = [
        lambda: store.get(key),
        lambda: store.put(key, b""),
        lambda: store.put_if_absent(key, b""),
        lambda: store.put_if_match(key, b"", "etag"),
        lambda: store.open_write(key).__enter__(),
        lambda: store.open_read(key),
        lambda: store.delete([key]),
        lambda: store.url(key),
    ]
    for call in calls:
        with pytest.raises(ConfigError):
            call()
    assert keys(store) == []


def test_a_prefix_that_leads_elsewhere_is_refused(store):
    """The same holds for listings."""
    for prefix in ("/", "/etc/", "../", "a/../../b"):
        with pytest.raises(ConfigError):
            list(store.list(prefix))


def test_the_probe_leaves_nothing(store):
    """A store that keeps the conditions gives no finding."""
    store.probe()
    assert keys(store) == []
