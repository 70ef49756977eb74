"""``python -m tests.fuzz.mtr``: test after test of the server against a source that captures all databases."""

from __future__ import annotations

import argparse
import logging
import os
import secrets
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path
from random import Random

import pymysql

from tests.fuzz.mtr.suites import TESTS, Tests, stopping
from tests.fuzz.sql.run import LOCK_WAIT_TIMEOUT, Running
from tests.fuzz.sql.verdict import Failure
from tests.fuzz.sql.world import Home, World
from tests.harness.servers import SqlServer

SECONDS = 60
"""How long one test may take, without the times in which tables are compared."""
_STOPS = 3
_TABLES = (
    "SELECT table_schema, table_name FROM information_schema.tables "
    "WHERE table_schema NOT IN ('information_schema', 'performance_schema') ORDER BY 1, 2"
)
"""Some tests drop tables of the server itself, and some leave one that a prepared transaction locks for ever."""


def main(arguments: list[str] | None = None) -> int:
    """Run tests until the time is over; the exit status is 1 if one of them showed a fault."""
    wanted = _parser().parse_args(arguments)
    logging.getLogger("cdc_lib").setLevel(logging.ERROR)
    tests = TESTS[wanted.server]
    if unknown := set(wanted.suite) - set(tests.suites):
        sys.exit(f"{wanted.server} has no suite {min(unknown)}: it has {', '.join(tests.suites)}")
    paths = list(tests.of(wanted.suite or tests.suites))
    if wanted.only:
        paths = [path for path in paths if any(one in str(path) for one in wanted.only)]
    Random(wanted.seed).shuffle(paths)
    print(f"seed {wanted.seed}, {len(paths)} tests", flush=True)
    began, ran, seen, refused = time.monotonic(), 0, Counter[str](), Counter[str]()
    with tempfile.TemporaryDirectory(prefix="fuzz-mtr-") as folder, World(Path(folder)) as world:
        world.spark.sparkContext.setLogLevel("ERROR")
        for path in paths:
            if time.monotonic() - began > wanted.minutes * 60:
                break
            ran += 1
            test = _Test(world, wanted.server, tests, path)
            failure = test.run()
            refused.update(test.refused)
            if ran % 100 == 0:
                print(f"{ran} tests in {time.monotonic() - began:.0f} s", flush=True)
            if failure is not None:
                seen[failure.signature] += 1
                print(f"{path.relative_to(tests.root())}: {failure.signature}", *failure.detail, sep="\n  ", flush=True)
        print(f"{ran} tests in {time.monotonic() - began:.0f} s, {sum(seen.values())} with a fault", flush=True)
    for title, counts in (("with a fault", seen), ("with a table that is refused", refused)):
        print(f"tests {title}:")
        for signature, count in counts.most_common():
            print(f"{count:5d}  {signature}")
    return 1 if seen else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="./dev fuzz mtr", description="A server's own test suites against the whole product."
    )
    parser.add_argument("--minutes", type=float, default=10, help="how long; a test that was begun is finished")
    parser.add_argument(
        "--seed", type=int, default=secrets.randbelow(1 << 20), help="order of the tests; random when not given"
    )
    parser.add_argument("--server", choices=list(TESTS), default="mariadb", help="whose tests; by default %(default)s")
    parser.add_argument("--suite", nargs="+", default=[], help="all when not given")
    parser.add_argument("--only", nargs="+", default=[], help="parts of the paths of tests")
    return parser


class _Test:
    """One test: the client runs it, and waits while the product drains, merges and is compared.

    Attributes:
        refused: why tables of it were quarantined.
    """

    def __init__(self, world: World, flavor: str, tests: Tests, path: Path) -> None:
        self._world, self._flavor, self._tests, self._path = world, flavor, tests, path
        self.refused: set[str] = set()

    def run(self) -> Failure | None:
        """Return the first fault."""
        server = self._world.server(self._flavor)
        before, tables = _globals(server), server.execute(_TABLES)
        failure, damaged = None, True
        # A test may have removed the privileges with which databases are dropped.
        with suppress(pymysql.OperationalError):
            with self._world.home(self._flavor, all_databases=True) as home:
                running = Running(home, self.refused)
                try:
                    failure = running.part(0, []) or self._watched(home, running)
                    failure = failure if self._alive(server) else None
                finally:
                    if self._alive(server):
                        _restore(server, before)
                    else:
                        server.restart()
            damaged = server.execute(_TABLES) != tables
        if damaged:
            self._world.replace_server(self._flavor)
        return failure

    def _watched(self, home: Home, running: Running) -> Failure | None:
        flag = home.folder / "stop"
        text = self._path.read_text(encoding="utf-8", errors="surrogateescape")
        changed = home.folder / self._path.name
        changed.write_text(
            self._tests.prologue + stopping(text, flag, _STOPS), encoding="utf-8", errors="surrogateescape"
        )
        asked, done = flag.with_suffix(".asked"), flag.with_suffix(".done")
        stops, left = 0, float(SECONDS)
        with _client(home, self._tests, changed) as client:
            try:
                while client.poll() is None and left > 0:
                    if asked.exists() and not done.exists():
                        stops += 1
                        if (failure := self._compared(home, running, stops)) is not None:
                            return failure
                        done.touch()
                    time.sleep(0.05)
                    left -= 0.05
            finally:
                # With the commands that it waits for: they have its connections, and so its locks.
                with suppress(ProcessLookupError):
                    os.killpg(client.pid, signal.SIGKILL)
        return self._compared(home, running, stops + 1)

    def _compared(self, home: Home, running: Running, number: int) -> Failure | None:
        try:
            failure = running.part(number, [])
            return None if failure is not None and f"({LOCK_WAIT_TIMEOUT})" in " ".join(failure.detail) else failure
        except pymysql.OperationalError as error:
            if self._alive(home.server):
                # A session of the test holds a lock on a table that is compared, or the test removed the table's file.
                if error.args[0] in (LOCK_WAIT_TIMEOUT, 1099, 1100, 1030, 1814):
                    return None
                return Failure("comparison", str(error.args), (), number)
            return None  # the test ended the server itself

    @staticmethod
    def _alive(server: SqlServer) -> bool:
        with suppress(pymysql.MySQLError):
            server.execute("SELECT 1")
            return True
        return False


def _client(home: Home, tests: Tests, test: Path) -> subprocess.Popen[bytes]:
    """Start the server's test client; errors of statements do not end it."""
    folder = home.folder / "var"
    for one in ("log", "tmp"):
        (folder / one).mkdir(parents=True, exist_ok=True)
    server, root = home.server, tests.root()
    environment = {
        **os.environ,
        "MYSQL_TEST_DIR": str(root),
        "MYSQLTEST_VARDIR": str(folder),
        "MYSQL_TMP_DIR": str(folder / "tmp"),
        "MASTER_MYPORT": str(server.port),
        "DEFAULT_MASTER_PORT": str(server.port),
    }
    command = [
        *tests.command(),
        "--no-defaults",
        "--protocol=tcp",
        f"--host={server.host}",
        f"--port={server.port}",
    ]
    command += ["--user=root", f"--database={home.names[0]}", f"--basedir={root}/", f"--tmpdir={folder / 'tmp'}"]
    command += [*tests.options, "--silent", f"--test-file={test}"]
    log = (home.folder / "client.log").open("wb")
    with log:
        return subprocess.Popen(
            command, env=environment, cwd=root, stdout=log, stderr=subprocess.STDOUT, start_new_session=True
        )


def _globals(server: SqlServer) -> dict[str, str]:
    return dict(server.execute("SHOW GLOBAL VARIABLES"))


def _restore(server: SqlServer, before: dict[str, str]) -> None:
    """Give the server's variables the values that they had before a test changed them."""
    for name, value in _globals(server).items():
        if value != before.get(name, value):
            old = before[name] if before[name].lstrip("-").isdigit() else repr(before[name])
            with suppress(pymysql.MySQLError):
                server.execute(f"SET GLOBAL {name} = {old}")


if __name__ == "__main__":
    sys.exit(main())
