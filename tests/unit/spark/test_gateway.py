from __future__ import annotations

import os

from spark_jobs.runtime.gateway import LEFT_OUT, pass_on


def test_all_lines_of_java_but_one_come_through(tmp_path):
    """Also one that has no end yet when this process ends."""
    read, write = os.pipe()
    os.write(write, LEFT_OUT + b"\n12:00:00 ERROR Utils: \xff\n\n12:00:01 WARN unfin\0\nafter the end\n")
    with (tmp_path / "lines").open("wb") as file:
        pass_on(read, file.fileno())
    os.close(write)
    assert (tmp_path / "lines").read_bytes() == b"12:00:00 ERROR Utils: \xff\n\n12:00:01 WARN unfin"
