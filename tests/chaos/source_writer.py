"""What writes to tables of its own at the source."""

from __future__ import annotations

from random import Random
from typing import Any

from tests.chaos.site import Site


class SourceWriter:
    """Writes on the current primary.

    Args:
        site: the servers.
        database: where the tables are.
        random: the random generator.
    """

    def __init__(self, site: Site, database: str, random: Random) -> None:
        self._site = site
        self._database = database
        self._random = random

    def _execute(self, statement: str) -> list[tuple[Any, ...]]:
        return list(self._site.primary.execute(statement, database=self._database))
