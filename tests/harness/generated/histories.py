"""Random histories of one table, split into random batches and merges, for which the merge must be right.

A history is pure data. The expected rows at the end follow from the operations alone, not from any code of
the merge.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from hypothesis import strategies as st

from tests.harness.lake.batches import Row

STEP = 10
"""Distance between the offsets of two events; windows end between them."""

KEYS = 6
SPLIT = 3
"""Chunk 0 holds the keys below it, chunk 1 the others."""

State = Mapping[int, Any]
"""Value of each key: a number, or one for each of the columns v and w."""


@dataclass(frozen=True)
class Chunk:
    """A snapshot chunk: its rows as of ``high``, when it was read; ``low`` is its low watermark."""

    number: int
    low: int
    high: int
    rows: State


@dataclass(frozen=True)
class Step:
    """One merge: chunks and windows by their numbers; ``again`` repeats an earlier step instead."""

    chunks: tuple[int, ...]
    windows: tuple[int, ...]
    again: int | None = None


@dataclass(frozen=True)
class History:
    """All changes of a table, and the merges that apply them.

    Args:
        windows: ``(start, stop, rows)``, one after the other.
        chunks: of one snapshot; empty when the table was empty at the start.
        steps: the merges, in order; together they hold every window and every chunk.
        final: what the table must hold after them.
        truncates: offsets of TRUNCATE statements.
        doubtful: whether a row with absent cells got its key while the chunks were read: its cells are then in nothing
            that is stored.
    """

    windows: tuple[tuple[int, int, tuple[Row, ...]], ...]
    chunks: tuple[Chunk, ...]
    steps: tuple[Step, ...]
    final: State
    truncates: tuple[int, ...] = ()
    doubtful: bool = False


@st.composite
def histories(draw: st.DrawFn, *, most_events: int = 25, partial: bool = False, statements: bool = False) -> History:
    """Draw a history of operations that a database allows; with ``statements``, TRUNCATE is one of them.

    With ``partial`` there are two columns, and changes lack what they did not touch, as with binlog_row_image=MINIMAL. The
    merges come in the order of the pipeline: no window between the chunks of a snapshot, and none after them that precedes them.
    """
    with_snapshot = draw(st.booleans())
    nothing: Any = (0, 0) if partial else 0
    start = dict.fromkeys(draw(st.sets(st.integers(0, KEYS - 1))), nothing) if with_snapshot else {}
    operation = _partial_operation if partial else _operation
    events, states = _events(draw, start, most_events, operation, statements=statements)
    # A transaction starts at its GTID, before the statement; watermarks lie there too.
    truncates = tuple(number * STEP + 1 for number, rows in enumerate(events, 1) if not rows)
    end = (len(events) + 1) * STEP
    bounds = sorted({STEP, end, *(draw(st.lists(st.sampled_from(range(STEP, end + 1, STEP)), max_size=6)))})
    windows = tuple(
        (low, high, tuple(row for rows in events for row in rows if low <= row.offset < high))
        for low, high in pairwise(bounds)
    )
    chunks = _chunks(draw, states) if with_snapshot else ()
    if not partial:
        return History(windows, chunks, _steps(draw, len(windows), len(chunks)), states[-1], truncates)
    early = sum(high <= chunks[0].low for _, high, _ in windows) if chunks else 0
    steps = _partial_steps(draw, len(windows), len(chunks), early)
    return History(windows, chunks, steps, states[-1], doubtful=_doubtful(events, chunks))


def _events(
    draw: st.DrawFn, start: dict[int, Any], most: int, operation: Callable[..., list[Row]], *, statements: bool
) -> tuple[list[list[Row]], list[State]]:
    """Return the rows of each event, none for a TRUNCATE, and the state before each of them and after the last."""
    events: list[list[Row]] = []
    states: list[State] = [dict(start)]
    for number in range(1, draw(st.integers(1, most)) + 1):
        if statements and draw(st.integers(0, 7)) == 0:
            events.append([])
            states.append({})
            continue
        state, rows, offset = dict(states[-1]), [], number * STEP
        for row in range(draw(st.integers(1, 3))):
            rows += operation(draw, state, offset, row, number * 100 + row)
        events.append(rows)
        states.append(state)
    return events, states


def _operation(draw: st.DrawFn, state: dict[int, int], offset: int, row: int, value: int) -> list[Row]:
    key = draw(st.integers(0, KEYS - 1))
    if key not in state:
        state[key] = value
        return [Row("c", offset, {"id": key, "v": value}, row)]
    kind = draw(st.sampled_from(["update", "delete", "move"]))
    if kind == "delete":
        return [Row("d", offset, {"id": key, "v": state.pop(key)}, row)]
    free = [other for other in range(KEYS) if other not in state]
    if kind == "move" and free:
        old, to = state.pop(key), draw(st.sampled_from(free))
        state[to] = value
        return [Row("d", offset, {"id": key, "v": old}, row), Row("u", offset, {"id": to, "v": value}, row)]
    state[key] = value
    return [Row("u", offset, {"id": key, "v": value}, row)]


def _partial_operation(
    draw: st.DrawFn, state: dict[int, tuple[int, int]], offset: int, row: int, value: int
) -> list[Row]:
    """The same operations, in the order keys that a drain gives: the images of an event are counted one by one."""
    key, first, second = draw(st.integers(0, KEYS - 1)), 2 * row, 2 * row + 1
    if key not in state:
        state[key] = (value, -value)
        return [Row("c", offset, {"id": key, "v": value, "w": -value}, first)]
    touched = draw(st.sampled_from([frozenset(), frozenset("v"), frozenset("w"), frozenset("vw")]))
    kind = draw(st.sampled_from(["update", "update", "delete", "move"]))
    deleted = Row("d", offset, {"id": key}, first, absent=frozenset("vw"))
    if kind == "delete":
        del state[key]
        return [deleted]
    free = [other for other in range(KEYS) if other not in state]
    moves = kind == "move" and bool(free)
    to = draw(st.sampled_from(free)) if moves else key
    v, w = state.pop(key)
    state[to] = (value if "v" in touched else v, -value if "w" in touched else w)
    values = {name: number for name, number in zip("vw", state[to], strict=True) if name in touched}
    update = Row("u", offset, {"id": to, **values}, second, absent=frozenset("vw") - touched)
    return [deleted, update] if moves else [update]


def _chunks(draw: st.DrawFn, states: list[State]) -> tuple[Chunk, ...]:
    chunks, low = [], 1
    for number, keys in enumerate((range(SPLIT), range(SPLIT, KEYS))):
        low = draw(st.integers(low, len(states)))
        read = draw(st.integers(low, len(states)))
        rows = {key: value for key, value in states[read - 1].items() if key in keys}
        chunks.append(Chunk(number, low * STEP, read * STEP, rows))
    return tuple(chunks)


def _doubtful(events: list[list[Row]], chunks: tuple[Chunk, ...]) -> bool:
    moved = (
        after.offset
        for rows in events
        for before, after in pairwise(rows)
        if (before.op, after.op) == ("d", "u") and before.row + 1 == after.row and after.absent
    )
    return any(chunks[0].low <= offset < max(chunk.high for chunk in chunks) for offset in moved) if chunks else False


def _partial_steps(draw: st.DrawFn, windows: int, chunks: int, early: int) -> tuple[Step, ...]:
    """Some of the early windows, then all chunks, then the other windows; the last chunk and the next window may share a step."""
    before = draw(st.integers(0, early))
    steps = [Step((), part) for part in _parts(draw, range(before))]
    steps += [Step(part, ()) for part in _parts(draw, range(chunks))]
    later = [Step((), part) for part in _parts(draw, range(before, windows))]
    if chunks and later and draw(st.booleans()):
        steps[-1] = Step(steps[-1].chunks, later.pop(0).windows)
    with_repeats: list[Step] = []
    for step in (*steps, *later):
        with_repeats.append(step)
        if draw(st.integers(0, 4)) == 0:
            with_repeats.append(Step((), (), again=draw(st.integers(0, len(with_repeats) - 1))))
    return tuple(with_repeats)


def _parts(draw: st.DrawFn, numbers: range) -> list[tuple[int, ...]]:
    cuts = sorted(draw(st.sets(st.sampled_from(numbers[1:])))) if len(numbers) > 1 else []
    return [tuple(range(low, high)) for low, high in pairwise([*numbers[:1], *cuts, numbers.stop]) if low < high]


def _steps(draw: st.DrawFn, windows: int, chunks: int) -> tuple[Step, ...]:
    steps: list[Step] = []
    window = chunk = 0
    while window < windows or chunk < chunks:
        if steps and draw(st.integers(0, 4)) == 0:
            steps.append(Step((), (), again=draw(st.integers(0, len(steps) - 1))))
            continue
        to_window = draw(st.integers(window, windows))
        to_chunk = draw(st.integers(chunk, chunks))
        if (to_window, to_chunk) == (window, chunk):
            to_window, to_chunk = windows, chunks
        steps.append(Step(tuple(range(chunk, to_chunk)), tuple(range(window, to_window))))
        window, chunk = to_window, to_chunk
    return tuple(steps)
