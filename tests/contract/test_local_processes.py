"""A local folder that many processes write to, as Airflow's workers on one machine do."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import time
from pathlib import Path

import pytest

from cdc_lib.errors import StoreUnavailable
from cdc_lib.model.cursor import Cursor
from cdc_lib.model.position import Position
from cdc_lib.model.server_identity import ServerIdentity
from cdc_lib.store.cursors import ObjectCursorStore
from cdc_lib.store.objects.local import LocalStore
from tests.harness.processes.races import (
    PROCESSES,
    create_local,
    in_processes,
    lock_and_stop,
    swap_local,
    write_and_wait,
)


@pytest.fixture
def store(tmp_path):
    return LocalStore(tmp_path / "store")


def test_a_writer_that_is_killed_leaves_no_object(store):
    """What it left is hidden, and stops nobody who writes the same key."""
    ready = PROCESSES.Event()
    writer = PROCESSES.Process(target=write_and_wait, args=(store.root, ready))
    writer.start()
    assert ready.wait(60)
    os.kill(writer.pid, signal.SIGKILL)
    writer.join(10)
    assert store.get("shop/big") is None
    assert list(store.list("")) == []
    store.put("shop/big", b"again")
    assert [info.key for info in store.list("")] == ["shop/big"]


def wait_until_stopped(pid):
    """Wait until a process is stopped: state T of ``/proc``."""
    while Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "T":
        time.sleep(0.01)


@pytest.mark.parametrize("way_out", ["kill -CONT", "kill -KILL"])
def test_a_writer_that_is_stopped_is_named_and_its_successor_can_be_tried_again(store, way_out):
    """No write waits for ever without a word; each of the ways out in the hint works."""
    writer = PROCESSES.Process(target=lock_and_stop, args=(store.root,))
    writer.start()
    wait_until_stopped(writer.pid)
    impatient = LocalStore(store.root, patience=0.0)
    held = f"process {writer.pid} on {socket.gethostname()} holds the lock"
    for write in (
        lambda: impatient.put("shop/small", b"1"),
        lambda: impatient.put_if_absent("shop/small", b"1"),
        lambda: impatient.delete(["shop/small"]),
    ):
        with pytest.raises(StoreUnavailable, match=held) as error:
            write()
        assert error.value.retryable
    subprocess.run(re.search(rf"{way_out} \d+", error.value.hint)[0].split(), check=True)
    store.put("shop/small", b"2")
    writer.join(60)
    assert store.get("shop/small").data == b"2"


def test_of_sixteen_processes_exactly_one_creates_an_object(store):
    """Five keys, one after another."""
    rounds = [(store.root, f"m/{turn}.json") for turn in range(5)]
    for turn, won in enumerate(in_processes(create_local, rounds)):
        assert won.count(True) == 1
        assert store.get(f"m/{turn}.json") is not None


def test_of_sixteen_processes_every_generation_is_won_once(store):
    """As many generations as swaps that returned success."""
    cursors = ObjectCursorStore(store)
    cursors.swap(None, Cursor("shop", "drain", 0, 1, ServerIdentity("mysql", "u", 1), Position("binlog.000001", 4)))
    wins = [won.count(True) for won in in_processes(swap_local, [(store.root,)] * 5)]
    assert cursors.load("shop", "drain").generation == 1 + sum(wins)
    assert min(wins) >= 1
