"""Broken bytes never crash the decoder, lead it out of a buffer or make it hang."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import psutil
import pytest

from tests.fuzz.__main__ import environment, main
from tests.fuzz.fork_server import ROOT, ForkServer
from tests.fuzz.targets import TARGETS

_READS_ONE_BYTE_MORE = """
import numpy as np
from cdc_lib.binlog.bytes.integers import u16
from numba import njit
kernel = njit(lambda b: u16(b, b.shape[0] - 1))
kernel(np.zeros(8, np.uint8)[:4])
"""


@pytest.fixture(scope="module")
def fork_server() -> Iterator[ForkServer]:
    with ForkServer(environment()) as server:
        yield server


@pytest.mark.turns(8)  # compiling its kernels with bounds checks costs minutes
@pytest.mark.parametrize("target", TARGETS)
def test_broken_bytes_give_rows_or_an_error_with_a_position(fork_server: ForkServer, target: str):
    """A short run of each target, always of the same cases; ``./dev fuzz`` runs millions of others."""
    cases = 200_000 if TARGETS[target].at_once > 10_000 else TARGETS[target].at_once // 2
    assert main(["--only", target, "--seed", "1", "--cases", str(cases)], fork_server) == 0


def test_a_read_after_the_end_of_a_buffer_is_detected():
    """Otherwise the runs above would prove nothing."""
    command = [sys.executable, "-c", _READS_ONE_BYTE_MORE]
    done = subprocess.run(command, cwd=ROOT, env={**os.environ, **environment()}, capture_output=True, text=True)
    assert done.returncode == 1
    assert "IndexError" in done.stderr


def test_a_process_that_is_killed_has_its_own_exit_status_and_ends_no_other(fork_server: ForkServer, tmp_path: Path):
    """In the middle of its cases."""
    case_file = str(tmp_path / "case")
    np.array([-1], np.int64).tofile(case_file)
    with ThreadPoolExecutor(1) as pool:
        long_run = pool.submit(fork_server.run, "numbers", 1, 0, 10_000_000_000, case_file)
        while int(np.fromfile(case_file, np.int64)[0]) < 1:
            assert not long_run.done(), long_run.result()
        (process,) = psutil.Process(fork_server.process.pid).children()
        process.send_signal(signal.SIGSEGV)
        assert long_run.result()[0] == -signal.SIGSEGV
    assert fork_server.run("no such target", 1, 0, 1, case_file) == (1, "")
    assert fork_server.run("numbers", 1, 0, 1, case_file)[0] == 0


def test_a_process_that_dies_is_reported(monkeypatch, capfd):
    """With the way to run its case again."""
    monkeypatch.setattr("tests.fuzz.__main__.environment", lambda: {"PYTHONHASHSEED": "wrong"})
    assert main(["--only", "numbers", "--seed", "1", "--cases", "1"]) == 1
    assert "--only numbers --seed 1" in capfd.readouterr().out
