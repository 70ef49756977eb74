"""Turns of tests: each runs at one of n commits."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from tests.harness.turns import VARIABLE, out_of_turn, turn_of
from tests.integration.spark.conftest import EACH_COMMIT, HERE, ON_BOTH_KINDS


def items(number: int, turns: int | None) -> list[Any]:
    marker = SimpleNamespace(args=(turns,)) if turns else None
    return [SimpleNamespace(nodeid=f"t::test[{one}]", get_closest_marker=lambda _: marker) for one in range(number)]


@pytest.mark.parametrize("turns", [2, 3, 4])
def test_each_test_runs_at_one_of_n_commits(turns: int) -> None:
    """At each commit some of them, over n following numbers all, and none twice."""
    every = items(40, turns)
    runs = [{one.nodeid for one in every} - {one.nodeid for one in out_of_turn(every, turn)} for turn in range(turns)]
    assert all(len(chosen) > 40 / turns / 3 for chosen in runs)
    assert sum(map(len, runs)) == len(set().union(*runs)) == 40


def test_a_test_without_the_marker_always_runs() -> None:
    assert list(out_of_turn(items(5, None), 1)) == []


def test_the_turn_comes_from_the_commit_or_the_environment(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder that is no checkout has the first one."""
    monkeypatch.delenv(VARIABLE, raising=False)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    assert turn_of(tmp_path) == 0
    monkeypatch.setenv(VARIABLE, "7")
    assert turn_of(tmp_path) == 7


@pytest.mark.parametrize("modules", [EACH_COMMIT, ON_BOTH_KINDS])
def test_the_modules_that_are_named_exist(modules: set[str]) -> None:
    """A module under another name would have turns, and nobody would notice."""
    assert modules <= {path.name for path in HERE.glob("test_*.py")}
