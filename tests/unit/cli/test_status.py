from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from cdc_lib.cli.output import duration, plain, size
from cdc_lib.cli.status import _INTERVAL
from cdc_lib.model.cursor import DRAIN, LAKE, Cursor, Move
from cdc_lib.model.merge_plan import Cut, TableCut
from cdc_lib.model.position import Point, Position
from cdc_lib.model.row_selection import RowSelection
from cdc_lib.model.server_identity import ServerIdentity
from cdc_lib.model.window import SnapshotTask, Window
from cdc_lib.store.cursors import ObjectCursorStore
from cdc_lib.store.cuts import publish
from cdc_lib.store.objects.local import LocalStore
from tests.harness.servers.process import free_port

AT = datetime(2026, 11, 21, 6, 0, tzinfo=UTC)
START, STOP = Position("binlog.000007", 4), Position("binlog.000007", 1234)


@pytest.fixture
def cursors(tmp_path):
    """The cursors of the source shop: one that moved, with work in flight, and one that did not."""
    store = ObjectCursorStore(LocalStore(tmp_path / "store"))
    identity = ServerIdentity("mysql", "uuid-1", 1, host="db", port=3306)
    first = Cursor("shop", DRAIN, 0, 1, identity, START)
    moved = first.acked(Window("shop", 1, START, STOP), at=AT, event_time=AT, by="a test")
    moved = moved.with_windows((Window("shop", 1, STOP, Position("binlog.000008", 4)),))
    moved = moved.with_snapshot(SnapshotTask("shop", 1, "s1", "shop", "orders", chunks=3))
    store.swap(None, moved)
    store.swap(None, replace(first, consumer=LAKE))
    return store


def test_cursors_are_shown_without_asking_the_server(cdc, cursors):
    """Position, work in flight and the last moves; the server is not there in this test."""
    result = cdc("cursor", "show", "shop")
    assert result.exit_code == 0
    assert "drain: binlog.000007:1234 in epoch 1 of mysql uuid-1 at db:3306" in result.stdout
    assert "in flight: 000001-000007.000000001234-000008.000000000004" in result.stdout
    assert "snapshot of shop.orders: 3 chunks so far" in result.stdout
    assert "a test" in result.stdout
    assert "lake: binlog.000007:4" in result.stdout


def test_cursors_are_printed_as_json(cdc, cursors):
    """With every field of the stored document."""
    drain, lake = json.loads(cdc("cursor", "show", "shop", "--json").stdout)
    assert (drain["consumer"], lake["consumer"]) == (DRAIN, LAKE)
    assert drain["position"] == {"file": "binlog.000007", "offset": 1234}
    assert drain["generation"] == 1
    assert drain["moves"][0]["at"] == "2026-11-21T06:00:00+00:00"


def test_before_the_first_drain_status_names_no_position_of_the_drain(cdc, cursors):
    """The drain cursor is where the first window will begin, and reading a snapshot there is draining too."""
    assert "no drain yet" not in cdc("status", "shop").stdout
    moved = cursors.load("shop", DRAIN)
    started = replace(
        moved, moves=(Move(AT, "start", None, START, "a test"),), position=START, in_flight=(), snapshots=()
    )
    begun = cursors.swap(moved, started)
    assert "no drain yet" in cdc("status", "shop").stdout
    cursors.swap(begun, replace(begun, snapshots=moved.snapshots))
    assert "no drain yet" not in cdc("status", "shop").stdout


def test_before_the_first_merge_status_names_no_position_of_the_lake(cdc, cursors, tmp_path):
    """The lake cursor is where the first merge will begin."""
    assert "no merge yet" in cdc("status", "shop").stdout
    publish(LocalStore(tmp_path / "store"), Cut("shop", "m1", 1, START, AT, AT, ()))
    assert "no merge yet" not in cdc("status", "shop").stdout


def test_status_shows_partial_snapshots_and_dropped_tables(cdc, cursors, tmp_path):
    """Until the lake has the part, and the table is made again."""
    part = RowSelection(("id",), ("5",), None, text="rows of shop.orders from 5 to the last", at=AT, by="somebody")
    drain = cursors.load("shop", DRAIN)
    task = SnapshotTask("shop", 1, "s2", "shop", "orders", chunks=2, selection=part)
    drain = cursors.swap(drain, drain.with_snapshot(task))
    dropped = TableCut("shop.old", "lake.shop.old", 7, 0, dropped=Point(1, 7, 99))
    publish(LocalStore(tmp_path / "store"), Cut("shop", "m1", 1, STOP, AT, AT, (dropped,)))
    output = cdc("status", "shop").stdout
    assert (
        "rows of shop.orders from 5 to the last are read again since 2026-11-21 06:00:00 UTC (somebody): 2 chunks"
        in output
    )
    assert "shop.old was dropped at source (000007:99); lake.shop.old is at its last state" in output
    assert "snapshot of rows of shop.orders from 5" in cdc("cursor", "show", "shop").stdout
    cursors.swap(drain, drain.with_snapshot(replace(task, chunks=0, complete=True)))
    assert "read again" not in cdc("status", "shop").stdout


def test_the_status_is_shown_again_until_an_interrupt(cdc, cursors, monkeypatch):
    """One answer for each look: the source may have moved, and its file may be another one."""
    looks = []

    def wait(seconds):
        looks.append(seconds)
        if len(looks) == 3:
            raise KeyboardInterrupt

    monkeypatch.setattr("cdc_lib.cli.status.time.sleep", wait)
    result = cdc("status", "--watch", "--json")
    assert result.exit_code == 130
    assert [[one["source"] for one in json.loads(line)] for line in result.stdout.splitlines()] == [["shop"]] * 3


def test_a_source_that_never_ran_has_no_cursors(cdc):
    """Which is no error."""
    result = cdc("cursor", "show", "shop")
    assert result.exit_code == 0
    assert "no cursors yet" in result.stdout


def test_one_source_that_cannot_be_asked_does_not_hide_the_others(cdc, sources):
    """Each has its line; the worst of them decides the exit code."""
    (sources / "bad.yaml").write_text("tables: []\n")
    result = cdc("status", "--json")
    bad, shop = json.loads(result.stdout)
    assert (bad["source"], bad["error"]["code"]) == ("bad", "config_error")
    assert bad["error"]["retryable"] is False
    assert (shop["source"], shop["error"]) == ("shop", None)
    assert result.exit_code == 2
    table = cdc("status")
    assert table.exit_code == 2
    assert "see below" in table.stdout
    assert "ConfigError" not in table.stdout
    assert "tables.include" in table.stderr
    assert "shop" in table.stdout


def test_without_an_answer_of_the_server_only_the_end_of_the_binlog_is_unknown(cdc, cursors):
    """Cursors are shown while the server is down, which is when users look; a line says why the rest is unknown."""
    result = cdc("status", "shop", "--json")
    (shop,) = json.loads(result.stdout)
    assert result.exit_code == 3
    assert [(one["who"], one["code"]) for one in shop["unanswered"]] == [("server", "source_unavailable")]
    assert (shop["binlog_end"], shop["pending_bytes"], shop["lag_seconds"]) == (None, None, None)
    assert shop["drain"]["position"] == {"file": "binlog.000007", "offset": 1234}
    assert shop["lake"]["position"] == {"file": "binlog.000007", "offset": 4}
    table = cdc("status", "shop")
    assert table.exit_code == 3
    assert "binlog.000007:1234" in table.stdout
    assert "1 window, 1 snapshot " in table.stdout
    assert "shop: the end of the binlog is unknown, because the server cannot be asked: " in table.stdout


def test_without_the_password_of_the_source_the_store_is_still_shown(cdc, cursors, monkeypatch):
    """In a fresh shell; the line names the variable."""
    monkeypatch.delenv("SHOP_PASSWORD")
    shown = cdc("status", "shop")
    assert shown.exit_code == 3
    assert "binlog.000007:1234" in shown.stdout
    assert "SHOP_PASSWORD" in shown.stdout


def test_the_watch_goes_on_while_neither_store_nor_server_can_be_asked(cdc, cursors, sources, monkeypatch):
    """And shows the store again when it is back. Without an answer of either, the exit status is that of an error."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "key")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    file = sources / "shop.yaml"
    here = file.read_text()
    away = here.replace(
        f'url: "file://{sources.parent}/store"', f'url: "s3://b/p", endpoint_url: "http://127.0.0.1:{free_port()}"'
    )
    assert away != here
    later = [away, here]

    def wait(seconds):
        if seconds != _INTERVAL:
            return  # of a client that tries again
        if not later:
            raise KeyboardInterrupt
        file.write_text(later.pop(0))

    monkeypatch.setattr("cdc_lib.cli.status.time.sleep", wait)
    looks = [json.loads(line)[0] for line in cdc("status", "shop", "--watch", "--json").stdout.splitlines()]
    assert [[one["who"] for one in look["unanswered"]] for look in looks] == [
        ["server"],
        ["store", "server"],
        ["server"],
    ]
    assert [bool(look["drain"]) for look in looks] == [True, False, True]
    file.write_text(away)
    shown = cdc("status", "shop")
    assert shown.exit_code == 1
    assert "shop: all but the end of the binlog is unknown, because the store cannot be read: " in shown.stdout
    assert "not started" not in shown.stdout


def test_a_folder_without_sources_is_reported(cdc, sources):
    """Instead of an empty table."""
    (sources / "shop.yaml").unlink()
    result = cdc("status")
    assert (result.exit_code, result.stdout) == (0, "no sources\n")


def test_the_doctor_reports_wrong_files_and_absent_servers_together(cdc, sources):
    """Problems and hints of every source."""
    (sources / "bad.yaml").write_text("tables: []\nserver: {host: h, password: x}\n")
    result = cdc("doctor", "--json")
    findings = {line["source"]: line for line in json.loads(result.stdout) if line["level"] == "error"}
    assert result.exit_code == 2
    assert "a password is never in a file" in findings["bad"]["what"]
    assert findings["shop"]["what"]
    text = cdc("doctor")
    assert text.exit_code == 2
    assert "2 errors" in text.stdout


def test_the_doctor_of_no_sources_says_so(cdc, sources):
    """And finds nothing wrong."""
    (sources / "shop.yaml").unlink()
    result = cdc("doctor")
    assert result.exit_code == 0
    assert "there are no source files in" in result.stdout


@pytest.mark.parametrize(
    ("count", "text"),
    [(None, "?"), (0, "0 B"), (1023, "1023 B"), (1536, "1.5 KiB"), (5 * 1024**3, "5.0 GiB"), (2**43, "8.0 TiB")],
)
def test_sizes_are_written_in_binary_units(count, text):
    """As the source file takes them."""
    assert size(count) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(None, "?"), (0.4, "0 s"), (119, "119 s"), (180, "3 min"), (9000, "2.5 h"), (259_200, "3.0 d")],
)
def test_durations_are_written_in_the_unit_that_says_most(seconds, text):
    """A lag is read at a glance."""
    assert duration(seconds) == text


def test_what_json_does_not_have_is_written_as_text(tmp_path):
    """Times with their zone, paths, tuples as lists."""
    assert plain({"a": AT, "b": (tmp_path, 1), 3: START}) == {
        "a": "2026-11-21T06:00:00+00:00",
        "b": [str(tmp_path), 1],
        "3": {"file": "binlog.000007", "offset": 4},
    }
