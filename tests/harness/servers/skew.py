"""A server whose clock is wrong: a preloaded library replaces the C library's clock functions (skew.c)."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from spark_jobs.runtime.jars import cache_dir, one_at_a_time

_SOURCE = Path(__file__).with_name("skew.c")


def wrong_clock(seconds: float) -> dict[str, str]:
    """Return the environment of a server process whose clock is wrong by some seconds; empty for 0."""
    return {"LD_PRELOAD": str(_library()), "SERVER_CLOCK_SKEW": str(round(seconds * 1_000_000))} if seconds else {}


def can_be_wrong() -> bool:
    """Whether this machine has a C compiler."""
    return shutil.which("cc") is not None


def _library() -> Path:
    target = cache_dir() / "skew.so"
    with one_at_a_time(cache_dir() / ".skew.lock"):
        if not target.exists() or target.stat().st_mtime < _SOURCE.stat().st_mtime:
            made = target.with_suffix(".new")
            subprocess.run(["cc", "-shared", "-fPIC", "-O2", "-o", str(made), str(_SOURCE)], check=True)
            made.rename(target)
    return target
