"""Output of jobs that work on tables in parallel."""

from __future__ import annotations

import io
import threading
from concurrent.futures import ThreadPoolExecutor

from spark_jobs.runtime.heartbeat import Heartbeat
from spark_jobs.runtime.log_lines import say


class Slow(io.StringIO):
    """A stream in which another thread may come between two writes."""

    def write(self, text):
        count = super().write(text)
        threading.Event().wait(0.0005)
        return count


def test_lines_of_many_threads_are_not_mixed():
    """Python's print writes a line and its newline separately."""
    out = Slow()
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda number: say(f"table {number}: done", out), range(200)))
    assert sorted(out.getvalue().splitlines()) == sorted(f"table {number}: done" for number in range(200))


def test_a_heartbeat_names_the_running_tables():
    """Until the work ends."""
    said = []
    heard = threading.Event()

    def hear(line):
        said.append(line)
        heard.set()

    with Heartbeat("merged", 3, hear, every=0.01) as beat:
        with beat.on("shop.orders"):
            pass
        with beat.on("shop.items"):
            heard.clear()
            assert heard.wait(10)
        line = said[-1]
    assert line.startswith("merged: 1 table of about 3 in ")
    assert "now: shop.items (" in line
    assert "heartbeat" not in {thread.name for thread in threading.enumerate()}
