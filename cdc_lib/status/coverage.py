"""What rolling comparisons say of a source: pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from cdc_lib.config.verify import VerifyConfig
from cdc_lib.model.coverage import Coverage, CoveredRange, FoundWrong
from cdc_lib.model.finding import Finding
from cdc_lib.model.merge_plan import Cut
from cdc_lib.model.pace import counted
from cdc_lib.model.position import Position
from cdc_lib.model.verify import Verified

YOUNG = timedelta(hours=2)
"""Age of a source up to which it is no finding that none of its ranges was compared."""

_TIME = "%Y-%m-%d %H:%M:%S"


@dataclass(frozen=True, slots=True)
class CoverageSummary:
    """How much of the tables of a source was compared by ranges.

    Args:
        tables: number of tables that are compared by ranges.
        ratio: part of all rows that was compared within the period, 0 to 1.
        since: when the coverage of the youngest table began.
        oldest: the table with the range that waits longest; None if no range was compared yet.
        oldest_range: that range; None if some range was never compared.
    """

    tables: int
    ratio: float
    since: datetime
    oldest: Coverage
    oldest_range: CoveredRange | None


@dataclass(frozen=True, slots=True)
class CoveredRows:
    """What comparisons of key ranges say of a table.

    Args:
        ratio: part of the rows that was compared within ``verify.cover_every``, 0 to 1.
        oldest_at: when the range that waits longest was compared; when coverage began if some range was never compared.
        position: of the cut that it was compared with; None if some range was never compared.
        epoch: of the position.
        overdue: whether that is longer ago than ``verify.cover_every``.
        wrong: rows that were found wrong and are not equal yet.
        skipped: why the table is not compared by ranges; empty if it is.
    """

    ratio: float
    oldest_at: datetime | None
    position: Position | None
    epoch: int
    overdue: bool
    wrong: int
    skipped: str


def current(coverages: Iterable[Coverage], settings: VerifyConfig, cut: Cut | None) -> list[Coverage]:
    """Return the coverage of tables that are compared now: a dropped one stays as it was.

    Args:
        coverages: of all tables that ever were compared by ranges.
        settings: ``verify`` of the source file.
        cut: the last one.
    """
    there = {(one.table, one.lake_table) for one in cut.tables if one.dropped is None} if cut is not None else set()
    return [one for one in coverages if (one.table, one.lake_table) in there and settings.names(*one.table.pair)]


def summary_of(coverages: Sequence[Coverage], period: timedelta, now: datetime) -> CoverageSummary | None:
    """Return how much was compared; None if no table is compared by ranges.

    Args:
        coverages: of the tables.
        period: ``verify.cover_every``.
        now: the time (UTC).
    """
    there = [one for one in coverages if not one.skipped and one.ranges]
    if not there:
        return None
    oldest = min(there, key=lambda one: one.oldest_at or now)
    rows = sum(max(1, one.rows) for one in there)
    ratio = sum(one.ratio(now, period) * max(1, one.rows) for one in there) / rows
    return CoverageSummary(len(there), ratio, max(one.since for one in there), oldest, oldest.oldest)


def unresolved(one: Coverage, verified: Verified | None) -> tuple[FoundWrong, ...]:
    """Return the wrong rows of a table that no later comparison of the whole table has found equal.

    Args:
        one: the table.
        verified: the last comparison of the whole table; None before the first.
    """
    clean_at = verified.clean_at if verified is not None else None
    return tuple(row for row in one.wrong if clean_at is None or row.row.at > clean_at)


def covered_rows(
    one: Coverage | None, verified: Verified | None, period: timedelta | None, now: datetime
) -> CoveredRows | None:
    """Return what comparisons of key ranges say of a table; None if there are none, or the source file has none.

    Args:
        one: the coverage of the table.
        verified: the last comparison of the whole table.
        period: ``verify.cover_every``.
        now: the time (UTC).
    """
    if one is None or period is None:
        return None
    oldest = one.oldest
    return CoveredRows(
        ratio=one.ratio(now, period),
        oldest_at=one.oldest_at,
        position=oldest.position if oldest is not None else None,
        epoch=oldest.epoch if oldest is not None else 0,
        overdue=one.overdue(now, period),
        wrong=len(unresolved(one, verified)),
        skipped=one.skipped,
    )


def coverage_findings(
    source: str,
    settings: VerifyConfig,
    coverages: Sequence[Coverage],
    verified: Iterable[Verified],
    cut: Cut | None,
    now: datetime,
    since: datetime | None = None,
) -> Iterator[Finding]:
    """Yield a finding for each table with wrong rows, and one if ranges wait longer than ``verify.cover_every``.

    Nothing is said of a source in its first two hours of which no range was compared: the DAG that does it comes once an hour.

    Args:
        source: its name.
        settings: ``verify`` of the source file.
        coverages: of the tables.
        verified: the last comparison of each whole table.
        cut: the last one.
        now: the time (UTC).
        since: when the lake cursor began (UTC); None if that is long ago or unknown.
    """
    coverages = current(coverages, settings, cut)
    whole = {(one.table, one.lake_table): one for one in verified}
    for one in coverages:
        if rows := unresolved(one, whole.get((one.table, one.lake_table))):
            last = rows[-1].row
            yield Finding(
                "error",
                f"{one.table} has wrong rows ({len(rows)}): {last.text}, found at {last.position}, "
                f"{last.at:{_TIME}} UTC",
                f"cdc verify {source} {one.table.in_shell} --repair",
            )
    if (period := settings.cover_every) is None or cut is None:
        return
    run = f"Let the DAG cdc_{source}.cover run, or `cdc verify ranges {source}` on a schedule; its log says what it could not compare."
    known = {(one.table, one.lake_table) for one in coverages}
    new = [one for one in cut.tables if one.dropped is None and settings.names(*one.table.pair)]
    is_young = since is not None and now - since < YOUNG
    if new and not is_young and not any((one.table, one.lake_table) in known for one in new):
        yield Finding("warning", "no key range was compared with the source yet (verify.cover_every)", run)
    if late := [one for one in coverages if one.overdue(now, period)]:
        first = min(late, key=lambda one: one.oldest_at or now)
        yield Finding(
            "warning",
            f"key ranges of {counted(len(late), 'table')} were not compared within verify.cover_every: {first.table} waits since "
            f"{first.oldest_at:{_TIME}} UTC",
            run,
        )
