"""The process in which the cases run: ``python -m tests.fuzz.worker TARGET SEED FIRST CASES PROGRESS``."""

from __future__ import annotations

import faulthandler
import sys
import time

import numpy as np

from tests.fuzz.targets import TARGETS

SILENCE_SECONDS = 120
"""How long a portion of cases may take: more is a hang."""


def main(name: str, seed: int, first: int, cases: int, case_file: str) -> None:
    """Run the cases portion by portion; the file at ``case_file`` holds the case that runs."""
    target = TARGETS[name]
    done = np.memmap(case_file, np.int64, "r+", shape=(1,))
    target.run(seed, first, 0 if cases > 1 else cases, done)  # compiles
    began = time.perf_counter()
    for start in range(first, first + cases, target.at_once):
        faulthandler.dump_traceback_later(SILENCE_SECONDS, exit=True)
        target.run(seed, start, min(target.at_once, first + cases - start), done)
    faulthandler.cancel_dump_traceback_later()
    print(f"{name:<10} {cases:>10,} cases {time.perf_counter() - began:>7.1f} s", flush=True)


if __name__ == "__main__":
    faulthandler.enable()
    main(sys.argv[1], *map(int, sys.argv[2:5]), sys.argv[5])
