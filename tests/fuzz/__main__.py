"""``python -m tests.fuzz``: every target in a process of its own."""

from __future__ import annotations

import argparse
import hashlib
import os
import secrets
import sys
import tempfile
from contextlib import nullcontext
from pathlib import Path

import numpy as np

from spark_jobs.runtime.jars import cache_dir
from tests.fuzz.fork_server import ROOT, ForkServer
from tests.fuzz.targets import TARGETS


def main(arguments: list[str] | None = None, running: ForkServer | None = None) -> int:
    """Run all cases, on a fork server that runs already or on a new one; the exit status is 1 when one of them found a fault."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description="Broken bytes against the decoder.")
    parser.add_argument("--cases", type=int, default=100_000, help="in all, shared among the targets")
    parser.add_argument("--seed", type=int, default=secrets.randbelow(1 << 20), help="random when not given")
    parser.add_argument("--first", type=int, default=0, help="number of the first case")
    parser.add_argument("--only", choices=TARGETS, help="one target, which gets all cases")
    wanted = parser.parse_args(arguments)
    names = [wanted.only] if wanted.only else list(TARGETS)
    print(f"seed {wanted.seed}", flush=True)
    with nullcontext(running) if running else ForkServer(environment()) as server:
        failed = [name for name in names if not _run(server, name, wanted, 1.0 if wanted.only else TARGETS[name].share)]
    print(f"faults in {', '.join(failed)}" if failed else "no faults", flush=True)
    return 1 if failed else 0


def _run(server: ForkServer, name: str, wanted: argparse.Namespace, share: float) -> bool:
    """Run one target; say how to run the case that failed."""
    with tempfile.NamedTemporaryFile() as case_file:
        np.array([-1], np.int64).tofile(case_file.name)
        cases = max(1, round(wanted.cases * share))
        code, report = server.run(name, wanted.seed, wanted.first, cases, case_file.name)
        if code == 0:
            print(report, flush=True)
            return True
        case = int(np.fromfile(case_file.name, np.int64)[0])
        again = f"python -m tests.fuzz --only {name} --seed {wanted.seed} --first {case} --cases 1"
        print(f"{name}: exit status {code} at case {case}; to run it again: {again}", flush=True)
        return False


def environment() -> dict[str, str]:
    """Return what makes numba check bounds, with a cache that is new whenever any kernel changed.

    Compiling takes longer than running: it is optimized less, unless ``NUMBA_OPT`` says otherwise.

    numba looks at the file of a kernel alone, not at those of the kernels that it calls: a driver would continue with old ones.
    """
    sources = [*(ROOT / "cdc_lib" / "binlog").rglob("*.py"), *Path(__file__).parent.glob("*.py")]
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in sorted(sources))).hexdigest()[:16]
    optimized = os.environ.get("NUMBA_OPT", "1")
    folder = cache_dir() / "fuzz" / f"{digest}-{optimized}"
    return {"NUMBA_BOUNDSCHECK": "1", "NUMBA_OPT": optimized, "NUMBA_CACHE_DIR": str(folder)}


if __name__ == "__main__":
    sys.exit(main())
