"""A store whose disk is full: a clear error, nothing half-written, and on it goes when there is room."""

from __future__ import annotations

import os
import subprocess

import pytest

from cdc_lib.errors import StoreError
from cdc_lib.status.overview import status_of
from cdc_lib.store import layout
from tests.harness.binlog.capture import Capture

TABLES = ("a", "b", "c")


@pytest.fixture
def small_disk(tmp_path):
    """A file system of six MiB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=6m", "tmpfs", str(folder)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True).returncode != 0:
        pytest.skip("only root may mount a small file system, and not everywhere")
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


def left_over(folder):
    return [path.name for path in folder.rglob(".tmp-*")]


def one_round(capture):
    for unit in capture.pipeline.plan(by="test"):
        capture.pipeline.drain(unit)
    capture.pipeline.ack_drain(by="test")


@pytest.mark.parametrize("room", [1_000, 700_000, 2_000_000])
def test_a_full_disk_stops_a_window_which_continues_when_there_is_space(mysql_server, mysql_database, small_disk, room):
    """Whichever file of the batch does not fit: no file of it stays, and the cursor is; the next attempt is whole."""
    capture = Capture(mysql_server, mysql_database, small_disk, drain={"row_group_rows": 100})
    for name in TABLES:
        capture.execute(f"CREATE TABLE {name} (id INT PRIMARY KEY, v MEDIUMBLOB)")
    one_round(capture)
    for name in TABLES:
        capture.execute(f"INSERT INTO {name} VALUES (0, '')")
        for first in range(1, 401, 100):
            values = ",".join(f"({i}, RANDOM_BYTES(1000))" for i in range(first, first + 100))
            capture.execute(f"INSERT INTO {name} VALUES {values}")
            capture.execute(f"UPDATE {name} SET v = RANDOM_BYTES(1000)")
    one_window = capture.pipeline.plan(by="test")
    before, seen = status_of(capture.pipeline).drain, capture.visible()
    filler = small_disk / "filler"
    free = os.statvfs(small_disk).f_bavail * os.statvfs(small_disk).f_frsize
    filler.write_bytes(bytes(free - room))
    with pytest.raises(StoreError, match=f"The disk of {small_disk}.* is full: [0-9,]+ bytes are free") as caught:
        capture.pipeline.drain(one_window[0])
    assert capture.visible() == seen
    assert left_over(small_disk) == [], "unfinished files take up disk space"
    assert status_of(capture.pipeline).drain == before
    assert not caught.value.retryable
    filler.unlink()
    one_round(capture)
    manifest = capture.manifest(layout.manifest_key(one_window[0]))
    for name in TABLES:
        assert len(capture.rows(manifest, name)) == 401 + sum(1 + 100 * n for n in range(1, 5))


def test_a_full_disk_stops_a_plan_and_an_ack(mysql_server, mysql_database, small_disk):
    """The cursor is the one before, and whole."""
    capture = Capture(mysql_server, mysql_database, small_disk)
    capture.execute("CREATE TABLE a (id INT PRIMARY KEY)")
    one_round(capture)
    capture.execute("INSERT INTO a VALUES (1)")
    filler = small_disk / "filler"
    for step in ("plan", "ack"):
        before = status_of(capture.pipeline).drain
        free = os.statvfs(small_disk).f_bavail * os.statvfs(small_disk).f_frsize
        filler.write_bytes(bytes(free))
        with pytest.raises(StoreError, match=r"is full: 0 bytes are free.* cdc batches gc "):
            capture.pipeline.plan(by="test") if step == "plan" else capture.pipeline.ack_drain(by="test")
        assert status_of(capture.pipeline).drain == before
        assert left_over(small_disk) == []
        filler.unlink()
        if step == "plan":
            for unit in capture.pipeline.plan(by="test"):
                capture.pipeline.drain(unit)
    assert capture.pipeline.ack_drain(by="test").windows == 1
