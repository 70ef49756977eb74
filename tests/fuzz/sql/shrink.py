"""Makes a failing program smaller: delta debugging over its statements."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace

from tests.fuzz.sql.program import Part, Program, Statement
from tests.fuzz.sql.verdict import Failure

Step = tuple[int, Statement]
_SWAP = re.compile(r"^RENAME .*, (\S+\.`_(?:[^`]|``)+_(?:gho|new)`) TO ", re.DOTALL)
Runs = Callable[[Program], Failure | None]


class Shrinker:
    """Shrinks one program.

    Args:
        program: it fails.
        failure: how.
        run: runs a program and returns its failure.
        budget: how many runs may be made.

    Attributes:
        failure: of the smallest program so far.
    """

    def __init__(self, program: Program, failure: Failure, run: Runs, budget: int) -> None:
        self.program, self.failure = program, failure
        self._run, self._left = run, budget

    def smallest(self) -> Program:
        """Return the smallest program found that fails in the same way."""
        steps = [(part, one) for part, one in self.program.steps() if part <= self.failure.part]
        if self._fails(self._with(steps)):
            steps = list(self.program.steps())
        name = self.failure.table
        of_table = [(part, one) for part, one in steps if name and (name in one.sql or one.sql.startswith("SET"))]
        if len(of_table) < len(steps) and self._fails(self._with(of_table)):
            steps = list(self.program.steps())
        pieces = 2
        while len(steps) > 1 and self._left > 0:
            if (smaller := self._one_less(steps, pieces)) is not None:
                steps, pieces = smaller, max(pieces - 1, 2)
            elif pieces >= len(steps):
                break
            else:
                pieces = min(len(steps), pieces * 2)
        self._fewer_parts()
        return self.program

    def _one_less(self, steps: Sequence[Step], pieces: int) -> list[Step] | None:
        """Return the steps without one of the pieces, if that still fails; later pieces, which fewer others need, are tried first."""
        size = -(-len(steps) // pieces)
        for start in reversed(range(0, len(steps), size)):
            rest = [*steps[:start], *steps[start + size :]]
            if rest and self._fails(self._with(rest)):
                return list(self.program.steps())
        return None

    def _fewer_parts(self) -> None:
        for i in range(len(self.program.parts) - 1, 0, -1):
            parts = list(self.program.parts)
            parts[i - 1 : i + 1] = [Part(parts[i - 1].title, (*parts[i - 1].statements, *parts[i].statements))]
            self._fails(replace(self.program, parts=tuple(parts)))

    def _with(self, steps: Sequence[Step]) -> Program:
        """Return a program of these steps; parts without steps go, but the first one, which is the snapshot."""
        steps = without_empty_swaps(steps)
        numbers = sorted({0, *(part for part, _ in steps)})
        parts = [Part(self.program.parts[i].title, tuple(one for part, one in steps if part == i)) for i in numbers]
        return replace(self.program, parts=tuple(parts))

    def _fails(self, program: Program) -> bool:
        """Whether it fails in the same way; then it is the smallest one so far, with the statements that the server took."""
        if self._left <= 0:
            return False
        self._left -= 1
        failure = self._run(program)
        if failure is None or not is_same(failure, self.failure):
            return False
        self.program, self.failure = program, failure
        return True


def without_empty_swaps(steps: Sequence[Step]) -> list[Step]:
    """Return steps without the RENAME of an online schema change tool whose copy of the rows is not among them: no tool does that."""
    kept: list[Step] = []
    for step in steps:
        swap = _SWAP.search(step[1].sql)
        if swap is None or any(one.sql.startswith(f"REPLACE INTO {swap[1]} ") for _, one in kept):
            kept.append(step)
    return kept


def is_same(one: Failure, other: Failure) -> bool:
    """Whether failures are of one kind; columns of wrong rows may differ, because a smaller program has fewer."""
    if one.kind != other.kind:
        return False
    return one.kind not in ("error", "quarantined") or one.what[:50] == other.what[:50]
