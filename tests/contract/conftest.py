"""Which cases of the contract of a lake format run by default."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

import pytest


@pytest.hookimpl(tryfirst=True)  # before -m chooses
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the modes of a test that another test runs as slow: they take Spark several minutes."""
    for item in _other_modes(items):
        item.add_marker(pytest.mark.slow)


def _other_modes(items: list[pytest.Item]) -> Iterator[pytest.Item]:
    """Yield the cases of all but one mode of each test, by turns."""
    tests: dict[str, dict[str, list[pytest.Item]]] = defaultdict(lambda: defaultdict(list))
    for item in items:
        callspec = getattr(item, "callspec", None)
        if item.path.name == "test_merge_target.py" and callspec is not None and "mode" in callspec.params:
            tests[item.nodeid.partition("[")[0]][callspec.params["mode"]].append(item)
    # A test of names has one mode for each name: all of its cases run.
    by_modes = [modes for test, modes in tests.items() if "test_names_" not in test]
    for number, modes in enumerate(by_modes):
        for index, cases in enumerate(modes.values()):
            if index != number % len(modes):
                yield from cases
