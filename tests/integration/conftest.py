"""Which cases of tests that run on both kinds of server run by default."""

from __future__ import annotations

import re
from collections import defaultdict
from pathlib import Path

import pytest

HERE = Path(__file__).parent

ON_ONE_KIND = (
    "backfill",
    "consumers",
    "plan/test_advance",
    "plan/test_gaps",
    "quarantine",
    "snapshot/test_resnapshot",
    "snapshot/test_resume",
    "status/test_lag",
    "status/test_metrics",
    "test_pipeline",
)
"""Tests of what does not depend on the kind of server: each case runs on one of them, alternating; ``-m slow`` runs the other."""


@pytest.hookimpl(tryfirst=True)  # before -m chooses
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark every second case slow of those that differ in the kind of server alone."""
    pairs: dict[str, list[pytest.Item]] = defaultdict(list)
    modules = {item.path for item in items}
    here = {path for path in modules if any(path.with_suffix("").is_relative_to(HERE / part) for part in ON_ONE_KIND)}
    for item in items:
        if item.path in here:
            pairs[re.sub(r"\b(mysql|mariadb)\b", "server", item.nodeid)].append(item)
    for number, cases in enumerate(pairs.values()):
        if len(cases) == 2:
            cases[number % 2].add_marker(pytest.mark.slow)
