"""Each message of the tables of ``docs/operations.md`` is caused by a test, or listed with the reason why none causes it."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

from tests.unit.docs.operations_messages import CAUSED_ONLY, FOLLOWED_ELSEWHERE, NOT_CAUSED

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "operations.md").read_text()
OF_THE_PAGE = sorted((ROOT / "tests" / "integration").rglob("test_operations_*.py"))
"""Tests of the page: what it says to do is followed there."""
ELSEWHERE = FOLLOWED_ELSEWHERE | {message: test for message, (test, _) in CAUSED_ONLY.items()}
SHORTEST = 11
"""Of a text of a test that is a message, in characters."""


def rows(page):
    """Yield the messages of each row, without those that its text names as well, and the row's errors."""
    for line in page.splitlines():
        cells = line.split(" | ")
        if line.startswith("| `") and len(cells) > 1:
            errors = re.findall(r"`([A-Z][A-Za-z]+)`", cells[1]) if len(cells) > 2 else ["ConfigError"]
            for message in re.findall(r"`([^`]+)`", cells[0]):
                yield message, errors


ROWS = dict(rows(PAGE))


def parts(text):
    """Return the fixed parts of a message."""
    return [part for part in (one.strip(" :()") for one in text.split("…")) if part]


def holds(message, text):
    """Whether a text of a test is a message, or parts of it in their order."""
    at = 0
    wanted = parts(text)
    for part in wanted:
        at = message.find(part, at)
        if at < 0:
            return False
        at += len(part)
    return sum(map(len, wanted)) >= SHORTEST or (bool(wanted) and wanted == parts(message))


@cache
def texts_of(path):
    """Return the texts in a file of tests; of a line of the page, its message."""
    found = {
        node.value
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and "\n" not in node.value
    }
    return {match[1] if (match := re.search(r"\| `([^`]+)`", text)) else text for text in found}


@cache
def followed():
    """Return the messages that tests of the page cause; a text that is a part of several messages is none of them."""
    found = set()
    for text in frozenset().union(*map(texts_of, OF_THE_PAGE)):
        meant = [message for message in ROWS if holds(message, text)]
        found |= {message for message in meant if len(meant) == 1 or parts(message) == parts(text)}
    return found


@cache
def names_in(path):
    """Return the names of the tests of a file."""
    tree = ast.parse((ROOT / path).read_text())
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")}


@pytest.mark.parametrize("message", sorted(ROWS))
def test_a_message_of_the_page_is_caused_by_a_test(message):
    """A new row without a test is found; so is a test or a reason that is not needed any more."""
    named = [message in one for one in (followed(), FOLLOWED_ELSEWHERE, CAUSED_ONLY, NOT_CAUSED)]
    assert named.count(True) == 1, (
        f"{message}: by a test of the page, followed elsewhere, caused only, not caused: {named}"
    )


@pytest.mark.parametrize("message", sorted(ELSEWHERE))
def test_a_test_elsewhere_exists_and_names_the_message_or_its_error(message):
    """A test that was renamed is found."""
    path, _, name = ELSEWHERE[message].partition("::")
    assert name in names_in(path)
    text = (ROOT / path).read_text()
    assert any(error in text for error in ROWS[message]) or any(holds(message, one) for one in texts_of(ROOT / path))


def test_rows_that_no_test_follows_have_a_reason_and_are_few():
    """A row that is caused alone says why nothing does what it says."""
    assert all(len(reason) > 20 for _, reason in CAUSED_ONLY.values())
    assert len(CAUSED_ONLY) + len(NOT_CAUSED) < len(ROWS) / 3


def test_messages_that_no_test_causes_are_on_the_page_and_few():
    """Each has its reason."""
    assert set(NOT_CAUSED) <= set(ROWS)
    assert all(len(reason) > 20 for reason in NOT_CAUSED.values())
    assert len(NOT_CAUSED) < len(ROWS) / 5


def test_a_row_without_a_test_is_found():
    """Were the page or the tests written in another way, nothing would be looked at."""
    assert dict(rows("| `a new message about …` | `MergeError` | Do it. |")) == {
        "a new message about …": ["MergeError"]
    }
    assert holds("a new message about …: it is wrong", "a new message about … it is wrong")
    assert not holds("a new message about …: it is wrong", "it is wrong … a new message")
    assert (
        "the lake table … does not exist any more: it was dropped or renamed, or lake.uri names another catalog"
        in followed()
    )
    assert len(ROWS) > 150
    assert len(followed()) > 80
