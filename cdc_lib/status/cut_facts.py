"""What is shown of a cut after it is no longer the last one: small, so that a day of cuts of many tables can be kept."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from datetime import datetime

from cdc_lib.model.merge_plan import Cut
from cdc_lib.model.position import Position
from cdc_lib.model.table_name import TableName


@dataclass(frozen=True, slots=True)
class CutFacts:
    """A cut without its snapshots.

    Args:
        merge_id: the plan that it completes.
        epoch: of the position.
        position: as of which all tables are.
        event_time: commit time of the last change before the position; None when nothing was ever merged.
        at: when it was published (UTC).
        tables: how many lake tables it names.
        changes: changes that its merge applied.
        changed: the tables that they belong to.
        rows: rows of all tables that all merges so far read from batches; it grows from cut to cut, also over those that were removed.
        reselected: lake tables with rows that were re-selected from the source after the cut's position.
        quarantined: tables that are as of an earlier position.
    """

    merge_id: str
    epoch: int
    position: Position
    event_time: datetime | None
    at: datetime
    tables: int
    changes: int
    changed: tuple[TableName, ...]
    rows: int
    reselected: int
    quarantined: int

    @property
    def lag_seconds(self) -> float | None:
        """Age of its last change when it was published; None when it has none."""
        return None if self.event_time is None else max(0.0, (self.at - self.event_time).total_seconds())


def facts_of_cut(cut: Cut) -> CutFacts:
    """Return what is shown of a cut."""
    return CutFacts(
        merge_id=cut.merge_id,
        epoch=cut.epoch,
        position=cut.position,
        event_time=cut.event_time,
        at=cut.at,
        tables=len(cut.tables),
        changes=sum(one.changes for one in cut.tables),
        changed=tuple(one.table for one in cut.tables if one.changes),
        rows=sum(one.total_rows.total for one in cut.tables),
        reselected=sum(one.ahead_until is not None for one in cut.tables),
        quarantined=sum(one.as_of is not None for one in cut.tables),
    )


def spread(count: int, limit: int) -> list[int]:
    """Return the indexes of at most ``limit`` of ``count`` things, evenly spread, the first and the last among them."""
    if count <= limit:
        return list(range(count))
    if limit < 2:
        return [count - 1][:limit]
    return sorted({round(index * (count - 1) / (limit - 1)) for index in range(limit)})


def rows_between(before: CutFacts, cut: CutFacts) -> int:
    """Return how many rows the merges after one cut brought, up to another; 0 where tables with more rows left the lake."""
    return max(0, cut.rows - before.rows)


def rows_by_table(before: Cut, cut: Cut) -> dict[TableName, int]:
    """Return how many rows of each table the merges after one cut brought, up to another, most first."""
    brought = _total_rows(cut)
    brought.subtract(_total_rows(before))
    return dict(
        sorted(((table, rows) for table, rows in brought.items() if rows > 0), key=lambda one: (-one[1], one[0]))
    )


def _total_rows(cut: Cut) -> Counter[TableName]:
    """Return the rows of each table over its lake tables."""
    rows: Counter[TableName] = Counter()
    for one in cut.tables:
        rows[one.table] += one.total_rows.total
    return rows
