"""The server's own tests: where they are, and how their files are changed so that a run stops where tables can be compared."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.harness.servers.debian_packages import DebianPackages

PACKAGES = DebianPackages("mariadb-test-10.11", "bookworm", ("mariadb-test",))
SUITES = (
    "main",
    "engines",
    "funcs_1",
    "funcs_2",
    "json",
    "innodb",
    "gcol",
    "vcol",
    "parts",
    "binlog",
    "versioning",
    "period",
    "heap",
)
"""Those that change tables; ``engines`` means the folders below it."""

_NEEDS = re.compile(
    r"restart_mysqld|shutdown_server|restart_server|kill_mysqld|have_debug|master-slave|rpl_init|RESET\s+MASTER|PURGE\s+(BINARY|MASTER)"
    r"|FLUSH\s+TABLES\s+WITH\s+READ\s+LOCK|wait_for_slave|\bmysqld_name|DROP\s+USER\s+.*root|change_user|galera|write_file.*\.cnf",
    re.IGNORECASE,
)
"""What would stop the server, or remove the binlog while it is read."""

_DROP = re.compile(r"\s*DROP\s+(TEMPORARY\s+)?(TABLE|DATABASE|SCHEMA)\b[^;]*;\s*(#.*)?$", re.IGNORECASE)
_CLEANS = re.compile(r"\s*(#.*|--.*|(DROP|SET|DEALLOCATE|DISCONNECT|CONNECTION|UNLOCK)\b[^;]*;\s*)?$", re.IGNORECASE)
_DELIMITER = re.compile(r"\s*(--\s*)?DELIMITER\s*(\S+)", re.IGNORECASE)
WAIT = "--exec sh -c 'touch {flag}.asked; while [ ! -e {flag}.done ]; do sleep 0.05; done; rm {flag}.asked {flag}.done'"
"""A line that makes the client wait until this program has compared the tables."""


def root() -> Path:
    """Return the folder of the suites, fetching the packages the first time."""
    return PACKAGES.installation() / "usr" / "share" / "mysql" / "mysql-test"


def tests_of(suites: Sequence[str]) -> Iterator[Path]:
    """Yield the files of the tests of some suites that a running server can take."""
    for suite in suites:
        folder = root() / suite if suite == "main" else root() / "suite" / suite
        for path in sorted(folder.rglob("*.test")):
            text = path.read_text(encoding="utf-8", errors="surrogateescape")
            if (
                not _NEEDS.search(text)
                and not path.with_suffix(".opt").exists()
                and not path.with_name(f"{path.stem}-master.opt").exists()
            ):
                yield path


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
