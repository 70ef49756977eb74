"""Which cases of tests that run on both kinds of server run by default."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.harness.servers.kinds_of_server import second_cases

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
"""Tests of what does not depend on the kind of server: each case runs on one of them, alternating."""


@pytest.hookimpl(tryfirst=True)  # before -m chooses
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark every second case of those that differ in the kind of server alone."""
    modules = {item.path for item in items}
    here = {path for path in modules if any(path.with_suffix("").is_relative_to(HERE / part) for part in ON_ONE_KIND)}
    for item in second_cases(item for item in items if item.path in here):
        item.add_marker(pytest.mark.other_kind)
