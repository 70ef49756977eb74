"""XA statements and XA_PREPARE events as bytes: those that servers write, and those that nobody should believe."""

from __future__ import annotations

import numpy as np
import pytest

from cdc_lib.binlog.framing import packets
from cdc_lib.binlog.framing.scan_progress import ScanProgress
from cdc_lib.binlog.rows.xa import XaTransactions
from cdc_lib.errors import DecodeError, UnknownEvent
from cdc_lib.model.position import Position
from cdc_lib.model.window import Window

FILE = "binlog.000001"
BODY = bytes.fromhex("00 07000000 03000000 01000000 672778 62")
XID = "X'672778',X'62',7"


@pytest.fixture
def walk():
    progress = ScanProgress(Window("shop", 1, Position(FILE, 4), Position(FILE, 10_000)), "mysql", checksum=True)
    progress.state[packets.IN_TRANSACTION] = 1
    return progress, XaTransactions(progress)


def go_to(progress, offset):
    progress.state[packets.OFFSET] = offset
    progress.state[packets.IN_TRANSACTION] = 1


def begin(walk, offset, *, touched):
    """Begin a transaction at an offset, with a row event or without."""
    progress, xa = walk
    go_to(progress, offset)
    xa.statement(f"XA START {XID}")
    if touched:
        records = np.zeros((2, packets.RECORD_SIZE), np.int64)
        records[:, packets.FILE] = 1
        records[:, packets.BEGAN] = progress.state[packets.XA]
        xa.touch("db.t", records)


def finished(walk):
    walk[1].finish()
    return walk[0].summary


def test_a_prepared_transaction_bears_the_id_that_its_commit_names(walk):
    """The event has it in bytes, the statement in hex digits of either case."""
    progress, xa = walk
    begin(walk, 100, touched=True)
    go_to(progress, 200)
    xa.prepare(BODY)
    assert progress.state[packets.IN_TRANSACTION] == progress.state[packets.XA] == 0
    (prepared,) = finished(walk).prepared
    assert (prepared.xid, prepared.start.offset, prepared.position.offset) == (XID, 100, 200)
    assert prepared.tables == ("db.t",)
    go_to(progress, 300)
    xa.statement("XA COMMIT X'67277800fF',X'',4294967295")
    (decision,) = finished(walk).xa_decisions
    assert decision.xid == "X'67277800ff',X'',4294967295"
    assert decision.committed


@pytest.mark.parametrize("decision", ["COMMIT", "ROLLBACK"])
def test_what_is_over_within_the_window_and_has_no_rows_is_left_out(walk, decision):
    """A server with many such transactions must not fill the manifest."""
    begin(walk, 100, touched=False)
    walk[1].prepare(BODY)
    go_to(walk[0], 300)
    walk[1].statement(f"XA {decision} {XID}")
    summary = finished(walk)
    assert (summary.prepared, summary.xa_decisions) == ((), ())


def test_what_is_rolled_back_within_the_window_stays(walk):
    """A server that forgets the rollback in a crash may commit the transaction later."""
    begin(walk, 100, touched=True)
    walk[1].prepare(BODY)
    go_to(walk[0], 300)
    walk[1].statement(f"XA ROLLBACK {XID}")
    summary = finished(walk)
    assert [one.xid for one in summary.prepared] == [one.xid for one in summary.xa_decisions] == [XID]


@pytest.mark.parametrize("size", range(len(BODY)))
def test_a_truncated_xa_prepare_stops_the_window(walk, size):
    """At every length; nothing of it is taken for an id."""
    begin(walk, 100, touched=False)
    with pytest.raises(DecodeError, match="XA_PREPARE"):
        walk[1].prepare(BODY[:size])


@pytest.mark.parametrize(
    "body",
    [
        BODY + b"\0",
        bytes.fromhex("00 07000000 ffffffff 01000000 672778 62"),
        bytes.fromhex("00 07000000 41000000 00000000") + bytes(65),
        bytes.fromhex("02 07000000 03000000 01000000 672778 62"),
    ],
)
def test_a_lying_xa_prepare_stops_the_window(walk, body):
    """Lengths beyond the event or the specification, bytes left over, a phase that is not known."""
    begin(walk, 100, touched=False)
    with pytest.raises(DecodeError, match="XA_PREPARE"):
        walk[1].prepare(body)


@pytest.mark.parametrize(
    "statement",
    [
        "XA COMMIT 'abc'",
        "XA COMMIT X'61',X'',1 ONE PHASE",
        "XA COMMIT X'6',X'',1",
        "XA RECOVER",
        "XA PREPARE X'61',X'',1",
        "XA COMMIT X'61',X'',1; DROP TABLE t",
        "XA COMMIT X'61',X'',9223372036854775808",
        "XA COMMIT X'61',X'',\u0663",
        f"XA COMMIT X'{'61' * 65}',X'',1",
        f"XA COMMIT X'61',X'{'61' * 65}',1",
        "xa",
    ],
)
def test_an_xa_statement_that_no_server_writes_stops_the_window(walk, statement):
    """What it does to rows is not known."""
    with pytest.raises(UnknownEvent, match="XA statement"):
        walk[1].statement(statement)


@pytest.mark.parametrize("decision", ["COMMIT", "ROLLBACK"])
def test_a_decision_inside_its_transaction_stops_the_window(walk, decision):
    """Its rows would count or not, and nothing says so."""
    begin(walk, 100, touched=True)
    with pytest.raises(UnknownEvent):
        walk[1].statement(f"XA {decision} {XID}")


def test_a_format_of_more_than_32_bits_is_that_of_the_statements(walk):
    """MySQL takes it, and leaves the upper bits out of the event."""
    progress, xa = walk
    xid = f"X'672778',X'62',{7 + (5 << 32)}"
    go_to(progress, 100)
    xa.statement(f"XA START {xid}")
    xa.statement(f"XA END {xid}")
    xa.prepare(BODY)
    go_to(progress, 300)
    xa.statement(f"XA ROLLBACK {xid}")
    summary = finished(walk)
    assert (summary.prepared, summary.xa_decisions) == ((), ())


@pytest.mark.parametrize("other", ["X'672778',X'62',8", "X'672778',X'',7", "X'67',X'2778',7"])
def test_a_preparation_of_another_transaction_than_began_stops_the_window(walk, other):
    """Its commit would bring rows that are not its own."""
    progress, xa = walk
    go_to(progress, 100)
    xa.statement(f"XA START {other}")
    with pytest.raises(UnknownEvent, match="XA statement"):
        xa.statement(f"XA END {XID}")
    with pytest.raises(DecodeError, match="another transaction"):
        xa.prepare(BODY)


def test_a_beginning_inside_a_transaction_stops_the_window(walk):
    """The rows before it would belong to nothing."""
    begin(walk, 100, touched=False)
    with pytest.raises(UnknownEvent, match="XA statement"):
        walk[1].statement("XA START X'61',X'',1")


def test_an_xa_prepare_without_its_beginning_stops_the_window(walk):
    """Its rows were taken for those of an ordinary transaction."""
    with pytest.raises(DecodeError, match="without the beginning"):
        walk[1].prepare(BODY)


def test_rows_of_an_xa_transaction_that_ends_otherwise_stop_the_window(walk):
    """They lie apart, and nothing would ever commit them."""
    begin(walk, 100, touched=True)
    packets.end_transaction(walk[0].state)  # as an XID event does
    with pytest.raises(DecodeError, match="does not end in XA PREPARE") as caught:
        finished(walk)
    assert caught.value.context["offset"] == 100
