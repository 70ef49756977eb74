"""Lines about long work."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

from cdc_lib.model.pace import EVERY, Pace
from tests.harness.docs.pages import ROOT


def test_work_that_ends_soon_says_nothing():
    """A run of seconds has no line of it."""
    pace = Pace("snapshot of s.t", "row", 100, 50.0)
    assert pace.tick(60, 50.0 + EVERY - 0.1) is None


def test_a_line_shows_progress_rate_and_time_left():
    """And the next one comes as much later."""
    pace = Pace("snapshot of s.t", "row", 4_000_000, 0.0)
    line = pace.tick(1_000_000, 20.0)
    assert line == "snapshot of s.t: 1,000,000 rows of about 4,000,000 in 20 s, 50,000 a second, about 60 s left"
    assert pace.tick(1, 20.0 + EVERY - 0.1) is None
    assert pace.tick(1, 20.0 + EVERY) is not None


def test_work_that_does_not_move_says_nothing_and_a_slow_one_no_rate_of_zero():
    """The next line comes with the next thing that is done."""
    pace = Pace("backlog", "table", 9, 0.0)
    assert pace.tick(1, 20.0) == "backlog: 1 table of about 9 in 20 s, about 3 min left"
    assert pace.tick(0, 60.0) is None
    assert pace.tick(1, 61.0) is not None


def test_what_was_done_before_counts_for_no_speed():
    """A snapshot continues where an earlier run was stopped."""
    pace = Pace("s", "row", 3000, 0.0, 1000, 1000)
    assert pace.tick(500, 10.0) == "s: 1,500 rows of about 3,000 in 10 s, 50 a second, about 30 s left"


def test_an_estimate_that_was_too_low_promises_no_end():
    """The server's statistics are old."""
    assert Pace("s", "row", 10, 0.0).tick(100, 10.0) == "s: 100 rows of about 100 in 10 s, 10 a second"
    assert Pace("s", "row", 0, 0.0).tick(100, 10.0) == "s: 100 rows in 10 s, 10 a second"


NOUN = re.compile(
    r" (?:(?:more|new|old|small|wrong|open|lost|key|data) )?(?:rows|tables|windows|changes|batches|files|snapshots|ranges|keys|columns|chunks|events|parts|lines)\b"
)
ALWAYS_MORE = {"len(files)", "len(tables)", "len(clean)", "len(wrong)", "rule.max_keys", "tasks"}
"""Numbers that are 2 or more where a text has them, or limits that somebody set."""


def _without_a_singular(path: Path) -> Iterator[str]:
    """Yield the places where a number is followed by a noun in the plural, also where the number is one."""
    for node in ast.walk(ast.parse(path.read_text())):
        parts = node.values if isinstance(node, ast.JoinedStr) else []
        for number, text in pairwise(parts):
            if (
                isinstance(number, ast.FormattedValue)
                and isinstance(text, ast.Constant)
                and NOUN.match(str(text.value))
            ):
                value = ast.unparse(number.value)
                if not re.search(r"counted\(|^[A-Z_]+$|^name$|join\(", value) and value not in ALWAYS_MORE:
                    yield f"{path.relative_to(ROOT)}: {{{value}}}{text.value}"


def test_every_count_in_a_text_has_a_singular():
    """``counted`` gives it: a log that says "1 rows" reads as if nobody had looked at it."""
    files = [path for room in ("cdc_lib", "spark_jobs", "plugins") for path in (ROOT / room).rglob("*.py")]
    assert [one for path in files for one in _without_a_singular(path)] == []
