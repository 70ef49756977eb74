"""How much of a lake table was compared with its source by key ranges; without OpenLineage's classes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from cdc_lib.model.coverage import Coverage
from cdc_lib.model.table_name import TableName


@dataclass(frozen=True, slots=True)
class CoveredTo:
    """What comparisons of key ranges say of a lake table: the weakest of its source tables counts.

    Args:
        ratio: part of the rows that was compared within ``verify.cover_every``, 0 to 1.
        oldest_at: when the range that waits longest was compared.
        oldest_position: of the lake then, as ``epoch/file:offset``.
        wrong_rows: rows that were found wrong and are not equal yet.
    """

    ratio: float
    oldest_at: datetime
    oldest_position: str
    wrong_rows: int


def covered_to(
    lake_table: str,
    sources: Sequence[TableName],
    coverages: Iterable[Coverage],
    period: timedelta | None,
    now: datetime,
) -> CoveredTo | None:
    """Return what is known of a lake table; None without ``verify.cover_every``, or while some range was never compared.

    Args:
        lake_table: its full name.
        sources: the source tables that it has rows of.
        coverages: of the tables of the source.
        period: ``verify.cover_every``.
        now: the time (UTC).
    """
    known = {one.table: one for one in coverages if one.lake_table == lake_table}
    found = [(one, one.oldest) for table in sources if (one := known.get(table)) is not None and not one.skipped]
    if period is None or not found or len(found) < len(sources):
        return None
    oldest = [(one.at, one) for _, one in found if one is not None and one.at is not None]
    if len(oldest) < len(found):
        return None
    at, least = min(oldest, key=lambda pair: pair[0])
    return CoveredTo(
        ratio=min(one.ratio(now, period) for one, _ in found),
        oldest_at=at,
        oldest_position=f"{least.epoch}/{least.position}",
        wrong_rows=sum(len(one.wrong) for one, _ in found),
    )
