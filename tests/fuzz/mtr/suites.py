"""The server's own tests: where they are, and how their files are changed so that a run stops where tables can be compared."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.harness.servers.debian_packages import DebianPackages

_SOURCE = re.compile(r"^\s*(?:--\s*)?source\s+([\w./-]+)", re.IGNORECASE | re.MULTILINE)
_DEEPEST = 3


@dataclass(frozen=True, slots=True)
class Tests:
    """The tests of one kind of server.

    Args:
        packages: of Debian, with the tests and their client.
        folder: of the tests, in the packages.
        main: folder of the first suite in it.
        client: path of the client in the packages.
        options: by which the client goes on at an error.
        prologue: lines for the same, before those of a test.
        suites: those that change tables; ``engines`` means the folders below it.
    """

    packages: DebianPackages
    folder: str
    main: str
    client: str
    options: tuple[str, ...]
    prologue: str
    suites: tuple[str, ...]

    def root(self) -> Path:
        """Return the folder of the tests, fetching the packages the first time."""
        return self.packages.installation() / self.folder

    def command(self) -> list[str]:
        """Return the command of the client, without arguments."""
        return [*self.packages.loader(), str(self.packages.installation() / self.client)]

    def of(self, suites: Sequence[str]) -> Iterator[Path]:
        """Yield the files of the tests of some suites that a running server can take."""
        for suite in suites:
            for path in sorted((self.root() / (self.main if suite == "main" else f"suite/{suite}")).rglob("*.test")):
                text = "".join(self._with_included(path))
                options = (path.with_suffix(".opt"), path.with_name(f"{path.stem}-master.opt"))
                if not _NEEDS.search(text) and not any(one.exists() for one in options):
                    yield path

    def _with_included(self, path: Path, depth: int = 0) -> Iterator[str]:
        """Yield the text of a file, and those of the files that it includes."""
        text = path.read_text(encoding="utf-8", errors="surrogateescape")
        yield text
        for name in _SOURCE.findall(text) if depth < _DEEPEST else ():
            if (included := self.root() / name).is_file():
                yield from self._with_included(included, depth + 1)


_BOTH = ("main", "engines", "funcs_1", "funcs_2", "json", "innodb", "gcol", "parts", "binlog")
TESTS = {
    "mariadb": Tests(
        DebianPackages("mariadb-test-10.11", "bookworm", ("mariadb-test",)),
        "usr/share/mysql/mysql-test",
        "main",
        "usr/bin/mariadb-test",
        ("--continue-on-error",),
        "",
        (*_BOTH, "vcol", "versioning", "period", "heap"),
    ),
    "mysql": Tests(
        DebianPackages("mysql-test-9.7", "sid", ("mysql-testsuite",)),
        "usr/lib/mysql-test",
        "t",
        "usr/lib/mysql-test/bin/mysqltest",
        (),
        "--disable_abort_on_error\n",
        (*_BOTH, "gis", "innodb_gis", "collations", "binlog_gtid", "jdv"),
    ),
}

_NEEDS = re.compile(
    r"restart_mysqld|shutdown_server|restart_server|kill_mysqld|have_debug|master-slave|rpl_init|RESET\s+(MASTER|BINARY)|PURGE\s+(BINARY|MASTER)"
    r"|FLUSH\s+TABLES\s+WITH\s+READ\s+LOCK|wait_for_slave|\bmysqld_name|DROP\s+USER\s+.*root|change_user|galera|write_file.*\.cnf"
    r"|offline_mode|gtid_mode|mysql_upgrade|CHANGE\s+(MASTER|REPLICATION)\b",
    re.IGNORECASE,
)
"""What would stop the server or make it a replica, change its own tables, refuse the product's sessions, or remove the binlog or its GTIDs while it is read."""

_DROP = re.compile(r"\s*DROP\s+(TEMPORARY\s+)?(TABLE|DATABASE|SCHEMA)\b[^;]*;\s*(#.*)?$", re.IGNORECASE)
_CLEANS = re.compile(r"\s*(#.*|--.*|(DROP|SET|DEALLOCATE|DISCONNECT|CONNECTION|UNLOCK)\b[^;]*;\s*)?$", re.IGNORECASE)
_DELIMITER = re.compile(r"\s*(--\s*)?DELIMITER\s*(\S+)", re.IGNORECASE)
WAIT = "--exec sh -c 'touch {flag}.asked; while [ ! -e {flag}.done ]; do sleep 0.05; done; rm {flag}.asked {flag}.done'"
"""A line that makes the client wait until this program has compared the tables."""


def stopping(text: str, flag: Path, most: int) -> str:
    """Return a test that waits before some of its DROPs, and before its last ones.

    A test drops its tables when it is done with them, often many times: only before that they can be compared.

    Args:
        text: the test.
        flag: path of the files by which client and program wait for each other.
        most: how many times it waits at most.
    """
    lines = text.splitlines()
    wait = WAIT.format(flag=flag)
    end = next((at for at in range(len(lines), 0, -1) if not _CLEANS.match(lines[at - 1])), 0)
    places = [at for at in _drops(lines) if at < end]
    step = max(1, len(places) // most)
    chosen = {*places[step - 1 :: step][:most], end}
    return "\n".join(
        part for at, line in enumerate([*lines, ""]) for part in ([wait, line] if at in chosen else [line])
    )


def _drops(lines: Sequence[str]) -> Iterator[int]:
    """Yield the numbers of lines that are a whole DROP outside of blocks, after a line that ends a statement."""
    depth, plain = 0, True
    before = ""
    for at, line in enumerate(lines):
        if found := _DELIMITER.match(line):
            plain = found[2].rstrip(";") in ("", ";") or found[2].startswith(";")
        if (
            plain
            and not depth
            and _DROP.match(line)
            and (not before or before.endswith((";", "}")) or before.startswith("#"))
        ):
            yield at
        depth = max(0, depth + (line.count("{") - line.count("}") if plain else 0))
        before = line.strip() or before
