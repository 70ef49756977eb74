"""Which cases of a test that runs on both kinds of server run by default."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator

import pytest


def second_cases(items: Iterable[pytest.Item]) -> Iterator[pytest.Item]:
    """Yield every second case of those that differ in the kind of server alone, alternating between MySQL and MariaDB."""
    pairs: dict[str, list[pytest.Item]] = defaultdict(list)
    for item in items:
        pairs[re.sub(r"\b(mysql|mariadb)\b", "server", item.nodeid)].append(item)
    for number, cases in enumerate(pairs.values()):
        if len(cases) == 2:
            yield cases[number % 2]
