"""Compiled kernels are code: none is taken from a folder that another user of the machine can write to."""

from __future__ import annotations

import os
import pickle
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from cdc_lib.binlog.kernel_folder import kernel_folder
from tests.harness.docs.pages import ROOT
from tests.harness.shop.read_only_root import can_be_read_only, read_only_root

WORKER, NEIGHBOUR = os.getuid(), 60002
PROGRAM = """
import os
from cdc_lib.binlog.bytes.crc32 import TABLES, crc32
import numpy as np
print(hex(crc32(np.frombuffer(b"123456789", np.uint8), 0, 9, TABLES)), os.environ["NUMBA_CACHE_DIR"])
"""

pytestmark = pytest.mark.skipif(
    os.getuid() != 0 or not can_be_read_only(),
    reason="only root gives files to others, and mounts a cache that cannot be written",
)


class Payload:
    """Makes a file where it is unpickled."""

    def __init__(self, file):
        self.file = file

    def __reduce__(self):
        return os.open, (str(self.file), os.O_CREAT | os.O_WRONLY)


@pytest.fixture
def machine():
    """Folders of a worker, who may not write the cache of its image, and of a neighbour, beside a file that says who was attacked."""
    with tempfile.TemporaryDirectory() as name:
        top = Path(name)
        top.chmod(0o755)
        for folder, mode in (("tmp", 0o1777), ("home", 0o755), ("mark", 0o755), ("cache", 0o755)):
            (top / folder).mkdir()
            (top / folder).chmod(mode)
        shutil.copytree(kernel_folder(), top / "image" / kernel_folder().name)
        yield top


def run(machine, cache="image"):
    """Compute a checksum as the worker does; return the folder of its kernels, and its warnings."""
    environment = {
        "PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), "TMPDIR": str(machine / "tmp"), "HOME": str(machine / "home"),
        "CDC_CACHE": str(machine / cache), "PYTHONDONTWRITEBYTECODE": "1",
    }  # fmt: skip
    done = subprocess.run(
        read_only_root(
            [sys.executable, "-c", PROGRAM], writable=[machine / one for one in ("tmp", "home", "mark", "cache")]
        ),
        env=environment, cwd=machine, capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    checksum, folder = done.stdout.split()
    assert checksum == "0xcbf43926"
    return Path(folder), done.stderr


def plant(machine, top, owner=NEIGHBOUR):
    """Put kernels there that are code of the neighbour."""
    planted = top / kernel_folder().name
    shutil.copytree(kernel_folder(), planted)
    for path in (top, planted, *planted.rglob("*")):
        os.chown(path, owner, owner)
        if path.suffix == ".nbi":
            path.write_bytes(pickle.dumps(Payload(machine / "mark" / "was here")))
    return planted


def was_attacked(machine):
    return any((machine / "mark").iterdir())


def test_the_attack_works_on_a_folder_that_is_trusted(machine):
    """Else the tests below would show nothing."""
    plant(machine, machine / "tmp" / f"lakecdc-{WORKER}", owner=WORKER)
    run(machine)
    assert was_attacked(machine)


@pytest.mark.parametrize("mode", [0o700, 0o755, 0o777])
def test_a_copy_that_a_neighbour_made_beforehand_is_not_taken(machine, mode):
    planted = plant(machine, machine / "tmp" / f"lakecdc-{WORKER}")
    for path in (planted.parent, planted):
        path.chmod(mode | 0o55)
    folder, warning = run(machine)
    assert not was_attacked(machine)
    assert folder.parent != planted.parent
    assert "can be written by other users" in warning
    assert not folder.exists()  # it was that process's own


def test_a_link_of_a_neighbour_is_not_followed(machine):
    planted = plant(machine, machine / "elsewhere")
    link = machine / "tmp" / f"lakecdc-{WORKER}"
    link.symlink_to(planted.parent)
    os.chown(link, NEIGHBOUR, NEIGHBOUR, follow_symlinks=False)
    run(machine)
    assert not was_attacked(machine)


def test_a_file_in_its_place_does_not_stop_the_worker(machine):
    (machine / "tmp" / f"lakecdc-{WORKER}").touch()
    run(machine)


@pytest.mark.parametrize("name", ["", "kernels"])
def test_a_cache_that_others_can_write_is_not_used(machine, name):
    """Neither its own folder nor that above it; kernels are compiled into a folder of the worker."""
    planted = plant(machine, machine / "cache", owner=WORKER)
    (planted if name else planted.parent).chmod(0o777)
    folder, warning = run(machine, "cache")
    assert not was_attacked(machine)
    assert folder.parent == machine / "tmp" / f"lakecdc-{WORKER}"
    assert f"{planted} can be written by other users" in warning


def test_a_kernel_of_a_neighbour_in_a_folder_of_the_worker_is_not_used(machine):
    planted = plant(machine, machine / "cache")
    for path in (planted.parent, planted):
        os.chown(path, WORKER, WORKER)
    run(machine, "cache")
    assert not was_attacked(machine)


def test_processes_of_a_user_share_the_copy(machine):
    """It is made once, and only that user can read it."""
    first, _ = run(machine)
    index = {path: path.stat().st_mtime_ns for path in first.rglob("*.nbi")}
    second, _ = run(machine)
    assert first == second == machine / "tmp" / f"lakecdc-{WORKER}" / kernel_folder().name
    assert {path: path.stat().st_mtime_ns for path in first.rglob("*.nbi")} == index
    assert first.parent.stat().st_mode & 0o777 == 0o700
