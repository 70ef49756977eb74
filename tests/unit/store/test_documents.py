"""Documents are for people too, and what is not understood in one is refused by name."""

from __future__ import annotations

import json

import pytest

from cdc_lib.errors import CorruptBatch
from cdc_lib.model.cursor import Cursor
from cdc_lib.model.position import Position
from cdc_lib.model.server_identity import ServerIdentity
from cdc_lib.model.window import SnapshotTask, Window
from cdc_lib.store.documents import dump, load, to_plain, unit_from_plain

WINDOW = Window("shop", 1, Position("binlog.000001", 4), Position("binlog.000002", 157))
CURSOR = Cursor("shop", "drain", 3, 1, ServerIdentity("mysql", "uuid", 1), WINDOW.start, in_flight=(WINDOW,))


def changed(model, **fields) -> bytes:
    return json.dumps({**json.loads(dump(model)), **fields}).encode()


def test_a_document_reads_as_a_person_would_write_it():
    """Format and kind first, one field a line, letters as they are."""
    text = dump(Window("läden", 1, WINDOW.start, WINDOW.stop)).decode()
    assert text == (
        '{\n  "format_version": 1,\n  "kind": "window",\n  "source": "läden",\n  "epoch": 1,\n'
        '  "start": {\n    "file": "binlog.000001",\n    "offset": 4\n  },\n'
        '  "stop": {\n    "file": "binlog.000002",\n    "offset": 157\n  }\n}\n'
    )


@pytest.mark.parametrize(
    ("data", "fault"),
    [
        (b"", "not JSON"),
        (dump(CURSOR)[:-20], "not JSON"),
        (b"\xff\xfe", "not JSON"),
        (b"[]", "not a JSON object"),
        (changed(CURSOR, format_version=2), "format_version 2"),
        (b'{"kind": "cursor"}', "format_version None"),
        (dump(WINDOW), "it is a window"),
        (changed(CURSOR, paused=True), "not known here: paused"),
        (changed(CURSOR, generation="3"), "generation"),
        (changed(CURSOR, generation=None), "generation"),
        (changed(CURSOR, event_time="yesterday"), "event_time"),
        (changed(CURSOR, position={"file": "binlog.000001", "offset": 4, "row": 1}), r"not known here: position\.row"),
        (changed(CURSOR, position={"file": "binlog", "offset": 4}), "not the name of a binlog file"),
        (changed(CURSOR, in_flight=[{**to_plain(WINDOW), "x": 1}]), r"in_flight\.0\.x"),
        (changed(CURSOR, identity={"flavor": "oracle", "server_uuid": "", "server_id": 1}), "flavor"),
    ],
)
def test_what_is_not_understood_is_refused_by_name(data, fault):
    """With the object's name, the fault and what to do."""
    with pytest.raises(CorruptBatch, match=fault) as caught:
        load(Cursor, data, "shop/cursors/drain.json")
    assert "shop/cursors/drain.json" in str(caught.value)
    assert caught.value.hint


def test_a_field_that_was_added_later_has_its_default():
    """So that a new version reads what an old one wrote."""
    plain = json.loads(dump(CURSOR))
    del plain["in_flight_snapshots"], plain["prepared"]
    assert load(Cursor, json.dumps(plain).encode(), "here") == CURSOR


def test_windows_and_snapshot_tasks_are_distinguished():
    """By their kind."""
    task = SnapshotTask("shop", 1, "s1", "shop", "orders")
    assert unit_from_plain(to_plain(task)) == task
    assert unit_from_plain(to_plain(WINDOW)) == WINDOW
    with pytest.raises(CorruptBatch):
        unit_from_plain(to_plain(CURSOR))
