"""The figures of a source for monitoring: from the store, and from what is known of its server."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta

from cdc_lib.config.schedule import longest_gap
from cdc_lib.model.coverage import Coverage
from cdc_lib.model.cursor import DRAIN, LAKE, Cursor
from cdc_lib.model.figures import LakeTableFigures, SourceFigures, TableFigures
from cdc_lib.model.merge_plan import Cut
from cdc_lib.model.observation import ServerObservation
from cdc_lib.model.position import Point
from cdc_lib.model.quarantine import LaggingTable
from cdc_lib.model.stored_window import StoredWindow
from cdc_lib.model.verify import Verified
from cdc_lib.model.waiting import unmerged
from cdc_lib.plan.windows import bytes_left
from cdc_lib.source import Source
from cdc_lib.status.backlog import backlog_of
from cdc_lib.status.coverage import unresolved
from cdc_lib.status.overview import in_this_epoch, lag_seconds, observed
from cdc_lib.store.coverage import coverages
from cdc_lib.store.cuts import last_cut
from cdc_lib.store.failed_tables import last_stopped
from cdc_lib.store.observations import last_drain, last_server, task_retries
from cdc_lib.store.verified import last_verified
from cdc_lib.store.windows import stored_windows


def figures_of(source: Source, *, ask: bool = False) -> SourceFigures:
    """Return the figures of a source.

    Args:
        source: the source.
        ask: whether the server is asked. If it is not, or cannot be reached, what the last plan saw counts, and whether the lake has
            everything by now is not known.
    """
    config, store, name, now = source.config, source.store, source.name, datetime.now(UTC)
    live = observed(source) if ask else None
    drain, lake, cut = source.cursor(DRAIN), source.cursor(LAKE), last_cut(store, name)
    seen = live or last_server(store, name)
    drained, stopped = last_drain(store, name), last_stopped(store, name)
    verified, retries = last_verified(store, name), task_retries(store, name)
    covered = coverages(store, name) if config.verify.cover_every is not None else []
    interval = longest_gap(config.verify.schedule) if config.verify.schedule is not None else None
    lag = lag_seconds(store, drain, lake, live, published=cut is not None)
    lagging = drain.lagging_in(lake) if drain is not None else ()
    backlog = backlog_of(drain, seen)
    return SourceFigures(
        source=name,
        lag_seconds=lag,
        lag_bytes=lag_bytes(drain, lake, seen),
        catch_up_seconds=backlog.seconds if backlog is not None else None,
        epoch=drain.epoch if drain is not None else None,
        windows_in_flight=len(drain.in_flight) if drain is not None else None,
        windows_pending=_pending(stored_windows(store, name), drain, lake),
        snapshots_pending=len(unmerged(drain, lake)) if drain is not None and lake is not None else None,
        retention_left_seconds=seen.retention_left_seconds(now) if seen is not None else None,
        server_seen_seconds=_age(seen.at, now) if seen is not None else None,
        quarantined=len(drain.quarantined_tables) if drain is not None else None,
        stopped=(len(stopped.tables) if stopped is not None else 0) if cut is not None or stopped is not None else None,
        cut_age_seconds=_age(cut.at, now) if cut is not None else None,
        merge_seconds=cut.seconds if cut is not None else None,
        merged=cut.totals if cut is not None else None,
        drain_seconds=drained.seconds if drained is not None else None,
        verify_interval_seconds=interval.total_seconds() if interval is not None else None,
        retries=tuple(sorted(retries.by_task.items())) if retries is not None else (),
        tables=_tables(cut, drain, lagging, lag, now),
        lake_tables=_lake_tables(cut, verified, covered, config.verify.cover_every, now),
        cover_period_seconds=config.verify.cover_every.total_seconds()
        if config.verify.cover_every is not None
        else None,
    )


def _age(at: datetime | None, now: datetime) -> float | None:
    """Return the seconds since a time; 0 where it has not come."""
    return None if at is None else max(0.0, (now - at).total_seconds())


def lag_bytes(drain: Cursor | None, lake: Cursor | None, seen: ServerObservation | None) -> int | None:
    """Return the binlog of this epoch that the lake lacks; None where the lake has more than was seen of it, or its file was purged."""
    if drain is None or lake is None or seen is None:
        return None
    here = in_this_epoch(drain, lake)
    if not seen.identity.is_same_server(here.identity) or here.position > seen.binlog_end:
        return None
    return bytes_left(here.position, seen.files, seen.binlog_end)


def _pending(windows: Sequence[StoredWindow], drain: Cursor | None, lake: Cursor | None) -> int | None:
    if drain is None or lake is None:
        return None
    reached, drained = Point.at(lake.epoch, lake.position), Point.at(drain.epoch, drain.position)
    return sum(reached < window.stop <= drained for window in windows)


def _tables(
    cut: Cut | None, drain: Cursor | None, lagging: Sequence[LaggingTable], lag: float | None, now: datetime
) -> tuple[TableFigures, ...]:
    """Return the tables that the lake has or is to have again; one that was dropped at the source has no lag."""
    quarantined = {one.table for one in drain.quarantined_tables} if drain is not None else set()
    late = {one.table: _age(one.last.oldest_missing_commit or one.last.at, now) for one in lagging}
    there = {one.table for one in cut.tables if one.dropped is None} if cut is not None else set()
    return tuple(
        TableFigures(table, _greater(late.get(table), lag), table in quarantined)
        for table in sorted(there | quarantined | late.keys())
    )


def _greater(one: float | None, other: float | None) -> float | None:
    return max((value for value in (one, other) if value is not None), default=None)


def _lake_tables(
    cut: Cut | None, verified: Iterable[Verified], covered: Iterable[Coverage], period: timedelta | None, now: datetime
) -> tuple[LakeTableFigures, ...]:
    merged = {(one.table, one.lake_table): one for one in cut.tables} if cut is not None else {}
    compared = {(one.table, one.lake_table): one for one in verified}
    by_ranges = {(one.table, one.lake_table): one for one in covered if not one.skipped and one.ranges}
    found = []
    # A comparison of what is in no cut any more says nothing of today's lake.
    for key, one in sorted(merged.items()):
        last, ranges = compared.get(key), by_ranges.get(key)
        found.append(
            LakeTableFigures(
                *key,
                rows=one.total_rows,
                bytes=one.total_bytes,
                verified_age_seconds=_age(last.clean_at, now) if last is not None else None,
                drift_rows=last.missing + last.extra + last.different if last is not None else None,
                covered_ratio=ranges.ratio(now, period) if ranges is not None and period is not None else None,
                covered_age_seconds=_age(ranges.oldest_at, now) if ranges is not None else None,
                covered_wrong_rows=len(unresolved(ranges, last)) if ranges is not None else None,
            )
        )
    return tuple(found)
