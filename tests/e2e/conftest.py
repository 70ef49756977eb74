"""Which cases of the end-to-end tests run by default."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.harness.servers.kinds_of_server import second_cases

HERE = Path(__file__).parent
ON_BOTH_KINDS = ("test_the_lake_follows_ddl",)
"""Tests of what the two kinds of server do differently. Any other runs on one of them, alternating."""


@pytest.hookimpl(tryfirst=True)  # before -m chooses
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark every second case of those that differ in the kind of server alone."""
    mine = [item for item in items if item.path.is_relative_to(HERE) and not item.name.startswith(ON_BOTH_KINDS)]
    for item in second_cases(mine):
        item.add_marker(pytest.mark.other_kind)
