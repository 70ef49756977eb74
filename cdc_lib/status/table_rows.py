"""The tables of a source as a list that can be searched, sorted and paged."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Literal

from cdc_lib.merge.answers import OpenQuestion
from cdc_lib.model.changed_rows import ChangedRows
from cdc_lib.model.merge_plan import TableCut
from cdc_lib.model.position import Position
from cdc_lib.model.table_mode import Mode
from cdc_lib.model.table_name import TableName
from cdc_lib.model.verify import Verified
from cdc_lib.model.waiting import unmerged
from cdc_lib.status.coverage import CoveredRows
from cdc_lib.status.holdings import Holdings

TableState = Literal["merged", "snapshot", "quarantined", "resumed", "stopped", "dropped"]
"""As of the cut; being read by SELECT; left out; waiting for its new snapshot; its last merge stopped; dropped at the source."""

Order = Literal["table", "rows", "last_change", "verified"]
"""What the list is sorted by."""


@dataclass(frozen=True, slots=True)
class TableRow:
    """One source table in one lake table.

    Args:
        table: ``database.table`` at the source.
        lake_table: full name in the catalog; empty before the first merge of the table.
        state: see :data:`TableState`.
        mode: how the lake table keeps rows; None where nobody looked.
        rows: of the lake table in the last cut; None where it does not say.
        changes: that the last merge applied.
        last_change: up to which commit time the last cut with changes of the table goes; None where the last cuts have none.
        as_of: the table is as of this position, not the cut's; None when it is as of the cut.
        verified: the last comparison; None before the first.
        changed: the last comparison of rows that a merge changed; None before the first.
        changed_wrong: number of such rows that are known to be wrong since the last comparison without drift.
        covered: what comparisons of key ranges found; None where there are none.
        note: why it is quarantined or stopped, and what to do; empty otherwise.
        question: the schema change at which it waits for an answer, or for the merge that applies it; None otherwise.
    """

    table: TableName
    lake_table: str
    state: TableState
    mode: Mode | None = None
    rows: int | None = None
    changes: int = 0
    last_change: datetime | None = None
    as_of: Position | None = None
    verified: Verified | None = None
    changed: ChangedRows | None = None
    changed_wrong: int = 0
    covered: CoveredRows | None = None
    note: str = ""
    question: OpenQuestion | None = None

    @property
    def verdict(self) -> Literal["equal", "drift", "part", "never"]:
        """What the last comparison of the whole table found; ``part`` if only some of its rows were compared."""
        if self.verified is None:
            in_merges = self.changed is not None and self.changed.compared > 0
            return "part" if in_merges or (self.covered is not None and self.covered.ratio > 0) else "never"
        return "equal" if self.verified.clean else "drift"


def table_rows(held: Holdings) -> list[TableRow]:
    """Return the tables that a source has in the lake or is to have there, by name."""
    cuts = held.cut.tables if held.cut is not None else ()
    notes, changed, compared, covered = _notes(held), _last_changes(held), held.compared, held.covered
    rows = [_row(one, notes, changed, compared.get((one.table, one.lake_table))) for one in cuts]
    there = {one.table for one in cuts}
    rows += [TableRow(name, "", state, note=note) for name, (state, note) in notes.items() if name not in there]
    if held.after_merge is not None:
        merged = held.after_merge.by_table
        rows = [_with_changed(row, merged.get((row.table, row.lake_table))) for row in rows]
    rows = [replace(row, covered=covered.get((row.table, row.lake_table))) for row in rows]
    asked = {one.question.table: one for one in held.questions}
    rows = [replace(row, question=asked.get(row.table)) if row.table in asked else row for row in rows]
    return sorted(rows, key=lambda row: (row.table, row.lake_table))


def _row(
    cut: TableCut,
    notes: dict[TableName, tuple[TableState, str]],
    changed: dict[TableName, datetime | None],
    verified: Verified | None,
) -> TableRow:
    plain: tuple[TableState, str] = ("dropped" if cut.dropped is not None else "merged", "")
    state, note = notes.get(cut.table, plain)
    return TableRow(
        cut.table, cut.lake_table, state, cut.mode,
        rows=cut.lake_rows,
        changes=cut.changes,
        last_change=changed.get(cut.table),
        as_of=cut.as_of,
        verified=verified,
        note=note,
    )  # fmt: skip


def _with_changed(row: TableRow, one: ChangedRows | None) -> TableRow:
    return row if one is None else replace(row, changed=one, changed_wrong=len(one.unresolved(row.verified)))


def _notes(held: Holdings) -> dict[TableName, tuple[TableState, str]]:
    """Return the tables that are not simply merged; what is worse counts."""
    found: dict[TableName, tuple[TableState, str]] = {}
    if held.drain is None:
        return found
    for task in unmerged(held.drain, held.lake) if held.lake is not None else held.drain.open_snapshots:
        found[task.name] = ("snapshot", task.progress if task.chunks else "to be read")
    for lagging in held.drain.lagging_in(held.lake):
        record, fault = lagging.last, lagging.last.fault
        if fault is not None:
            state: TableState = "quarantined" if record.is_open else "resumed"
            found[lagging.table] = (state, f"{fault.code}: {fault.reason}. {fault.hint}".strip())
    answered = {one.question: one.outlook for one in held.questions if one.answer is not None}
    for stopped in held.stopped.tables if held.stopped is not None else ():
        for table in stopped.tables:
            hint = answered.get(stopped.question, stopped.hint) if stopped.question is not None else stopped.hint
            found[table] = ("stopped", f"{stopped.code}: {stopped.what}. {hint}".strip())
    return found


def _last_changes(held: Holdings) -> dict[TableName, datetime | None]:
    return {table: cut.event_time for cut in held.recent for table in cut.changed}


def select(
    rows: Sequence[TableRow], *, text: str = "", state: str = "", order: Order = "table", descending: bool = False
) -> list[TableRow]:
    """Return the rows that a reader asked for; what is not known sorts last.

    Args:
        rows: all of them.
        text: a part of the table's or the lake table's name, in any case.
        state: a :data:`TableState`, or ``equal``, ``drift``, ``part`` or ``never`` for the last comparison; empty for all.
        order: what to sort by; rows that are equal in it are sorted by name.
        descending: whether the greatest comes first.
    """
    wanted = text.casefold()
    found = [
        row
        for row in rows
        if (wanted in row.table.casefold() or wanted in row.lake_table.casefold())
        and state in ("", row.state, row.verdict)
    ]
    key = _KEYS[order]
    known = [row for row in found if key(row) is not None]
    return [*sorted(known, key=key, reverse=descending), *(row for row in found if key(row) is None)]


_KEYS: dict[str, Callable[[TableRow], Any]] = {
    "table": lambda row: row.table,
    "rows": lambda row: row.rows,
    "last_change": lambda row: row.last_change,
    "verified": lambda row: row.verified.at if row.verified is not None else None,
}


def counts_of(rows: Iterable[TableRow]) -> dict[str, int]:
    """Return how many rows have each state, and how many of them drift or were never compared."""
    found: dict[str, int] = {}
    for row in rows:
        for name in (row.state, row.verdict):
            found[name] = found.get(name, 0) + 1
    return dict(sorted(found.items()))
