"""The disk of the lake is full: a merge fails, readers see the old rows, and it continues when space is free."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from cdc_lib.errors import MergeError
from tests.harness.lake.batches import BIGINT, TEXT, Row, table


@pytest.fixture
def small_disk(lake, tmp_path):
    """A file system of six MiB for the tables of the lake's database."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=6m", "tmpfs", str(folder)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True).returncode != 0:
        pytest.skip("only root may mount a small file system, and not everywhere")
    warehouse = Path(lake.config.lake.warehouse.removeprefix("file://"))
    warehouse.mkdir(exist_ok=True)
    (warehouse / lake.database).symlink_to(folder)
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


@pytest.mark.parametrize("room", [0, 40_000])
def test_a_merge_fails_on_a_full_disk_and_continues_with_free_space(lake, small_disk, room):
    """The disk is too small for the new rows or for their metadata."""
    orders = table(f"{lake.database}.orders", {"id": BIGINT, "note": TEXT})

    def notes(first, seed):
        return [
            Row("c", first + i, {"id": i % 1000, "note": f"{seed} {(i + 7) ** 40} {i}"}, i) for i in range(4000)
        ]  # fmt: skip

    first = lake.batches.plan(5000, lake.batches.window(4, 5000, {orders: notes(10, "first")}))
    lake.merge(first)
    before = lake.rows(orders.name, "id", "note")
    assert any(small_disk.rglob("*.parquet")), "the table is in another folder"
    second = lake.batches.plan(10_000, lake.batches.window(5000, 10_000, {orders: notes(5010, "second")}))
    filler = small_disk / "filler"
    disk = os.statvfs(small_disk)
    filler.write_bytes(bytes(max(0, disk.f_bavail * disk.f_frsize - room)))
    with pytest.raises(MergeError):
        lake.merge(second)
    assert lake.rows(orders.name, "id", "note") == before
    filler.unlink()
    lake.merge(second)
    rows = lake.rows(orders.name, "id", "note")
    assert [row[0] for row in rows] == [row[0] for row in before]
    assert all(note.startswith("second") for _, note in rows)
