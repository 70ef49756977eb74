"""Changes of a parent that change other tables, found in the bytes of a window; and readings that continue after a fault."""

from __future__ import annotations

import struct

import pytest

from cdc_lib.binlog import reader as reading
from cdc_lib.binlog.framing.receiver import Receiver
from cdc_lib.binlog.reader import WindowReader
from cdc_lib.binlog.rows.captured_tables import CapturedTables, skip_none
from cdc_lib.binlog.rows.cascades import CascadeWatch
from cdc_lib.binlog.rows.row_groups import WindowSinks
from cdc_lib.binlog.stream_facts import StreamFacts
from cdc_lib.errors import TableReplaced, UnknownEvent
from cdc_lib.model.cascades import Cascades, ForeignKey
from cdc_lib.model.position import Position
from cdc_lib.model.window import Window
from tests.harness.binlog.streams import FILE, Binlog, Rows, Wire

P, C, G, X = (("db", name) for name in "pcgx")
KEYS = Cascades(
    logged=False,
    keys=(
        ForeignKey(C, P, ("ID",), on_delete=True, on_update=True),
        ForeignKey(G, C, ("id",), on_delete=True, on_update=False),
    ),
)
NUMBERS = {"p": 7, "c": 8, "g": 9, "x": 10}


@pytest.fixture(params=["whole", "in pieces"], autouse=True)
def pieces(request, monkeypatch):
    if request.param == "in pieces":
        monkeypatch.setattr(reading, "Receiver", lambda stream: Receiver(stream, 64, 3))


def image(key, value=b"v"):
    return b"\0" + struct.pack("<IH", key, len(value)) + value


def mapped(binlog, table):
    names = b"\2id\1v"
    body = NUMBERS[table].to_bytes(6, "little") + b"\1\0\2db\0\1" + table.encode() + b"\0\2\x03\xfc\1\2\2\1\1\0\2\1\x3f"
    return binlog.event(19, body + bytes([4, len(names)]) + names + b"\x08\1\0")


def rows(binlog, kind, table, *images):
    bitmaps = b"\3\3" if kind == 31 else b"\3"
    body = NUMBERS[table].to_bytes(6, "little") + b"\1\0\2\0\2" + bitmaps + b"".join(images)
    return mapped(binlog, table).event(kind, body)


def window(*changes):
    """Return a stream with one transaction of changes, and a row of the table x after them."""
    binlog = Binlog().gtid(1).query(b"BEGIN")
    for kind, table, *images in changes:
        rows(binlog, kind, table, *images)
    return rows(binlog, 30, "x", image(1)).xid()


def read(binlog, *, wanted=lambda *_: True, rule="snapshot", can_be_read=lambda *_: True, skip=skip_none):
    sink = Rows()
    facts = StreamFacts("mysql", binlog.checksum, {63: "binary", 255: "utf8mb4"})
    captured = CapturedTables(wanted, skip=skip, cascades=CascadeWatch(KEYS, rule, can_be_read))
    stretch = Window("shop", 1, Position(FILE, 4), Position(FILE, binlog.offset))
    WindowReader(stretch, Wire(bytes(binlog.wire)), facts, captured, WindowSinks(sink, sink)).run()
    return sink.rows


@pytest.mark.parametrize("captured", [True, False])
@pytest.mark.parametrize("change", [(32, "p", image(1)), (31, "p", image(1), image(1, b"w"), image(2), image(3))])
def test_a_delete_and_another_key_reach_all_levels(captured, change):
    """Of a parent that is captured, and of one that is not."""
    wanted = lambda _, table: captured or table != "p"  # noqa: E731
    with pytest.raises(TableReplaced) as caught:
        read(window((30, "p", image(1)), change), wanted=wanted)
    assert caught.value.context["table"] == "db.c, db.g"
    assert caught.value.context["file"] == FILE


@pytest.mark.parametrize(
    "change",
    [
        (30, "p", image(1)),
        (31, "p", image(1), image(1, b"w")),
        (31, "c", image(1), image(2)),
        (32, "g", image(1)),
        (32, "x", image(1)),
    ],
)
def test_what_no_key_follows_reaches_nothing(change):
    """Inserts, updates of other columns, other keys where a key acts on deletes alone, tables that nothing refers to."""
    assert read(window(change))


def test_only_captured_tables_count_and_the_source_file_decides():
    """One that cannot be read again stops the window."""
    deleted = window((32, "p", image(1)))
    assert read(deleted, wanted=lambda _, table: table in "px")
    assert read(deleted, rule="ignore")
    for options in ({"rule": "stop"}, {"can_be_read": lambda _, table: table != "g"}):
        with pytest.raises(UnknownEvent, match="foreign keys"):
            read(deleted, **options)


@pytest.mark.parametrize(
    "clause", [b"DROP FOREIGN KEY k", b"drop/* old */constraint k", b"/*!40000 DROP */FOREIGN\nKEY k"]
)
def test_a_key_that_is_dropped_counts_for_all_before(clause):
    """What it did is not known any more."""
    binlog = window().query(b"ALTER TABLE c " + clause)
    with pytest.raises(TableReplaced, match="was dropped") as caught:
        read(binlog)
    assert caught.value.context["table"] == "db.c, db.g"


def test_a_reading_continues_after_faults_and_finds_them_all():
    """The first of each table; rows of the others are read to the end."""
    found = {}

    def skip(error):
        for table in str(error.context["table"]).split(", "):
            found.setdefault(table, error.message)
        return tuple(found)

    binlog = Binlog()
    for number, table in enumerate("pcg"):
        rows(binlog.gtid(number + 1).query(b"BEGIN"), 30, table, image(1)).xid()
        binlog.gtid(number + 10).query(f"ALTER TABLE {table} ADD n INT DEFAULT (1 + {number})".encode())
        rows(binlog.gtid(number + 20).query(b"BEGIN"), 30, table, image(2)).xid()
    rows(binlog.gtid(40).query(b"BEGIN"), 30, "x", image(9)).xid()
    wanted = lambda database, table: f"{database}.{table}" not in found  # noqa: E731
    kept = read(binlog, wanted=wanted, skip=skip)
    assert list(found) == ["db.p", "db.c", "db.g"]
    assert [row["id"] for row in kept] == [9]


def test_a_fault_that_no_exclusion_removes_stops_the_reading():
    """It is not looked at for ever."""
    binlog = Binlog().gtid(1).query(b"ALTER TABLE p ADD n INT DEFAULT (1 + 1)")
    with pytest.raises(TableReplaced):
        read(binlog, skip=lambda _: ("db.p",))
