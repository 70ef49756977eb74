"""Wherever a connection to the source breaks, the error is the project's own and says that trying again may help."""

from __future__ import annotations

from contextlib import suppress
from types import SimpleNamespace

import pytest

import cdc_lib.mysql.connection
from cdc_lib.errors import SourceUnavailable
from cdc_lib.status.overview import status_of
from tests.chaos.wire import Wire
from tests.harness.binlog.capture import Capture

CUTS = 14


@pytest.fixture
def wire(any_server):
    with Wire(any_server) as wire:
        yield wire


@pytest.fixture
def capture(any_server, database, tmp_path):
    direct = Capture(any_server, database, tmp_path / "direct")
    direct.execute("CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(100))")
    direct.execute(f"INSERT INTO t VALUES {','.join(f'({i}, REPEAT({i}, 20))' for i in range(300))}")
    return direct


def through(wire, capture, folder):
    server = capture.server
    proxied = SimpleNamespace(
        host="127.0.0.1", port=wire.own_port, cdc_user=server.cdc_user, cdc_password=server.cdc_password
    )
    return Capture(proxied, capture.database, folder, snapshot={"chunk_rows": 100})


def everything(capture):
    """Plan, read the snapshot, plan again and read a window; each step finds what an earlier attempt left."""
    for _ in range(2):
        for unit in capture.pipeline.plan(by="test"):
            capture.pipeline.drain(unit)
        capture.pipeline.ack_drain(by="test")


def test_a_connection_that_breaks_anywhere_can_be_tried_again(capture, wire, tmp_path):
    """From the first byte of a handshake to the last row: never the driver's error, never one that no retry mends."""
    whole = through(wire, capture, tmp_path / "whole")
    everything(whole)
    capture.execute("INSERT INTO t VALUES (1000, 'in the window')")
    everything(whole)
    size = wire.passed
    broken = 0
    for number in range(CUTS):
        # Close together at the beginning, where the handshake is.
        after = 1 + int(size * (number / CUTS) ** 3)
        other = through(wire, capture, tmp_path / str(number))
        wire.fail("cut", after)
        with suppress(SourceUnavailable):
            everything(other)
        broken += wire.restore()
        everything(other)
        assert status_of(other.pipeline).drain.position == other.head()
        assert not status_of(other.pipeline).drain.open_snapshots
    assert broken >= CUTS // 2
    assert SourceUnavailable.retryable


@pytest.mark.parametrize("after", [1, 3_000, 40_000])
def test_a_silent_server_times_out(capture, wire, tmp_path, monkeypatch, after):
    """A connection that is half open: nothing comes, and nothing says that it ended."""
    other = through(wire, capture, tmp_path / "other")
    wire.fail("half-open", after)
    with monkeypatch.context() as shorter:
        shorter.setattr(cdc_lib.mysql.connection, "SILENCE_SECONDS", 1)
        with pytest.raises(SourceUnavailable):
            everything(other)
    assert wire.restore()
    everything(other)
    assert not status_of(other.pipeline).drain.open_snapshots
