"""Event types that the servers at hand do not write, or only after a disaster."""

from __future__ import annotations

import pytest

from cdc_lib.binlog.framing import event_types
from cdc_lib.errors import DecodeError, UnknownEvent
from tests.harness.binlog.streams import Binlog, read


def around(kind: int, body: bytes, *, flags: int = 0) -> Binlog:
    """A transaction, the event, another transaction."""
    return Binlog().transaction(1, (1, b"x")).event(kind, body, flags=flags).transaction(2, (2, b"y"))


@pytest.mark.parametrize("flavor", ["mysql", "mariadb"])
@pytest.mark.parametrize("kind", event_types.PASSED_OVER)
@pytest.mark.parametrize("body", [b"", b"\xff" * 40])
def test_events_without_rows_are_skipped(flavor, kind, body):
    """Whatever they hold; those that stand in the file move the position."""
    binlog = around(
        kind, body, flags=event_types.ARTIFICIAL if kind in (event_types.HEARTBEAT, event_types.HEARTBEAT_V2) else 0
    )
    if kind in (event_types.HEARTBEAT, event_types.HEARTBEAT_V2):
        # Made up for the stream: the events after it stand where it seems to.
        binlog = Binlog().transaction(1, (1, b"x"))
        offset = binlog.offset
        binlog.event(kind, body)
        binlog.offset = offset
        binlog.transaction(2, (2, b"y"))
    rows, _ = read(binlog, flavor=flavor)
    assert [row["id"] for row in rows] == [1, 2]


@pytest.mark.parametrize("kind", [43, 77, 127, 159, 172, 255])
def test_an_unknown_event_is_skipped_only_if_its_ignorable_flag_is_set(kind):
    """The flag in its header does."""
    rows, _ = read(around(kind, b"new in some later version", flags=event_types.IGNORABLE))
    assert [row["id"] for row in rows] == [1, 2]
    with pytest.raises(UnknownEvent) as caught:
        read(around(kind, b"new in some later version"))
    assert caught.value.context["event_type"] == kind
    assert caught.value.context["offset"] == around(kind, b"").starts[5]


def test_an_incident_stops_the_window_with_the_servers_words():
    """Events were lost there, whatever its flags say."""
    for flags in (0, event_types.IGNORABLE):
        with pytest.raises(UnknownEvent, match=r"INCIDENT.*error writing to the binary log.*snapshot"):
            read(
                around(event_types.INCIDENT, b"\1\0" + bytes([33]) + b"error writing to the binary log  ", flags=flags)
            )


def test_the_start_of_encryption_is_passed_over():
    """A server decrypts what it sends, whatever the flags of the event say."""
    for flags in (0, event_types.IGNORABLE):
        rows, _ = read(around(event_types.START_ENCRYPTION, b"\1" + bytes(16), flags=flags), flavor="mariadb")
        assert [row["id"] for row in rows] == [1, 2]


@pytest.mark.parametrize("kind", [1, 6, 7, 8, 10, 12])
def test_events_of_servers_before_5_0_stop_the_window(kind):
    """They stand for rows in ways that nobody writes any more."""
    with pytest.raises(UnknownEvent, match=r"older than 5\.0"):
        read(around(kind, bytes(40)))


@pytest.mark.parametrize("into", [b"a", b"`a`", b"db.a", b"`db` . `a`"])
def test_load_data_into_a_captured_table_stops_the_window(into):
    """As a statement it writes no rows to the binlog."""
    binlog = Binlog().gtid(1).query(b"BEGIN").event(17, b"\1\0\0\0file").event(9, b"\1\0\0\0more")
    binlog.load_data(b"LOAD DATA LOCAL INFILE '/tmp/x' REPLACE INTO TABLE " + into + b" FIELDS TERMINATED BY ','").xid()
    with pytest.raises(UnknownEvent, match="LOAD DATA") as caught:
        read(binlog)
    assert caught.value.context["table"] == "db.a"


def test_load_data_into_another_table_is_skipped():
    """Nothing of it belongs in the lake."""
    binlog = Binlog().gtid(1).query(b"BEGIN").event(17, b"\1\0\0\0file")
    binlog.load_data(b"LOAD DATA INFILE '/tmp/x' INTO TABLE other.b (a, b)").xid().transaction(2, (2, b"y"))
    rows, summary = read(binlog, captured=lambda database, _: database == "db")
    assert [row["id"] for row in rows] == [2]
    assert summary.transactions == 2


@pytest.mark.parametrize("size", [0, 5, 12, 13, 20, 26, 28])
def test_a_short_load_data_stops_the_window(size):
    """No byte after an event's end is taken for its own."""
    with pytest.raises(DecodeError):
        read(Binlog().gtid(1).query(b"BEGIN").event(18, b"\xff" * size).xid())


def test_a_statement_on_another_table_is_skipped():
    """With the numbers and variables before it that it was run with."""
    binlog = Binlog().gtid(1).query(b"BEGIN").event(5, bytes(9)).event(13, bytes(16)).event(14, bytes(20))
    binlog.query(b"INSERT INTO other.b VALUES (RAND(), LAST_INSERT_ID(), @x)").query(b"COMMIT")
    rows, summary = read(binlog.transaction(2, (2, b"y")), captured=lambda database, _: database == "db")
    assert [row["id"] for row in rows] == [2]
    assert summary.transactions == 2
    with pytest.raises(UnknownEvent):
        read(binlog)


def test_a_statement_whose_tables_are_not_understood_stops_the_window():
    """Captured or not: it may be about any."""
    with pytest.raises(UnknownEvent, match="tables are not understood: 'TRUNCATE TABLE a b'") as caught:
        read(Binlog().gtid(1).query(b"TRUNCATE TABLE a b"), captured=lambda *_: False)
    assert "cdc snapshot" in caught.value.hint
