"""Batches of a time in which a table had another primary key than its lake table: which of them count, pure.

A whole snapshot replaced the table's rows, and gave the lake table its key. Changes that lie before its low watermark are in its
rows. So windows that end there or earlier bring nothing, and those of another key are left out.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from cdc_lib.errors import IncompatibleSchema
from cdc_lib.lake.evolution import can_be_rekeyed
from cdc_lib.merge.plan import Batch
from cdc_lib.model.backfill import COPY_SUFFIX, BackfillRequest, LeftOutWindows
from cdc_lib.model.lake_table import LakeTable
from cdc_lib.model.position import Point
from cdc_lib.model.table_name import TableName

Key = tuple[str, ...]
"""Columns of a primary key in lower case; empty where a table has none."""

Keys = Callable[[Batch], frozenset[Key]]
"""Returns the keys that the rows of a batch have, under the names that their columns have in the lake."""


@dataclass(frozen=True, slots=True)
class OneKey:
    """The batches of a table, by whether their rows can go into one lake table.

    Args:
        key: of the lake table; None where nothing tells it.
        batches: those that count.
        windows: those that are left out, because a snapshot replaced what they tell.
        former: the keys of their rows.
        others: the keys of rows that count and are not the lake table's.
    """

    key: Key | None
    batches: tuple[Batch, ...]
    windows: tuple[Batch, ...] = ()
    former: frozenset[Key] = frozenset()
    others: frozenset[Key] = frozenset()


def under_one_key(
    batches: Sequence[Batch],
    keys_of: Keys,
    *,
    key: Key | None,
    low: Point | None,
    chunks: Collection[str],
    windows: Collection[str],
) -> OneKey:
    """Decide which batches of a table count.

    Args:
        batches: all that are at hand: whole snapshots, then windows in the stream's order.
        keys_of: returns the keys of a batch's rows.
        key: of the lake table; None where there is none.
        low: low watermark of the newest whole snapshot that the lake table has or is given; None without one.
        chunks: keys of the batches of the snapshot that it is given.
        windows: keys of the batches of the windows whose changes it gets.
    """
    keys = {batch.key: keys_of(batch) for batch in batches}
    read = [one for batch in batches if batch.key in chunks for one in keys[batch.key]]
    taken = [one for batch in batches if batch.key in windows for one in sorted(keys[batch.key])]
    wanted = next(iter([*read[-1:], *([key] if key is not None else []), *taken[-1:]]), None)
    counted, left_out = [], []
    former: set[Key] = set()
    others: set[Key] = set()
    for batch in batches:
        other = keys[batch.key] - {wanted}
        if not other or batch.key in chunks:
            counted.append(batch)
        elif batch.key in windows and low is not None and _end(batch) <= low:
            left_out.append(batch)
            former |= other
        elif batch.key in windows:
            counted.append(batch)
            others |= other
    return OneKey(wanted, tuple(counted), tuple(left_out), frozenset(former), frozenset(others))


def _end(batch: Batch) -> Point:
    window = batch.manifest.window
    if window is None:
        raise AssertionError(batch.key)
    return Point.at(window.epoch, window.stop)


def command_from(source: str, request: BackfillRequest, table: TableName, since: datetime) -> str:
    """Return the command that asks for one table of a request from a time on."""
    until = request.period.until
    words = [f"cdc backfill {source} {table.in_shell} --since {_text(since)}"]
    words += [f"--until {_text(until)}"] if until is not None and until > since else []
    words += ["--into copy"] if request.into == "copy" else []
    words += [f"--copy-suffix {request.suffix}"] if request.into == "copy" and request.suffix != COPY_SUFFIX else []
    words += [f"--batches {request.batches}"] if request.batches else []
    return " ".join(words)


def left_out_windows(table: TableName, found: OneKey) -> LeftOutWindows:
    """Return which windows of a table are left out, for people and programs."""
    return LeftOutWindows(table, len(found.windows), tuple(sorted(found.former)), found.key or ())


def left_out_line(left_out: LeftOutWindows) -> str:
    """Say which windows are left out, and why."""
    windows = "1 window" if left_out.windows == 1 else f"{left_out.windows} windows"
    return (
        f"{left_out.table}: {windows} of rows with {_all(left_out.keys)} left out: the lake table keeps rows by "
        f"{_shown(left_out.lake_key)}, and a later snapshot replaced all of them"
    )


def refusal(
    table: TableName, found: OneKey, source: str, request: BackfillRequest, snapshot: datetime | None
) -> IncompatibleSchema:
    """Return the error that refuses rows of another key.

    Args:
        table: ``database.table``.
        found: how its batches were sorted; some have other keys.
        source: name of the source.
        request: what was asked for.
        snapshot: when the snapshot was begun from which on all rows have one key; None where none is stored.
    """
    what = "a table beside the lake table" if request.into == "copy" else "the lake table"
    if snapshot is not None:
        hint = f"A snapshot replaced the rows of the former key. Begin with it: {command_from(source, request, table, snapshot)}"
    else:
        hint = (
            "No stored snapshot replaced the rows of the former key. Take one, and ask for the time from it on: "
            f"cdc snapshot {source} {table.in_shell}"
        )
    return IncompatibleSchema(
        f"{request.period} has rows with {_all(found.others)}, and {what} keeps rows by {_shown(found.key)}",
        hint=hint,
        table=table,
    )


def refuse_kept_key(table: TableName, state: LakeTable, key: Key | None) -> None:
    """Refuse to continue with a table beside whose rows cannot be kept by another key.

    Args:
        table: ``database.table``.
        state: the table beside.
        key: of the rows that it is given; None for none.

    Raises:
        IncompatibleSchema: it has another one.
    """
    former = tuple(name.lower() for name in state.primary_key)
    if key is None or key == former or can_be_rekeyed(state, key):
        return
    raise IncompatibleSchema(
        f"the table beside the lake table keeps rows by {_shown(former)}, and the rows of this time have {_shown(key)}",
        hint="Drop {lake_table}, or take another --copy-suffix.",
        table=table,
    )


def _all(keys: Collection[Key]) -> str:
    return " and ".join(map(_shown, sorted(keys)))


def _shown(key: Key | None) -> str:
    return f"the primary key ({', '.join(key)})" if key else "no primary key"


def _text(time: datetime) -> str:
    return time.astimezone(UTC).isoformat().replace("+00:00", "Z")
