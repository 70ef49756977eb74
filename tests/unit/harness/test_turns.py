"""Turns of tests: each runs at one of n commits."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from tests.harness.processes.turns import BY_FOLDER, BY_MODULE, VARIABLE, out_of_turn, turn_of
from tests.integration.spark.conftest import EACH_COMMIT, HERE, ON_BOTH_KINDS


def items(number: int, turns: int | None, module: str = "t.py") -> list[Any]:
    marker = SimpleNamespace(args=(turns,)) if turns else None
    return [
        SimpleNamespace(nodeid=f"{module}::test[{each}]", get_closest_marker=lambda _: marker) for each in range(number)
    ]


@pytest.mark.parametrize(
    ("turns", "every"),
    [
        *((turns, items(40, turns)) for turns in (2, 3, 4)),
        (BY_FOLDER["tests/e2e"], items(40, None, "tests/e2e/test_tls.py")),
        (BY_FOLDER["tests/integration"], items(40, None, "tests/integration/drain/test_drain.py")),
    ],
)
def test_each_test_runs_at_one_of_n_commits(turns: int, every: list[Any]) -> None:
    """At each commit some of them, over n following numbers all, and none twice."""
    runs = [{one.nodeid for one in every} - {one.nodeid for one in out_of_turn(every, turn)} for turn in range(turns)]
    assert all(len(chosen) > 40 / turns / 3 for chosen in runs)
    assert sum(map(len, runs)) == len(set().union(*runs)) == 40


def test_other_tests_always_run() -> None:
    """Those of other folders, and those that are marked so."""
    assert list(out_of_turn(items(5, None, "tests/unit/test_error_codes.py"), 1)) == []
    assert list(out_of_turn(items(5, 1, "tests/e2e/test_tls.py"), 1)) == []


def test_the_modules_of_airflow_run_as_a_whole() -> None:
    every = items(40, None, f"{BY_MODULE}/test_tasks.py")
    turns = [len(list(out_of_turn(every, turn))) for turn in range(BY_FOLDER[BY_MODULE])]
    assert sorted(turns) == [0, *(40 for _ in turns[1:])]


@pytest.mark.parametrize("folder", BY_FOLDER)
def test_the_folders_exist(folder: str) -> None:
    assert (HERE.parents[2] / folder).is_dir()


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
