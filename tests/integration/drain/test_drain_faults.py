"""Whatever breaks in the middle of a window, draining it again gives the bytes that an undisturbed drain gives."""

from __future__ import annotations

import hashlib
import random
from dataclasses import replace

import pytest

from cdc_lib.errors import SourceUnavailable
from cdc_lib.store import layout
from tests.harness.binlog import drain_process
from tests.harness.binlog.capture import Capture
from tests.harness.binlog.drain_process import through
from tests.harness.network.tcp_proxy import TcpProxy

GROUPS = {"drain": {"row_group_rows": 50}}


@pytest.fixture
def capture(any_server, database, tmp_path):
    return Capture(any_server, database, tmp_path / "undisturbed", **GROUPS)


def busy(capture):
    """Rows of three tables in turn, over a change of columns and three files; some 300 KiB of events."""
    for name in "abc":
        capture.execute(f"CREATE TABLE {name} (id INT PRIMARY KEY AUTO_INCREMENT, v VARCHAR(2000), b BLOB)")
    start = capture.head()
    for turn in range(8):
        for name in "abc":
            values = ",".join(f"('{turn}-{i}', REPEAT('{name}', 500))" for i in range(20))
            capture.execute(f"INSERT INTO {name} (v, b) VALUES {values}")
        capture.execute("UPDATE a JOIN b USING (id) SET a.v = REPEAT('é', 900), b.b = NULL WHERE id % 9 = 0")
        capture.execute(f"DELETE FROM c WHERE id % 10 = {turn}")
        if turn == 3:
            capture.execute("ALTER TABLE b ADD COLUMN extra INT FIRST")
        if turn in (2, 5):
            capture.execute("FLUSH BINARY LOGS")
    return capture.window_from(start)


def assert_same(undisturbed, other, window, once):
    """The manifest that is is the same, and so are the bytes of each of its files; nothing else can be seen."""
    again = other.manifest(layout.manifest_key(window))
    assert again is not None
    assert replace(again, identity=once.identity) == once
    for file in once.files:
        key = layout.beside(layout.manifest_key(window), file.path)
        datas = [one.store.get(key).data for one in (undisturbed, other)]
        assert [hashlib.sha256(data).hexdigest() for data in datas] == [file.sha256] * 2
    assert sorted(other.visible()) == sorted(undisturbed.visible())


def proxy_to(server, **faults):
    return TcpProxy(server.host, server.port, **faults)


def answer_size(capture, window, folder):
    """Return how many bytes the server sends for a window, and perhaps a little after it."""
    with proxy_to(capture.server) as proxy:
        through(capture, proxy, folder).drain(window)
        return proxy.sent


def test_a_connection_cut_at_any_byte_leaves_nothing(capture, tmp_path):
    """The error says to try again; trying again gives the same bytes."""
    window = busy(capture)
    once = capture.drain(window)
    size = answer_size(capture, window, tmp_path / "whole")
    chosen = random.Random(7)
    for number, cut in enumerate([1, 3, 5, 23, *(chosen.randrange(size) for _ in range(12))]):
        folder = tmp_path / str(number)
        with proxy_to(capture.server, cut_after=cut) as proxy:
            cut_off = through(capture, proxy, folder)
            with pytest.raises(SourceUnavailable) as caught:
                cut_off.drain(window)
            assert caught.value.retryable
            assert cut_off.visible() == []
        with proxy_to(capture.server) as proxy:
            other = through(capture, proxy, folder)
            other.drain(window)
            assert_same(capture, other, window, once)


@pytest.mark.parametrize(("portion", "pause"), [(1, 0.0), (7, 0.0), (1448, 0.0005), (40_000, 0.01)])
def test_a_slow_wire_in_small_portions_gives_the_same_bytes(capture, tmp_path, portion, pause):
    """Down to a byte at a time."""
    window = busy(capture)
    once = capture.drain(window)
    with proxy_to(capture.server, portion=portion, pause=pause) as proxy:
        other = through(capture, proxy, tmp_path / "slow")
        other.drain(window)
    assert_same(capture, other, window, once)


@pytest.mark.parametrize("seed", range(3))
def test_a_drain_that_is_killed_leaves_nothing_that_counts(capture, tmp_path, seed):
    """SIGKILL at a random byte, which no handler sees; what it left is not seen, and does not disturb the next drain."""
    window = busy(capture)
    once = capture.drain(window)
    size = answer_size(capture, window, tmp_path / "whole")
    folder = tmp_path / "killed"
    stall = random.Random(seed).randrange(size // 2, size - 400)
    with proxy_to(capture.server, stall_after=stall, stays=True) as proxy:
        killed = through(capture, proxy, folder)
        process = drain_process.start(killed, folder, window)
        try:
            assert proxy.stalled.wait(120)
            with pytest.raises(TimeoutError):
                wait(process, 1.0)
        finally:
            process.kill()
            process.wait()
    assert killed.visible() == []
    with proxy_to(capture.server) as proxy:
        other = through(capture, proxy, folder)
        other.drain(window)
        assert_same(capture, other, window, once)


def wait(process, seconds):
    """Give a process time to receive what there is; it must not end automatically."""
    import subprocess

    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        raise TimeoutError from None


@pytest.mark.parametrize("kill", [False, True])
def test_a_server_that_restarts_within_and_after_a_window(any_server, capture, tmp_path, kill):
    """In good order or by a power cut: the window can be tried again, and the next one continues in the new file."""
    window = busy(capture)
    once = capture.drain(window)
    folder = tmp_path / "restarted"
    process = None
    with proxy_to(any_server, stall_after=60_000) as proxy:
        process = drain_process.start(through(capture, proxy, folder), folder, window)
        try:
            assert proxy.stalled.wait(120)
            any_server.restart(kill=kill)
            assert process.wait(60) != 0
        finally:
            process.kill()
            process.wait()
    with proxy_to(any_server) as proxy:
        other = through(capture, proxy, folder)
        assert other.visible() == []
        other.drain(window)
        assert_same(capture, other, window, once)
    capture.execute("INSERT INTO a (v) VALUES ('after')")
    following = capture.window_from(window.stop)
    rows = capture.rows(capture.drain(following), "a")
    assert [row["v"] for row in rows] == ["after"]
    assert rows[0]["_binlog"] > window.stop.file_number
