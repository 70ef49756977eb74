"""The versions of the database servers that tests can run on, and where each is fetched from.

By default, tests run on :data:`DEFAULT`. ``CDC_TEST_MYSQL=8.0`` and ``CDC_TEST_MARIADB=10.11`` choose another version; then the
programs on PATH are not looked at. ``docs/operations/support-matrix.md`` names the same versions, and a test compares the two.

A jar is pinned by its hash in ``spark_jobs/runtime/jars.lock``. Debian's packages are the newest of their suite, and apt checks
them against the archive's signature.
"""

from __future__ import annotations

import os

from tests.harness.servers.debian_packages import DebianPackages

DEFAULT = {"mysql": "9.7", "mariadb": "11.4"}

VARIABLES = {"mysql": "CDC_TEST_MYSQL", "mariadb": "CDC_TEST_MARIADB"}

MYSQL_PACKAGES = DebianPackages("mysql-sid", "sid", ("mysql-server-core", "mysql-client-core"))
"""MySQL 9.7, and the client programs of all versions."""

MYSQL_JARS = {"8.0": "mysql-server-8.0"}
"""Versions whose server is in a jar, and the jar's name in the lock."""

MYSQL_JAR_LIBRARIES = DebianPackages(
    "mysql-jar-libraries", "bookworm", ("libaio1", "libnuma1", "libcrypt1", "libstdc++6")
)
"""The system libraries that a server from a jar is linked with."""

MARIADB_PACKAGES = {
    "10.5": DebianPackages("mariadb-10.5", "bullseye", ("mariadb-server-core-10.5", "mariadb-client-core-10.5")),
    "10.11": DebianPackages("mariadb-10.11", "bookworm", ("mariadb-server-core", "mariadb-client-core")),
    "11.8": DebianPackages("mariadb-11.8", "trixie", ("mariadb-server-core", "mariadb-client-core")),
}
"""Versions whose server is in Debian's packages. 11.4 is in a jar."""

KNOWN = {
    "mysql": (*MYSQL_JARS, DEFAULT["mysql"]),
    "mariadb": ("10.5", "10.11", DEFAULT["mariadb"], "11.8"),
}


class UnknownVersion(Exception):
    """The environment asks for a version that the harness cannot start."""


def chosen(flavor: str) -> str | None:
    """Return the version that the environment asks for, such as ``10.11``; None for the default.

    Args:
        flavor: ``mysql`` or ``mariadb``.

    Raises:
        UnknownVersion: the harness cannot start that version.
    """
    version = os.environ.get(VARIABLES[flavor])
    if version and version not in KNOWN[flavor]:
        raise UnknownVersion(f"{VARIABLES[flavor]}={version}: the versions are {', '.join(KNOWN[flavor])}")
    return version or None


def in_use(flavor: str) -> str:
    """Return the version that the harness starts if PATH has none, such as ``9.7``."""
    return chosen(flavor) or DEFAULT[flavor]


def release(version: str) -> tuple[int, ...]:
    """Return the numbers of what ``SELECT VERSION()`` or :func:`chosen` says: (10, 11, 18) for ``10.11.18-MariaDB-log``."""
    return tuple(int(number) for number in version.partition("-")[0].split("."))


def others() -> list[str]:
    """Return the versions that only ``./dev test-versions`` runs, such as ``mysql=8.0``."""
    return [f"{flavor}={version}" for flavor, known in KNOWN.items() for version in known if version != DEFAULT[flavor]]
