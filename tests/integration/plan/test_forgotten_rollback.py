"""A server that crashes after XA ROLLBACK: its binlog has the rollback, and the transaction is open again and may be committed."""

from __future__ import annotations

import pytest

from cdc_lib.merge.load import load_plan
from tests.harness.binlog import xa
from tests.harness.binlog.capture import Capture
from tests.harness.servers import MariaDbServer

TRIES = 20


@pytest.fixture
def server():
    with MariaDbServer() as running:
        running.execute("CREATE DATABASE shop")
        yield running


def drained(capture):
    for unit in capture.pipeline.plan(by="test"):
        capture.pipeline.drain(unit)
    capture.pipeline.ack_drain(by="test")


def forgotten(capture):
    """Roll transactions back and kill the server, until it has one of them open again; returns the number of its row."""
    for attempt in range(TRIES):
        numbers = range(10 * attempt, 10 * attempt + 10)
        for number in numbers:
            xa.prepare(capture.server, "shop", f"'t{number}'", f"INSERT INTO a VALUES ({number})")
        for number in numbers:
            xa.rollback(capture.server, f"'t{number}'")
        capture.server.restart(kill=True)
        for *_, name in capture.server.execute("XA RECOVER"):
            return int((name if isinstance(name, str) else name.decode()).removeprefix("t"))
    raise AssertionError(f"the server kept its rollbacks in {TRIES} crashes")


def test_a_commit_after_the_crash_brings_the_rows(server, tmp_path):
    """MariaDB does not flush a rollback in InnoDB; no event tells that it is undone."""
    capture = Capture(server, "shop", tmp_path, start="latest")
    capture.execute("CREATE TABLE a (id INT PRIMARY KEY)")
    drained(capture)
    number = forgotten(capture)
    drained(capture)
    xa.commit(server, f"'t{number}'")
    drained(capture)
    assert (number,) in capture.execute("SELECT id FROM a")
    plan = capture.pipeline.plan_merge(by="test")
    commits = [(commit, held) for batch in load_plan(capture.store, plan) for commit, held in batch.commits]
    brought = [
        row["id"]
        for commit, held in commits
        for row in capture.prepared_rows(held.manifest, "a")
        if row["_offset"] == commit.prepared.start.offset
    ]
    assert brought == [number]
