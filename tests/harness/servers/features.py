"""Features that not every version of the servers has.

``@pytest.mark.needs("VECTOR columns")`` skips a test on a server without the feature.
"""

from __future__ import annotations

from tests.harness.servers import SqlServer

NEVER = (999,)

SINCE: dict[str, dict[str, tuple[int, ...]]] = {
    "multi-valued indexes": {"mysql": (8, 0, 17)},
    "compressed transactions": {"mysql": (8, 0, 20)},
    "comments of users": {"mysql": (8, 0, 21)},
    "invisible columns": {"mysql": (8, 0, 23)},
    "CREATE TABLE ... SELECT with GTIDs": {"mysql": (8, 0, 21)},
    "columns added and dropped in place anywhere": {"mysql": (8, 0, 29)},
    "generated invisible primary keys": {"mysql": (8, 0, 30)},
    "tagged GTIDs": {"mysql": (8, 3)},
    "expressions as defaults of added columns with GTIDs": {"mysql": (9, 7)},
    "VECTOR columns": {"mysql": (9, 0), "mariadb": (11, 7)},
    "CREATE OR REPLACE DATABASE": {"mysql": NEVER},
    "UCA 14 collations": {"mysql": NEVER, "mariadb": (10, 10)},
    "collations with names for each character set": {"mariadb": (10, 10)},
    "ALTER logged in two parts": {"mysql": NEVER, "mariadb": (10, 8)},
    "UUID and INET4 columns": {"mysql": NEVER, "mariadb": (10, 10)},
    "the C library of the tests": {"mariadb": (10, 11)},
    "row images without duplicates": {"mysql": NEVER, "mariadb": (11, 4)},
    "row images without generated columns": {"mysql": NEVER, "mariadb": (11, 8)},
    "timestamps after 2038": {"mysql": NEVER, "mariadb": (11, 5)},
}
"""The first version that has each feature, for flavors with versions that lack it. Source: the release notes.

Two are from trying the versions of this file only: expressions as defaults (8.0.15 refuses them, 9.7 does not), and row images without
generated columns (11.8 leaves out stored and hidden ones, 11.4 does not).
MariaDB 10.5 runs with Debian 11's C library, which is older than the one that the tests compile a library with."""


def has(server: SqlServer, feature: str) -> bool:
    """Return whether the server has the feature."""
    return server.release >= SINCE[feature].get(server.flavor, (0,))
