"""The page that finds the way answers ten tasks in three lines each, and everything that it names exists."""

from __future__ import annotations

import re

import pytest

from tests.harness.docs.pages import ROOT, dev_problem, problem_of
from tests.harness.docs.paths import is_defined

PAGE = (ROOT / "docs" / "internals" / "find-your-way.md").read_text()
TASKS = dict(re.findall(r"^### (.+)\n\n((?:\* .+\n)+)", PAGE.partition("## Ten tasks\n")[2], re.MULTILINE))
WORDS = re.compile(r"--[a-z-]+|scd2|SHOW BINLOG EVENTS")
"""What a line may name that is nothing of this repository; options are those of the command line's rules."""


def unknown(span: str) -> bool:
    """Whether a name in backticks is no file or folder, no name of a module, and no command."""
    if span.startswith("./dev"):
        return dev_problem(span) is not None
    if span.startswith("cdc "):
        return problem_of(span) is not None
    if re.fullmatch(r"[a-z_]+(\.\w+)+", span) and not span.endswith((".py", ".lock", ".md")):
        return not is_defined(span)
    return not (WORDS.fullmatch(span) or ("/" in span and (ROOT / span).exists()))


def test_ten_tasks_are_answered():
    """A task that loses its heading is found."""
    assert len(TASKS) == 10
    assert PAGE.count("\n### ") == 10


@pytest.mark.parametrize("task", TASKS)
def test_a_task_is_answered_in_three_lines_whose_names_exist(task):
    """Each line names a file, a name in a module, or a page."""
    lines = TASKS[task].splitlines()
    assert len(lines) == 3
    assert [span for line in lines for span in re.findall(r"`([^`]+)`", line) if unknown(span)] == []
    assert all(
        re.search(r"`(?:cdc_lib|spark_jobs|plugins|tests|demo|docs)[/.]", line) or "](" in line for line in lines
    )


def test_a_name_that_does_not_exist_is_found():
    wrong = ("cdc_lib/cli/nothing", "cdc_lib.merge.collapse.nothing", "cdc walk shop", "./dev dance", "nothing")
    assert [span for span in wrong if not unknown(span)] == []
    assert not unknown("cdc_lib.apply.rows.last_changes")
