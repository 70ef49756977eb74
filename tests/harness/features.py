"""Features that not every version of the servers has.

``@pytest.mark.needs("VECTOR columns")`` skips a test on a server without the feature.
"""

from __future__ import annotations

from tests.harness.servers import SqlServer

NEVER = (999,)

SINCE: dict[str, dict[str, tuple[int, ...]]] = {
    "compressed transactions": {"mysql": (8, 0, 20)},
    "invisible columns": {"mysql": (8, 0, 23)},
    "tagged GTIDs": {"mysql": (8, 3)},
    "VECTOR columns": {"mysql": (9, 0)},
    "UCA 14 collations": {"mysql": NEVER, "mariadb": (10, 10)},
    "UUID and INET4 columns": {"mariadb": (10, 10)},
}
"""Feature to the first version that has it, for each kind of server that some versions lack it of. Source: the release notes."""


def has(server: SqlServer, feature: str) -> bool:
    """Return whether the server has the feature."""
    return server.release >= SINCE[feature].get(server.flavor, (0,))
