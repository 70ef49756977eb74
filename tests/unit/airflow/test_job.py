from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from cdc_airflow.job import Job

ROOT = Path(__file__).resolve().parents[3]


def run(command: list[str], folder: Path) -> tuple[int, list[str]]:
    lines: list[str] = []
    return Job(command, dict(os.environ), folder).run(lines.append), lines


def gone(pid: int, seconds: float = 10) -> bool:
    """Whether a process has ended; a dead one that nobody waited for counts as ended."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        stat = Path(f"/proc/{pid}/stat")
        try:
            if stat.read_text().rpartition(")")[2].split()[0] == "Z":
                return True
        except (FileNotFoundError, ProcessLookupError):
            return True
        time.sleep(0.05)
    return False


def test_lines_come_as_they_are_printed_and_the_status_is_the_jobs(tmp_path: Path):
    """Standard error stands among them, where it belongs in time."""
    assert run(["/bin/sh", "-c", "echo one; echo two >&2; exit 75"], tmp_path) == (75, ["one", "two"])


def test_a_job_that_a_signal_killed_shows_it_in_its_status(tmp_path: Path):
    """137 is how a shell tells of SIGKILL."""
    assert run(["/bin/sh", "-c", "kill -KILL $$"], tmp_path)[0] == 128 + signal.SIGKILL


def test_a_command_that_does_not_exist_has_the_shells_status(tmp_path: Path):
    """And its message among the lines."""
    status, lines = run(["/no/such/program"], tmp_path)
    assert status == 127
    assert "/no/such/program" in lines[0]


def test_stopping_ends_what_the_job_started_too(tmp_path: Path):
    """Spark's Java process is a child of the job."""
    job = Job(["/bin/sh", "-c", "sleep 300 & echo $!; wait"], dict(os.environ), tmp_path)
    lines: list[str] = []
    thread = threading.Thread(target=job.run, args=(lines.append,))
    thread.start()
    while not lines:
        time.sleep(0.02)
    job.stop()
    thread.join(10)
    assert not thread.is_alive()
    assert gone(int(lines[0]))


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="looks at /proc")
def test_a_job_does_not_outlive_a_task_that_was_killed(tmp_path: Path):
    """No handler runs in a process that gets SIGKILL: the job must find out automatically."""
    code = f"""
import os, sys
from pathlib import Path
from cdc_airflow.job import Job
Job(["/bin/sh", "-c", "echo $$; exec sleep 300"], dict(os.environ), Path({str(tmp_path)!r})).run(
    lambda line: print(line, flush=True)
)
"""
    env = {**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'plugins'}"}
    with subprocess.Popen([sys.executable, "-c", code], env=env, stdout=subprocess.PIPE, text=True) as task:
        assert task.stdout is not None
        pid = int(task.stdout.readline())
        assert not gone(pid, 0.2)
        task.kill()
    assert gone(pid)
