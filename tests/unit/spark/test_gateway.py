from __future__ import annotations

import os

from spark_jobs.runtime.gateway import DROPPED_LINE, forward_lines


def test_all_lines_of_java_but_the_warning_are_forwarded(tmp_path):
    """Also an unfinished last line when this process ends."""
    read, write = os.pipe()
    os.write(write, DROPPED_LINE + b"\n12:00:00 ERROR Utils: \xff\n\n12:00:01 WARN unfin\0\nafter the end\n")
    with (tmp_path / "lines").open("wb") as file:
        forward_lines(read, file.fileno())
    os.close(write)
    assert (tmp_path / "lines").read_bytes() == b"12:00:00 ERROR Utils: \xff\n\n12:00:01 WARN unfin"
