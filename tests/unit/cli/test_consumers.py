"""The commands about consumers of the batches: tail, consumers, gc, cursor export and restore; no server is needed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from cdc_lib.cli.errors import EXIT_STATUS
from cdc_lib.consumers.subscribe import Holder, subscribe
from cdc_lib.model.cursor import DRAIN, LAKE, Cursor
from cdc_lib.store import layout
from cdc_lib.store.cursors import ObjectCursorStore
from cdc_lib.store.objects.local import LocalStore
from tests.harness.lake.batches import IDENTITY, INT, TEXT, BatchWriter, Row, at, table

A = table("shop.a", {"id": INT, "v": TEXT})
B = table("shop.b", {"id": INT})
LONG_AGO = datetime(2025, 1, 1, tzinfo=UTC).timestamp()


@pytest.fixture
def store(tmp_path):
    return LocalStore(tmp_path / "store")


@pytest.fixture
def batches(store):
    """Three windows that the drain and the lake have acknowledged, the first two of them old."""
    writer = BatchWriter(store)
    keys = [
        writer.window(4, 100, {A: [Row("c", 10, {"id": 1, "v": "é"}), Row("c", 10, {"id": 2}, row=1)]}),
        writer.window(100, 200, {A: [Row("u", 110, {"id": 1, "v": "b"})], B: [Row("c", 105, {"id": 7})]}),
        writer.window(200, 300, {A: [Row("d", 210, {"id": 2, "v": None})]}),
    ]
    for key in keys[:2]:
        age(store, key)
    cursors = ObjectCursorStore(store)
    for name in (DRAIN, LAKE):
        cursors.swap(None, Cursor("shop", name, 0, 1, IDENTITY, at(300)))
    return writer


def age(store, key):
    """Let everything in the folder of a manifest be of long ago."""
    for info in store.list(key.rpartition("/")[0]):
        os.utime(store.root / info.key, (LONG_AGO, LONG_AGO))


def windows(store):
    return [info.key.split("/")[3][-12:] for info in store.list("shop/batches") if info.key.endswith(layout.MANIFEST)]


def read(store, name, *, ack=1):
    """Let a consumer get one window after another and acknowledge some of them."""
    with subscribe(store, ObjectCursorStore(store), "shop", name) as subscription:
        for _ in range(ack):
            subscription.get(1).ack()


def test_the_tail_has_the_fields_of_canals_entries(cdc, batches):
    """Header, event type and columns; before images where there are some, and nothing that the binlog does not tell."""
    lines = [json.loads(line) for line in cdc("tail", "shop").stdout.splitlines()]
    assert [(one["header"]["tableName"], one["eventType"], len(one["rowDatas"])) for one in lines] == [
        ("a", "INSERT", 2), ("b", "INSERT", 1), ("a", "UPDATE", 1), ("a", "DELETE", 1),
    ]  # fmt: skip
    assert lines[0]["header"] == {
        "logfileName": "binlog.000001", "logfileOffset": 10, "serverId": 1, "executeTime": 1767225610000,
        "schemaName": "shop", "tableName": "a", "eventType": "INSERT", "gtid": None,
    }  # fmt: skip
    first = lines[0]["rowDatas"][0]
    assert first["beforeColumns"] == []
    assert first["afterColumns"] == [
        {"index": 0, "name": "id", "sqlType": 4, "mysqlType": "int", "isKey": True, "updated": True, "isNull": False,
         "value": "1"},
        {"index": 1, "name": "v", "sqlType": 12, "mysqlType": None, "isKey": False, "updated": True, "isNull": False,
         "value": "é"},
    ]  # fmt: skip
    update, delete = lines[2]["rowDatas"][0], lines[3]["rowDatas"][0]
    assert update["beforeColumns"] == []
    assert [column["updated"] for column in update["afterColumns"]] == [None, None]
    assert delete["afterColumns"] == []
    assert [(c["value"], c["isNull"], c["updated"]) for c in delete["beforeColumns"]] == [
        ("2", False, False), (None, True, False),
    ]  # fmt: skip


def test_the_tail_of_some_tables_and_from_the_end(cdc, batches):
    """Without a consumer nothing is remembered."""
    for _ in range(2):
        lines = cdc("tail", "shop", "--tables", "shop.b").stdout.splitlines()
        assert [json.loads(line)["header"]["tableName"] for line in lines] == ["b"]
    assert cdc("tail", "shop", "--start", "latest").stdout == ""
    assert cdc("tail", "shop", "--tables", "b").exit_code == 2


def test_the_tail_of_a_consumer_goes_on_where_it_ended(cdc, batches, store):
    """What was printed is acknowledged, and its tables are remembered."""
    assert len(cdc("tail", "shop", "--consumer", "audit", "--tables", "*.a").stdout.splitlines()) == 3
    assert cdc("tail", "shop", "--consumer", "audit").stdout == ""
    batches.window(300, 400, {A: [Row("c", 310, {"id": 3})], B: [Row("c", 320, {"id": 8})]})
    cursors = ObjectCursorStore(store)
    cursors.swap(drain := cursors.load("shop", DRAIN), Cursor("shop", DRAIN, 0, 1, drain.identity, at(400)))
    (line,) = cdc("tail", "shop", "--consumer", "audit").stdout.splitlines()
    assert json.loads(line)["header"]["logfileOffset"] == 310


def test_a_closed_pipe_ends_the_tail_without_an_error_and_unread_batches_come_again(sources, batches, store):
    """As with `cdc tail ... | head`."""
    many = [Row("c", 400 + n, {"id": n, "v": "x" * 200}) for n in range(5000)]
    batches.window(300, 9000, {A: many})
    cursors = ObjectCursorStore(store)
    cursors.swap(drain := cursors.load("shop", DRAIN), Cursor("shop", DRAIN, 0, 1, drain.identity, at(9000)))
    command = [sys.executable, "-m", "cdc_lib.cli", "--sources", str(sources), "tail", "shop", "--consumer", "pipe"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert json.loads(process.stdout.readline())["eventType"] == "INSERT"
        process.stdout.close()
        assert process.stderr.read() == ""
        assert process.wait(60) == 0
    assert cursors.load("shop", "pipe").position == at(4)


def test_an_interrupted_command_ends_with_the_documented_status(sources, batches):
    """As shells expect it of Ctrl-C."""
    command = [sys.executable, "-m", "cdc_lib.cli", "--sources", str(sources), "tail", "shop", "--follow"]
    # A shell without job control starts what runs in the background with SIGINT ignored, and children inherit that.
    heeds = "import runpy, signal; signal.signal(signal.SIGINT, signal.default_int_handler); "
    command[1:3] = ["-c", heeds + "runpy.run_module('cdc_lib.cli', run_name='__main__', alter_sys=True)"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout.readline()
            process.send_signal(signal.SIGINT)
            assert process.wait(60) == 130
        finally:
            process.kill()
    assert "130 interrupted" in EXIT_STATUS


def test_consumers_are_listed_with_what_they_hold_back(cdc, batches, store):
    """The lake is one of them; status shows it too."""
    read(store, "audit")
    found = {one["name"]: one for one in json.loads(cdc("consumers", "list", "shop", "--json").stdout)}
    assert (found["audit"]["pending_windows"], found["audit"]["holding"], found["lake"]["pending_windows"]) == (2, 1, 0)
    assert found["audit"]["lag_seconds"] > 86_400
    for command in (("consumers", "list"), ("status",)):
        assert "shop: kept for audit: 1 old batch;" in cdc(*command, "shop").stdout


def test_a_dropped_consumer_holds_no_batches_and_can_be_restored(cdc, batches, store):
    """The cursors of the pipeline cannot be dropped."""
    read(store, "audit")
    output = cdc("consumers", "drop", "shop", "audit", "--yes").stdout
    assert ObjectCursorStore(store).load("shop", "audit") is None
    key = output.strip().rpartition("--replaced ")[2]
    assert cdc("cursor", "restore", "shop", "audit", "--replaced", key, "--yes").exit_code == 0
    assert ObjectCursorStore(store).load("shop", "audit").position == at(100)
    assert cdc("consumers", "drop", "shop", LAKE, "--yes").exit_code == 2
    assert cdc("consumers", "drop", "shop", "nobody", "--yes").exit_code == 2


def test_gc_removes_what_all_have_read_and_nothing_else(cdc, batches, store):
    """A dry run first, which is the default; what is young, unread or after it stays."""
    read(store, "audit")
    before = windows(store)
    dry = cdc("batches", "gc", "shop")
    assert windows(store) == before
    assert "--yes removes it" in dry.stdout
    done = cdc("batches", "gc", "shop", "--yes").stdout
    assert windows(store) == before[1:]
    assert [info.key for info in store.list(f"shop/batches/000001/{before[0]}")] == []
    assert "kept: 2 windows: not acknowledged by audit" in done
    assert "audit holds back 1 window old enough to go" in done
    read(store, "audit", ack=2)
    assert "kept: 1 window: younger than store.keep_batches_for" in cdc("batches", "gc", "shop").stdout
    assert json.loads(cdc("batches", "gc", "shop", "--yes", "--json").stdout)["removed"] is True
    assert windows(store) == before[2:]
    assert "nothing to collect" in cdc("batches", "gc", "shop", "--yes").stdout
    assert [r["header"]["logfileOffset"] for r in map(json.loads, cdc("tail", "shop").stdout.splitlines())] == [210]


def test_gc_removes_orphans_once_no_drain_can_still_name_them(cdc, batches, store):
    """Parts of lost races, of drains that died, and unfinished writes; younger ones and those in flight stay."""
    folder = next(info.key for info in store.list("shop/batches")).rpartition("/manifest")[0].split("/")[3]
    lost = f"shop/batches/000001/{folder}/shop.a/part-00009.parquet"
    died = "shop/batches/000001/000001-000001.000000000050-000001.000000000077/shop.a/part-00000.parquet"
    ahead = "shop/batches/000001/000001-000001.000000000300-000001.000000000400/shop.a/part-00000.parquet"
    young = lost.replace("00009", "00010")
    for key in (lost, died, ahead, young):
        store.put(key, b"orphan")
    writing = store.root / "shop/batches/000001" / ".tmp-1234"
    writing.write_bytes(b"half")
    for path in (store.root / lost, store.root / died, store.root / ahead, writing):
        os.utime(path, (LONG_AGO, LONG_AGO))
    named = {info.key for info in store.list("shop/batches")} - {lost, died}
    read(store, "audit", ack=0)
    done = cdc("batches", "gc", "shop", "--yes").stdout
    assert {info.key for info in store.list("shop/batches")} == named
    assert not writing.exists()
    assert "unnamed file" in done
    assert "unfinished write" in done


def test_an_exported_cursor_is_restored_with_its_moves_on_record(cdc, batches, store, tmp_path):
    """It asks first; what it replaced can be put back; another source's is refused."""
    read(store, "audit")
    document = tmp_path / "audit.json"
    document.write_text(cdc("cursor", "export", "shop", "audit").stdout)
    read(store, "audit", ack=2)
    assert cdc("cursor", "restore", "shop", "audit", "--file", document).exit_code == 1
    assert ObjectCursorStore(store).load("shop", "audit").position == at(300)
    output = cdc("cursor", "restore", "shop", "audit", "--file", document, "--yes", "--why", "read wrongly").stdout
    held = ObjectCursorStore(store).load("shop", "audit")
    assert held.position == at(100)
    assert (held.moves[-1].kind, held.moves[-1].start, held.moves[-1].why) == ("restore", at(300), "read wrongly")
    assert "cdc cursor restore by" in held.moves[-1].by
    assert [move.kind for move in held.moves] == ["start", "ack", "ack", "ack", "restore"]
    key = output.strip().rpartition("--replaced ")[2]
    assert f"UTC: {key}" in cdc("cursor", "show", "shop", "audit").stdout
    assert cdc("cursor", "restore", "shop", "--replaced", key, "--yes").exit_code == 0
    assert ObjectCursorStore(store).load("shop", "audit").position == at(300)
    document.write_text(document.read_text().replace('"source": "shop"', '"source": "stock"'))
    refused = cdc("cursor", "restore", "shop", "--file", document, "--yes")
    assert refused.exit_code == 2
    assert "stock" in refused.stderr
    assert list(ObjectCursorStore(store).consumers("shop")) == ["audit", DRAIN, LAKE]


def test_a_cursor_is_not_restored_to_a_position_with_missing_batches(cdc, batches, store, tmp_path):
    """The lake would wait there for ever."""
    read(store, "audit", ack=0)
    document = tmp_path / "audit.json"
    document.write_text(cdc("cursor", "export", "shop", "audit").stdout)
    read(store, "audit", ack=3)
    cdc("batches", "gc", "shop", "--yes")
    refused = cdc("cursor", "restore", "shop", "audit", "--file", document, "--yes")
    assert refused.exit_code == 1
    assert "no longer stored" in refused.stderr
    assert ObjectCursorStore(store).load("shop", "audit").position == at(300)


def test_the_drain_does_not_go_back_before_the_lake_unless_both_do(cdc, batches, store, tmp_path):
    """Windows that are cut again need not begin where the lake continues; nor does it go back to an epoch that is over."""
    cursors = ObjectCursorStore(store)
    for name in (DRAIN, LAKE):
        held = cursors.load("shop", name)
        cursors.swap(held, replace(held, position=at(200)))
    document = tmp_path / "both.json"
    document.write_text(cdc("cursor", "export", "shop").stdout)
    for name in (DRAIN, LAKE):
        held = cursors.load("shop", name)
        cursors.swap(held, replace(held, position=at(300)))
    refused = cdc("cursor", "restore", "shop", DRAIN, "--file", document, "--yes")
    assert (refused.exit_code, "lake cursor is" in refused.stderr) == (2, True)
    assert cdc("cursor", "restore", "shop", "--file", document, "--yes").exit_code == 0
    assert [cursors.load("shop", name).position for name in (DRAIN, LAKE)] == [at(200), at(200)]


def test_neither_cursor_is_restored_when_one_of_them_cannot_be(cdc, batches, store, tmp_path):
    """Both are checked before either is written, and each against the other as it will stand."""
    cursors = ObjectCursorStore(store)
    document = tmp_path / "both.json"
    document.write_text(cdc("cursor", "export", "shop").stdout)
    held = cursors.load("shop", LAKE)
    cursors.swap(held, replace(held, position=at(200)))
    held = cursors.load("shop", DRAIN)
    cursors.swap(held, replace(held, epoch=2))
    before = [cursors.load("shop", name) for name in (DRAIN, LAKE)]
    refused = cdc("cursor", "restore", "shop", "--file", document, "--yes")
    assert (refused.exit_code, "epoch" in refused.stderr) == (2, True)
    assert [cursors.load("shop", name) for name in (DRAIN, LAKE)] == before
    assert list(store.list(layout.replaced_cursors_prefix("shop", LAKE))) == []
    mixed = json.loads(document.read_text())
    by_name = {one["consumer"]: one for one in mixed}
    by_name[DRAIN]["epoch"] = 2
    by_name[DRAIN]["position"] = by_name[LAKE]["position"] = {"file": at(4).file, "offset": 4}
    by_name[LAKE]["epoch"] = 3
    document.write_text(json.dumps(mixed))
    refused = cdc("cursor", "restore", "shop", "--file", document, "--yes")
    assert (refused.exit_code, "lake cursor is" in refused.stderr) == (2, True)
    assert [cursors.load("shop", name) for name in (DRAIN, LAKE)] == before


def test_two_tails_of_one_consumer_are_kept_apart(sources, cdc, batches, store):
    """The error names the holder."""
    with subscribe(store, ObjectCursorStore(store), "shop", "audit", holder=Holder("the first one")):
        refused = cdc("tail", "shop", "--consumer", "audit")
        shown = cdc("cursor", "show", "shop", "audit").stdout
    assert "held by the first one until" in shown
    assert "wants all tables; columns: all" in shown
    assert refused.exit_code == 1
    assert "held by the first one" in refused.stderr
    assert len(cdc("tail", "shop", "--consumer", "audit").stdout.splitlines()) == 4


def test_a_tail_that_follows_prints_what_is_drained_later(sources, batches, store):
    """Until it is stopped."""
    command = [sys.executable, "-m", "cdc_lib.cli", "--sources", str(sources), "tail", "shop"]
    command += ["--consumer", "follower", "--start", "latest", "--follow"]
    cursors = ObjectCursorStore(store)
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        until = time.monotonic() + 60
        while cursors.load("shop", "follower") is None and time.monotonic() < until:
            time.sleep(0.1)
        batches.window(300, 400, {A: [Row("c", 310, {"id": 3})]})
        cursors.swap(drain := cursors.load("shop", DRAIN), Cursor("shop", DRAIN, 0, 1, drain.identity, at(400)))
        assert json.loads(process.stdout.readline())["header"]["logfileOffset"] == 310
        process.terminate()


@pytest.mark.parametrize(
    "options",
    [
        ("audit", "--rebuild"),
        ("--file", "x.json", "--replaced", "k"),
        ("lake", "--rebuild", "--file", "x"),
    ],
)
def test_a_restore_has_one_origin(cdc, batches, options):
    """Which cursor is rebuilt, and from what, is never guessed."""
    refused = cdc("cursor", "restore", "shop", *options, "--yes")
    assert (refused.exit_code, "not clear which cursor" in refused.stderr) == (2, True)


def test_a_lost_drain_cursor_is_rebuilt_where_the_lake_is(cdc, batches, store):
    """Without an export; one that is there is not replaced."""
    cursors = ObjectCursorStore(store)
    assert cdc("cursor", "restore", "shop", DRAIN, "--rebuild", "--yes").exit_code == 2
    cursors.remove(cursors.load("shop", DRAIN))
    assert cdc("cursor", "restore", "shop", DRAIN, "--rebuild", "--yes").exit_code == 0
    assert cursors.load("shop", DRAIN).position == at(300)
