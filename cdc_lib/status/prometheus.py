"""What is known of sources as Prometheus takes it. A figure that is not known has no sample."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal

from prometheus_client.exposition import choose_encoder
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from cdc_lib.config.schedule import longest_gap
from cdc_lib.model.cursor import Cursor
from cdc_lib.model.merge_plan import Cut, TableCut
from cdc_lib.model.position import Point
from cdc_lib.model.table_name import TableName
from cdc_lib.model.verify import Verified
from cdc_lib.source import Source
from cdc_lib.status.coverage import CoveredRows
from cdc_lib.status.holdings import Holdings, HoldingsReader
from cdc_lib.status.overview import with_server

log = logging.getLogger(__name__)

Kind = Literal["gauge", "counter"]
Value = float | int | None
Samples = Iterator[tuple[dict[str, str], Value]]


@dataclass(frozen=True, slots=True)
class MetricFamily:
    """One metric.

    Args:
        name: without ``_total``, which every sample of a counter has.
        kind: of the metric.
        text: its help.
        samples: labels and values of a source; the label ``source`` is added.
    """

    name: str
    kind: Kind
    text: str
    samples: Callable[[Holdings], Samples]

    @property
    def sample(self) -> str:
        """The name that queries use."""
        return f"{self.name}_total" if self.kind == "counter" else self.name


@dataclass(frozen=True, slots=True)
class _ShownTable:
    """One source table in one lake table, with what comparisons of it found: as a whole, and by ranges of its key.

    A comparison of what is in no cut any more says nothing of today's lake.
    """

    cut: TableCut
    verified: Verified | None
    covered: CoveredRows | None


def _lake_tables(held: Holdings) -> Iterator[_ShownTable]:
    compared, covered = held.compared, held.covered
    by_ranges = {(one.table, one.lake_table) for one in held.coverage if not one.skipped and one.ranges}
    for cut in sorted(held.cut.tables if held.cut is not None else (), key=lambda one: (one.table, one.lake_table)):
        pair = cut.table, cut.lake_table
        yield _ShownTable(cut, compared.get(pair), covered.get(pair) if pair in by_ranges else None)


def _table_lags(held: Holdings) -> Mapping[TableName, float | None]:
    """Return the lag of the tables that the lake has or is to have again; one that was dropped at the source has none."""
    late = {one.table: _age(one.last.oldest_missing_commit or one.last.at, held) for one in held.lagging}
    there = {one.table for one in held.cut.tables if one.dropped is None} if held.cut is not None else set()
    known = {table: (late.get(table), held.lag_seconds) for table in sorted(there | _quarantined(held) | late.keys())}
    return {table: max((lag for lag in lags if lag is not None), default=None) for table, lags in known.items()}


def _quarantined(held: Holdings) -> set[TableName]:
    return {one.table for one in held.drain.quarantined_tables} if held.drain is not None else set()


def _age(at: datetime | None, held: Holdings) -> float | None:
    """Return the seconds since a time; 0 where it has not come."""
    return None if at is None else max(0.0, (held.at - at).total_seconds())


def _of_source(name: str, kind: Kind, text: str, value: Callable[[Holdings], Value]) -> MetricFamily:
    def samples(held: Holdings) -> Samples:
        yield {}, value(held)

    return MetricFamily(name, kind, text, samples)


def _of_drain(name: str, text: str, value: Callable[[Cursor], Value]) -> MetricFamily:
    return _of_source(name, "gauge", text, lambda held: value(held.drain) if held.drain is not None else None)


def _of_cut(name: str, kind: Kind, text: str, value: Callable[[Cut], Value]) -> MetricFamily:
    return _of_source(name, kind, text, lambda held: value(held.cut) if held.cut is not None else None)


def _of_table(name: str, text: str, value: Callable[[Holdings, TableName, float | None], Value]) -> MetricFamily:
    def samples(held: Holdings) -> Samples:
        for table, lag in _table_lags(held).items():
            yield {"table": table}, value(held, table, lag)

    return MetricFamily(name, "gauge", text, samples)


def _of_lake_table(name: str, kind: Kind, text: str, value: Callable[[Holdings, _ShownTable], Value]) -> MetricFamily:
    def samples(held: Holdings) -> Samples:
        for one in _lake_tables(held):
            yield {"table": one.cut.table, "lake_table": one.cut.lake_table}, value(held, one)

    return MetricFamily(name, kind, text, samples)


def _of_ranges(name: str, text: str, value: Callable[[Holdings, CoveredRows], Value]) -> MetricFamily:
    return _of_lake_table(
        name, "gauge", text, lambda held, table: value(held, table.covered) if table.covered is not None else None
    )


def _rows(held: Holdings) -> Samples:
    for one in _lake_tables(held):
        if (counts := one.cut.total_rows) is not None:
            ops = {"c": counts.inserts, "u": counts.updates, "d": counts.deletes, "r": counts.reads}
            for op, count in ops.items():
                yield {"table": one.cut.table, "lake_table": one.cut.lake_table, "op": op}, count


def _retries(held: Holdings) -> Samples:
    for task, count in sorted(held.retries.by_task.items()) if held.retries is not None else ():
        yield {"task_id": task}, count


def _windows_pending(held: Holdings) -> int | None:
    if held.drain is None or held.lake is None:
        return None
    reached, drained = (Point.at(one.epoch, one.position) for one in (held.lake, held.drain))
    return sum(reached < window.stop <= drained for window in held.windows)


def _stopped(held: Holdings) -> int | None:
    if held.cut is None and held.stopped is None:
        return None
    return len(held.stopped.tables) if held.stopped is not None else 0


def _seconds_between_comparisons(held: Holdings) -> float | None:
    schedule = held.config.verify.schedule
    interval = longest_gap(schedule) if schedule is not None else None
    return interval.total_seconds() if interval is not None else None


def _cover_seconds(held: Holdings) -> float | None:
    period = held.config.verify.cover_every
    return period.total_seconds() if period is not None else None


OPENMETRICS = "application/openmetrics-text"

UP = "cdc_source_up"

FAMILIES = (
    _of_source("cdc_lag_seconds", "gauge", "Age of the oldest change that is not in the lake", lambda h: h.lag_seconds),
    _of_source("cdc_lag_bytes", "gauge", "Binlog between the lake and the end of the binlog", lambda h: h.lag_bytes),
    _of_source(
        "cdc_catch_up_seconds",
        "gauge",
        "Time to drain the backlog at the rate of the last one",
        lambda h: h.backlog.seconds if h.backlog is not None else None,
    ),
    _of_drain("cdc_epoch", "Epoch of the drain cursor", lambda drain: drain.epoch),
    _of_drain(
        "cdc_windows_in_flight", "Windows that are planned and not acknowledged", lambda drain: len(drain.in_flight)
    ),
    _of_source("cdc_windows_pending", "gauge", "Windows that are drained and not in the lake", _windows_pending),
    _of_source(
        "cdc_snapshots_pending",
        "gauge",
        "Snapshots that are not whole in the lake",
        lambda h: h.snapshots if h.drain is not None and h.lake is not None else None,
    ),
    _of_source(
        "cdc_binlog_retention_left_seconds",
        "gauge",
        "Time until the server may purge what is drained next",
        lambda h: h.retention_left_seconds,
    ),
    _of_source(
        "cdc_server_seen_age_seconds",
        "gauge",
        "Time since the server answered",
        lambda h: _age(h.seen.at, h) if h.seen is not None else None,
    ),
    _of_drain("cdc_quarantined_tables", "Tables that are quarantined", lambda drain: len(drain.quarantined_tables)),
    _of_source("cdc_stopped_lake_tables", "gauge", "Lake tables that the last merge could not merge", _stopped),
    _of_source(
        "cdc_cut_age_seconds",
        "gauge",
        "Time since the last cut was published",
        lambda h: _age(h.cut.at, h) if h.cut is not None else None,
    ),
    _of_cut("cdc_last_merge_seconds", "gauge", "Duration of the last merge", lambda cut: cut.seconds),
    _of_source(
        "cdc_last_drain_seconds",
        "gauge",
        "Duration of the last drain of a unit",
        lambda h: h.drained.seconds if h.drained is not None else None,
    ),
    _of_source(
        "cdc_verify_interval_seconds",
        "gauge",
        "Longest time between two scheduled comparisons",
        _seconds_between_comparisons,
    ),
    _of_cut("cdc_merges", "counter", "Merges that published a cut", lambda cut: cut.totals.merges),
    _of_cut("cdc_windows_merged", "counter", "Windows that were merged", lambda cut: cut.totals.windows),
    _of_cut(
        "cdc_snapshot_chunks_merged",
        "counter",
        "Snapshot chunks that were merged",
        lambda cut: cut.totals.chunks,
    ),
    _of_cut("cdc_merge_seconds", "counter", "Duration of all merges", lambda cut: cut.totals.seconds),
    MetricFamily("cdc_task_retries", "counter", "Tries of tasks after the first", _retries),
    _of_table(
        "cdc_table_lag_seconds",
        "Age of the oldest change of the table that is not in the lake",
        lambda _h, _t, lag: lag,
    ),
    _of_table(
        "cdc_table_quarantined", "1 while the table is quarantined", lambda h, table, _: int(table in _quarantined(h))
    ),
    MetricFamily("cdc_rows_merged", "counter", "Rows that were merged, by kind of change", _rows),
    _of_lake_table(
        "cdc_bytes_merged", "counter", "Bytes of the files that were merged", lambda _, t: t.cut.total_bytes
    ),
    _of_lake_table(
        "cdc_verified_age_seconds",
        "gauge",
        "Time since the last comparison without drift",
        lambda h, t: _age(t.verified.clean_at, h) if t.verified is not None else None,
    ),
    _of_lake_table(
        "cdc_verify_drift_rows",
        "gauge",
        "Rows that the last comparison found wrong",
        lambda _, t: t.verified.missing + t.verified.extra + t.verified.different if t.verified is not None else None,
    ),
    _of_source(
        "cdc_cover_period_seconds", "gauge", "Time within which each key range is to be compared", _cover_seconds
    ),
    _of_ranges(
        "cdc_covered_ratio",
        "Part of the rows whose key ranges were compared within that time",
        lambda _, ranges: ranges.ratio,
    ),
    _of_ranges(
        "cdc_covered_age_seconds",
        "Time since the comparison of the key range that waits longest",
        lambda h, ranges: _age(ranges.oldest_at, h),
    ),
    _of_ranges(
        "cdc_covered_wrong_rows",
        "Rows that comparisons of key ranges found wrong and that are not equal yet",
        lambda _, ranges: ranges.wrong,
    ),
)
"""All metrics but :data:`UP`."""


@dataclass(frozen=True, slots=True)
class Scraped:
    """The figures of one source.

    Args:
        source: its name.
        samples: labels and values, by the name of the metric.
    """

    source: str
    samples: Mapping[str, Sequence[tuple[dict[str, str], Value]]]


def scraped(held: Holdings) -> Scraped:
    """Return the figures of what is known of a source."""
    return Scraped(held.source, {family.name: tuple(family.samples(held)) for family in FAMILIES})


def figures_of(source: Source, *, ask: bool = False) -> Scraped:
    """Return the figures of a source.

    Args:
        source: the source.
        ask: whether the server is asked. If it is not, or cannot be reached, what the last plan saw counts, and whether the lake has
            everything by now is not known.
    """
    held = HoldingsReader(source).read_all(datetime.now(UTC))
    if ask:
        held = with_server(held, lambda: source.credentials)
        for one in held.unanswered:
            log.warning("%s: the server cannot be asked: %s", source.name, one.what)
    return scraped(held)


@dataclass(frozen=True, slots=True)
class Exposition(Collector):
    """The figures of several sources.

    Args:
        scraped: of the sources that could be read.
        failed: names of those that could not.
    """

    scraped: Sequence[Scraped]
    failed: Sequence[str] = ()

    def collect(self) -> Iterator[Metric]:
        """Yield the metrics that have a sample."""
        up = Metric(UP, "1 while the figures of the source can be read", "gauge")
        for name in sorted({*self.failed, *(one.source for one in self.scraped)}):
            up.add_sample(UP, {"source": name}, 0 if name in self.failed else 1)
        yield up
        for family in FAMILIES:
            metric = Metric(family.name, family.text, family.kind)
            for one in self.scraped:
                for labels, value in one.samples.get(family.name, ()):
                    if value is not None:
                        metric.add_sample(family.sample, {"source": one.source, **labels}, value)
            if metric.samples:
                yield metric

    def text(self) -> str:
        """Return them in the format of OpenMetrics, which Prometheus and its textfile collector take."""
        return self.negotiated(OPENMETRICS)[0].decode()

    def negotiated(self, accept: str) -> tuple[bytes, str]:
        """Return them in the format that a client asks for, and the name of that.

        Args:
            accept: the request's ``Accept``.
        """
        # What else the header says, its versions and escapings, is nothing that these names need.
        encode, content_type = choose_encoder(OPENMETRICS if OPENMETRICS in accept else "text/plain")
        return encode(self), content_type
