"""While a chunk is read the one before is published: in order, and each goes on after the stored one."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from cdc_lib.errors import StoreUnavailable
from cdc_lib.snapshot import chunk_reader
from tests.harness.binlog.capture import Capture

OVER = datetime(2026, 1, 1, tzinfo=UTC)
"""A run that reads one chunk."""


@pytest.fixture
def capture(any_server, database, tmp_path):
    capture = Capture(any_server, database, tmp_path, snapshot={"chunk_rows": 4})
    capture.execute("CREATE TABLE t (id INT PRIMARY KEY)")
    capture.execute("INSERT INTO t VALUES " + ", ".join(f"({number})" for number in range(0, 40, 2)))
    return capture


def keys(capture):
    """Return the keys in each chunk."""
    return [[row["id"] for row in capture.rows(one, "t")] for one in capture.chunks(capture.task("t"))]


def orphans(capture):
    """Return the stored files that no chunk names."""
    named = {file.path.rpartition("/")[2] for one in capture.chunks(capture.task("t")) for file in one.files}
    return {info.key for info in capture.store.list("") if info.key.endswith(".parquet")} - {
        info.key for info in capture.store.list("") if info.key.rpartition("/")[2] in named
    }


class AtChunk:
    """Publishes manifests; calls something once, right before one of them."""

    def __init__(self, number, act):
        self.number, self.act, self.publish = number, act, chunk_reader.publish_manifest

    def __call__(self, store, key, manifest):
        if manifest.chunk.number == self.number and (act := self.act):
            self.act = None
            act()
        return self.publish(store, key, manifest)


@pytest.mark.parametrize(
    ("number", "change", "expected"),
    [
        # Its chunk ends earlier: from the fourth of its keys on nothing may be missing.
        (1, "INSERT INTO t VALUES (9), (11)", [[0, 2, 4, 6], [8, 9, 10, 11], [12, 14, 16, 18], [20, 22, 24, 26]]),
        # It ends later: nothing may come twice.
        (1, "DELETE FROM t WHERE id IN (8, 10)", [[0, 2, 4, 6], [12, 14, 16, 18], [20, 22, 24, 26], [28, 30, 32, 34]]),
        # It is not the last one, which ours is.
        (4, "INSERT INTO t VALUES (33)", [[0, 2, 4, 6], [8, 10, 12, 14], [16, 18, 20, 22], [24, 26, 28, 30]]),
        # It is the last one.
        (3, "DELETE FROM t WHERE id > 23 AND id < 38", [[0, 2, 4, 6], [8, 10, 12, 14], [16, 18, 20, 22], [38]]),
    ],
)
def test_a_chunk_goes_on_after_the_one_that_another_task_stored(capture, monkeypatch, number, change, expected):
    """It read other rows. What was read after ours meanwhile is thrown away."""

    def another_task():
        capture.execute(change)
        capture.reader.read(capture.task("t"), identity, OVER)

    identity = capture.facts().identity
    monkeypatch.setattr(chunk_reader, "publish_manifest", AtChunk(number, another_task))
    capture.reader.read(capture.task("t"), identity)
    found = keys(capture)
    assert found[:4] == expected
    flat = [key for chunk in found for key in chunk]
    assert flat == sorted(set(flat))
    assert (flat[-1], capture.chunks(capture.task("t"))[-1].chunk.last) == (38, True)


def test_nothing_is_stored_after_a_chunk_that_is_not(capture, monkeypatch):
    """Also no file of what was read after it."""

    def fails():
        raise StoreUnavailable("killed")

    monkeypatch.setattr(chunk_reader, "publish_manifest", AtChunk(2, fails))
    with pytest.raises(StoreUnavailable):
        capture.run_snapshot("t")
    assert keys(capture) == [[0, 2, 4, 6], [8, 10, 12, 14]]
    (lost,) = orphans(capture)
    assert "/000002/" in lost
    assert capture.run_snapshot("t").batches == 3
    assert [key for chunk in keys(capture) for key in chunk] == list(range(0, 40, 2))
