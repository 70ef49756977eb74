"""A local folder that many processes write to, as Airflow's workers on one machine do."""

from __future__ import annotations

import os
import signal

import pytest

from cdc_lib.model.cursor import Cursor
from cdc_lib.model.position import Position
from cdc_lib.model.server_identity import ServerIdentity
from cdc_lib.store.cursors import ObjectCursorStore
from cdc_lib.store.objects.local import LocalStore
from tests.harness.races import PROCESSES, create_local, in_processes, swap_local, write_and_wait


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
