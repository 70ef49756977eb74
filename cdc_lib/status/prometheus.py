"""Figures of sources as Prometheus takes them. A figure that is not known has no sample."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from prometheus_client.exposition import choose_encoder
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from cdc_lib.model.figures import LakeTableFigures, SourceFigures, TableFigures
from cdc_lib.model.merge_plan import MergeTotals

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
    samples: Callable[[SourceFigures], Samples]

    @property
    def sample(self) -> str:
        """The name that queries use."""
        return f"{self.name}_total" if self.kind == "counter" else self.name


def _of_source(name: str, kind: Kind, text: str, value: Callable[[SourceFigures], Value]) -> MetricFamily:
    def samples(figures: SourceFigures) -> Samples:
        yield {}, value(figures)

    return MetricFamily(name, kind, text, samples)


def _merged(value: Callable[[MergeTotals], Value]) -> Callable[[SourceFigures], Value]:
    return lambda figures: value(figures.merged) if figures.merged is not None else None


def _of_table(name: str, kind: Kind, text: str, value: Callable[[TableFigures], Value]) -> MetricFamily:
    def samples(figures: SourceFigures) -> Samples:
        for one in figures.tables:
            yield {"table": one.table}, value(one)

    return MetricFamily(name, kind, text, samples)


def _of_lake_table(name: str, kind: Kind, text: str, value: Callable[[LakeTableFigures], Value]) -> MetricFamily:
    def samples(figures: SourceFigures) -> Samples:
        for one in figures.lake_tables:
            yield {"table": one.table, "lake_table": one.lake_table}, value(one)

    return MetricFamily(name, kind, text, samples)


def _rows(figures: SourceFigures) -> Samples:
    for one in figures.lake_tables:
        if one.rows is not None:
            counts = one.rows
            ops = {"c": counts.inserts, "u": counts.updates, "d": counts.deletes, "r": counts.reads}
            for op, count in ops.items():
                yield {"table": one.table, "lake_table": one.lake_table, "op": op}, count


def _retries(figures: SourceFigures) -> Samples:
    for task, count in figures.retries:
        yield {"task_id": task}, count


OPENMETRICS = "application/openmetrics-text"

UP = "cdc_source_up"

FAMILIES = (
    _of_source("cdc_lag_seconds", "gauge", "Age of the oldest change that is not in the lake", lambda s: s.lag_seconds),
    _of_source("cdc_lag_bytes", "gauge", "Binlog between the lake and the end of the binlog", lambda s: s.lag_bytes),
    _of_source(
        "cdc_catch_up_seconds",
        "gauge",
        "Time to drain the backlog at the rate of the last one",
        lambda s: s.catch_up_seconds,
    ),
    _of_source("cdc_epoch", "gauge", "Epoch of the drain cursor", lambda s: s.epoch),
    _of_source(
        "cdc_windows_in_flight",
        "gauge",
        "Windows that are planned and not acknowledged",
        lambda s: s.windows_in_flight,
    ),
    _of_source(
        "cdc_windows_pending",
        "gauge",
        "Windows that are drained and not in the lake",
        lambda s: s.windows_pending,
    ),
    _of_source(
        "cdc_snapshots_pending",
        "gauge",
        "Snapshots that are not whole in the lake",
        lambda s: s.snapshots_pending,
    ),
    _of_source(
        "cdc_binlog_retention_left_seconds",
        "gauge",
        "Time until the server may purge what is drained next",
        lambda s: s.retention_left_seconds,
    ),
    _of_source(
        "cdc_server_seen_age_seconds", "gauge", "Time since the server answered", lambda s: s.server_seen_seconds
    ),
    _of_source("cdc_quarantined_tables", "gauge", "Tables that are quarantined", lambda s: s.quarantined),
    _of_source(
        "cdc_stopped_lake_tables", "gauge", "Lake tables that the last merge could not merge", lambda s: s.stopped
    ),
    _of_source("cdc_cut_age_seconds", "gauge", "Time since the last cut was published", lambda s: s.cut_age_seconds),
    _of_source("cdc_last_merge_seconds", "gauge", "Duration of the last merge", lambda s: s.merge_seconds),
    _of_source("cdc_last_drain_seconds", "gauge", "Duration of the last drain of a unit", lambda s: s.drain_seconds),
    _of_source(
        "cdc_verify_interval_seconds",
        "gauge",
        "Longest time between two scheduled comparisons",
        lambda s: s.verify_interval_seconds,
    ),
    _of_source("cdc_merges", "counter", "Merges that published a cut", _merged(lambda m: m.merges)),
    _of_source("cdc_windows_merged", "counter", "Windows that were merged", _merged(lambda m: m.windows)),
    _of_source(
        "cdc_snapshot_chunks_merged",
        "counter",
        "Snapshot chunks that were merged",
        _merged(lambda m: m.chunks),
    ),
    _of_source("cdc_merge_seconds", "counter", "Duration of all merges", _merged(lambda m: m.seconds)),
    MetricFamily("cdc_task_retries", "counter", "Tries of tasks after the first", _retries),
    _of_table(
        "cdc_table_lag_seconds",
        "gauge",
        "Age of the oldest change of the table that is not in the lake",
        lambda t: t.lag_seconds,
    ),
    _of_table("cdc_table_quarantined", "gauge", "1 while the table is quarantined", lambda t: int(t.quarantined)),
    MetricFamily("cdc_rows_merged", "counter", "Rows that were merged, by kind of change", _rows),
    _of_lake_table("cdc_bytes_merged", "counter", "Bytes of the files that were merged", lambda t: t.bytes),
    _of_lake_table(
        "cdc_verified_age_seconds",
        "gauge",
        "Time since the last comparison without drift",
        lambda t: t.verified_age_seconds,
    ),
    _of_lake_table(
        "cdc_verify_drift_rows",
        "gauge",
        "Rows that the last comparison found wrong",
        lambda t: t.drift_rows,
    ),
    _of_source(
        "cdc_cover_period_seconds",
        "gauge",
        "Time within which each key range is to be compared",
        lambda s: s.cover_period_seconds,
    ),
    _of_lake_table(
        "cdc_covered_ratio",
        "gauge",
        "Part of the rows whose key ranges were compared within that time",
        lambda t: t.covered_ratio,
    ),
    _of_lake_table(
        "cdc_covered_age_seconds",
        "gauge",
        "Time since the comparison of the key range that waits longest",
        lambda t: t.covered_age_seconds,
    ),
    _of_lake_table(
        "cdc_covered_wrong_rows",
        "gauge",
        "Rows that comparisons of key ranges found wrong and that are not equal yet",
        lambda t: t.covered_wrong_rows,
    ),
)
"""All metrics but :data:`UP`."""


@dataclass(frozen=True, slots=True)
class Exposition(Collector):
    """The figures of several sources.

    Args:
        figures: of the sources that could be read.
        failed: names of those that could not.
    """

    figures: Sequence[SourceFigures]
    failed: Sequence[str] = ()

    def collect(self) -> Iterator[Metric]:
        """Yield the metrics that have a sample."""
        up = Metric(UP, "1 while the figures of the source can be read", "gauge")
        for name in sorted({*self.failed, *(one.source for one in self.figures)}):
            up.add_sample(UP, {"source": name}, 0 if name in self.failed else 1)
        yield up
        for family in FAMILIES:
            metric = Metric(family.name, family.text, family.kind)
            for one in self.figures:
                for labels, value in family.samples(one):
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
