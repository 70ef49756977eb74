"""Batches of a period in which a table had another primary key than its lake table: which of them are merged; pure.

A complete snapshot replaced the table's rows, and gave the lake table its key. Its rows include all changes before its low
watermark. So windows up to the watermark are not needed, and those with another key are left out.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from cdc_lib.errors import IncompatibleSchema
from cdc_lib.lake.evolution import can_be_rekeyed
from cdc_lib.merge.chunks import end_of
from cdc_lib.merge.plan import StoredBatch
from cdc_lib.model.backfill import COPY_SUFFIX, BackfillRequest, LeftOutWindows
from cdc_lib.model.lake_table import LakeTable
from cdc_lib.model.pace import counted
from cdc_lib.model.position import Point
from cdc_lib.model.table_name import TableName

Key = tuple[str, ...]
"""Columns of a primary key in lower case; empty for a table without one."""

Keys = Callable[[StoredBatch], frozenset[Key]]
"""Returns the primary keys of the rows of a batch, under the lake's column names."""


@dataclass(frozen=True, slots=True)
class OneKey:
    """The batches of a table, sorted by whether their rows have the lake table's key.

    Args:
        key: of the lake table; None if it is unknown.
        batches: batches to merge.
        windows: windows that are left out, because a later snapshot replaced their rows.
        former: keys of the rows in ``windows``.
        others: keys of rows in ``batches`` that differ from ``key``.
    """

    key: Key | None
    batches: tuple[StoredBatch, ...]
    windows: tuple[StoredBatch, ...] = ()
    former: frozenset[Key] = frozenset()
    others: frozenset[Key] = frozenset()


def under_one_key(
    batches: Sequence[StoredBatch],
    keys_of: Keys,
    *,
    key: Key | None,
    low: Point | None,
    chunks: Collection[str],
    windows: Collection[str],
) -> OneKey:
    """Decide which batches of a table are merged.

    Args:
        batches: all loaded batches: complete snapshots, then windows in the stream's order.
        keys_of: returns the keys of a batch's rows.
        key: of the lake table; None without a lake table.
        low: low watermark of the newest complete snapshot that the lake table has or gets; None without one.
        chunks: keys of the batches of the snapshot that it gets.
        windows: keys of the batches of the windows that it gets.
    """
    keys = {batch.key: keys_of(batch) for batch in batches}
    read = [one for batch in batches if batch.key in chunks for one in keys[batch.key]]
    taken = [one for batch in batches if batch.key in windows for one in sorted(keys[batch.key])]
    target = next(iter([*read[-1:], *([key] if key is not None else []), *taken[-1:]]), None)
    counted, left_out = [], []
    former: set[Key] = set()
    others: set[Key] = set()
    for batch in batches:
        other = keys[batch.key] - {target}
        if not other or batch.key in chunks:
            counted.append(batch)
        elif batch.key in windows and low is not None and end_of(batch.manifest) <= low:
            left_out.append(batch)
            former |= other
        elif batch.key in windows:
            counted.append(batch)
            others |= other
    return OneKey(target, tuple(counted), tuple(left_out), frozenset(former), frozenset(others))


def command_from(source: str, request: BackfillRequest, table: TableName, since: datetime) -> str:
    """Return the command that backfills one table of a request from a time on."""
    until = request.period.until
    words = [f"cdc backfill {source} {table.in_shell} --since {_text(since)}"]
    words += [f"--until {_text(until)}"] if until is not None and until > since else []
    words += ["--into copy"] if request.into == "copy" else []
    words += [f"--copy-suffix {request.suffix}"] if request.into == "copy" and request.suffix != COPY_SUFFIX else []
    words += [f"--batches {request.batches}"] if request.batches else []
    return " ".join(words)


def left_out_windows(table: TableName, found: OneKey) -> LeftOutWindows:
    """Return which windows of a table are left out."""
    return LeftOutWindows(table, len(found.windows), tuple(sorted(found.former)), found.key or ())


def left_out_line(left_out: LeftOutWindows) -> str:
    """Return a line that says which windows are left out, and why."""
    return (
        f"{left_out.table}: {counted(left_out.windows, 'window')} of rows with {_all(left_out.keys)} left out: the lake table keeps rows by "
        f"{_shown(left_out.lake_key)}, and a later snapshot replaced all of them"
    )


def dropped_line(table: TableName, found: OneKey) -> str:
    """Return a line that says why a lake table stays as it is whose source table was dropped: no snapshot can replace its rows."""
    return (
        f"{table}: left as it is, because the source dropped the table: this time has rows with {_all(found.others)}, and the "
        f"lake table keeps rows by {_shown(found.key)}"
    )


def refusal(
    table: TableName, found: OneKey, source: str, request: BackfillRequest, snapshot: datetime | None
) -> IncompatibleSchema:
    """Return the error that refuses rows of another key.

    Args:
        table: ``database.table``.
        found: its sorted batches; some have other keys.
        source: name of the source.
        request: the request.
        snapshot: start time of the snapshot after which all rows have one key; None if it is not stored.
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
    """Refuse to continue a copy whose rows cannot be kept under another key.

    Args:
        table: ``database.table``.
        state: the copy.
        key: of its new rows; None without rows.

    Raises:
        IncompatibleSchema: the copy has another key.
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
