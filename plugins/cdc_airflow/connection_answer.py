"""What the test of a connection answers: one line for each finding, in as many characters as Airflow takes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from cdc_lib.model.pace import counted

if TYPE_CHECKING:
    from cdc_lib.model.finding import Finding

MOST = 2000
"""Characters of an answer from a worker. Airflow 3.3 takes a longer one for a test that failed, and shows nothing of it."""

_LEVELS = ("error", "unknown", "warning", "info", "ok")


def answer_of(findings: Iterable[Finding]) -> tuple[bool, str]:
    """Return whether no finding is bad, and one line for each.

    If they are too many, errors come first and the last lines are counted: ``cdc doctor`` prints them all.
    """
    found = list(findings)
    lines = [line_of(one.level, f"{one.what}. {one.hint}" if one.hint else one.what) for one in found]
    if sum(len(line) + 1 for line in lines) > MOST:
        first = sorted(range(len(found)), key=lambda number: _LEVELS.index(found[number].level))
        lines = _shortened([lines[number] for number in first])
    return not any(one.is_bad for one in found), "\n".join(lines)


def line_of(level: str, text: str) -> str:
    """Return a finding as one line."""
    line = f"{level}: {' '.join(text.split())}"
    return line if len(line) <= MOST else f"{line[: MOST - 1]}…"


def _shortened(lines: list[str]) -> list[str]:
    """Return as many lines as there is room for, and how many are left out."""
    kept, room = 0, MOST - len(_left_out(len(lines)))
    while room > len(lines[kept]):  # and its line break
        room -= len(lines[kept]) + 1
        kept += 1
    if kept == 0:
        return [f"{lines[0][: room - 2]}…", _left_out(len(lines) - 1)]
    return [*lines[:kept], _left_out(len(lines) - kept)]


def _left_out(number: int) -> str:
    return f"and {counted(number, 'more line')}; cdc doctor prints all"
