"""Compares one table with its lake table: checksums of ranges, of their hash buckets, then the rows that differ.

Rows that differ are looked at again until they are equal or known to be wrong, or until the configured wait is over; see
:mod:`cdc_lib.verify.judgement`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace

from cdc_lib.config.verify import VerifyConfig
from cdc_lib.model.lake_table import LakeTable
from cdc_lib.model.position import Point, Position
from cdc_lib.model.verify import TableReport
from cdc_lib.verify.checksums import NOTHING, ListedRow, RangeBucket, Sum, of_buckets, of_ranges, suspects, unequal
from cdc_lib.verify.comparability import Key, Subject
from cdc_lib.verify.differences import findings
from cdc_lib.verify.judgement import Half, RowState, Sides, Verdict, judge
from cdc_lib.verify.lake import LakeSums
from cdc_lib.verify.source_checksums import SourceSums
from cdc_lib.verify.source_side import BEFORE_ALL, SourceSide

MAX_LISTED_ROWS = 1_000_000
"""Most rows of one table that are listed on both sides; of more, only the number of rows is reported."""

POLL_SECONDS = 2.0
"""Delay between two reads of the lake's position."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """Compares tables over one session.

    Args:
        state_of: loads a lake table, with the point and position up to which it has all changes.
        config: chunk size and waiting times.
    """

    side: SourceSide
    lake: LakeSums
    state_of: Callable[[Subject], tuple[LakeTable | None, Point, Position]]
    config: VerifyConfig
    clock: Callable[[], float] = field(default=time.monotonic)
    sleep: Callable[[float], None] = field(default=time.sleep)

    def compare(self, subject: Subject, repair: Callable[[list[Key], Point], str] | None = None) -> TableReport:
        """Return the differences of a table.

        Args:
            subject: the tables.
            repair: reads the rows of keys again, which then include every change before a point; returns why it cannot.

        Raises:
            SourceError: the source cannot be read.
            MergeError: the lake cannot be read.
        """
        began = self.clock()
        lake_table, _, position = self.state_of(subject)
        subject = subject.as_in(lake_table)
        snapshot = lake_table.snapshot_id if lake_table is not None else None
        source = SourceSums(
            self.side.connection,
            subject,
            self.config.chunk_rows,
            self.config.statement_delay.total_seconds(),
            self.sleep,
        )
        with ThreadPoolExecutor(max_workers=1) as pool:
            lake_parts = pool.submit(self.lake.parts, subject, snapshot, source.cuts)
            sums = source.sums()
            parts = lake_parts.result()
        ranges = of_ranges(parts)
        wrong = unequal(sums, ranges)
        keys, unexamined = self._narrowed(source, snapshot, parts, wrong)
        chosen = dict(list(keys.items())[: self.config.max_rows])
        sides, still_open = self._looked_at(source, chosen) if chosen else ({}, 0)
        report = TableReport(
            table=subject.schema.name,
            lake_table=str(subject.lake),
            source_rows=sum(one.rows for one in sums.values()),
            lake_rows=sum(one.rows for one in ranges.values()),
            ranges=len(source.cuts) + 1,
            unequal_ranges=len(wrong),
            in_flight=still_open,
            unexamined=unexamined + len(keys) - len(chosen),
            position=position,
            seconds=self.clock() - began,
            uncompared=subject.uncompared,
            kept=_kept(subject.kept_before),
            **findings(subject, chosen, sides),
        )
        return (
            report
            if repair is None or not sides
            else self._repaired(report, source, {n: chosen[n] for n in sides}, repair)
        )

    def _repaired(
        self, report: TableReport, source: SourceSums, keys: dict[str, Key], repair: Callable[[list[Key], Point], str]
    ) -> TableReport:
        """Repair rows and look at them again; the wrong rows stay in the report."""
        _, stop, _ = self.state_of(source.subject)
        if refused := repair(list(keys.values()), stop):
            return replace(report, refused=refused)
        wrong, still_open = self._looked_at(source, keys)
        after = findings(source.subject, keys, wrong)
        return replace(
            report,
            missing=after["missing"],
            extra=after["extra"],
            different=after["different"],
            in_flight=report.in_flight + still_open,
            repaired=len(keys) - len(wrong) - still_open,
        )

    def _narrowed(
        self, source: SourceSums, snapshot: int | None, parts: Mapping[RangeBucket, Sum], ranges: list[int]
    ) -> tuple[dict[str, Key], int]:
        """Return the listed rows that differ, and the number of rows that were not listed."""
        budget, unexamined = MAX_LISTED_ROWS, 0
        unequal_buckets: dict[int, list[int]] = {}
        for number in ranges:
            if budget <= 0:
                unexamined += of_ranges(parts).get(number, NOTHING).rows
                continue
            of_source, of_lake = source.buckets(number), of_buckets(parts, number)
            for bucket in unequal(of_source, of_lake):
                rows = max(of_source.get(bucket, NOTHING).rows, of_lake.get(bucket, NOTHING).rows)
                budget -= rows
                if budget < 0:
                    unexamined += rows
                else:
                    unequal_buckets.setdefault(number, []).append(bucket)
        listed: list[ListedRow] = []
        for number, buckets in unequal_buckets.items():
            listed += source.listed(number, buckets)
        chosen = {RangeBucket(number, bucket) for number, buckets in unequal_buckets.items() for bucket in buckets}
        return suspects(listed, self.lake.listed(source.subject, snapshot, source.cuts, chosen)), unexamined

    def _looked_at(self, source: SourceSums, keys: Mapping[str, Key]) -> tuple[dict[str, Sides], int]:
        """Return both sides of each wrong row, and the number of rows that stay open."""
        until = self.clock() + self.config.wait.total_seconds()
        wrong: dict[str, Sides] = {}
        open_rows: Mapping[str, Key] = keys
        lacked: dict[str, Half] = {}
        while open_rows:
            halves = self.side.seen(source, open_rows)
            lake, at = self._lake_rows(source, open_rows, halves, until)
            verdicts = {name: judge(half, lake.get(name), at, lacked.get(name)) for name, half in halves.items()}
            found = (name for name, verdict in verdicts.items() if verdict is Verdict.WRONG)
            wrong |= {name: (halves[name].source, lake.get(name)) for name in found}
            open_rows = {name: keys[name] for name, verdict in verdicts.items() if verdict is Verdict.OPEN}
            if self.clock() >= until:
                break
            lacked = {name: halves[name] for name in open_rows if at >= halves[name].high and name not in lake}
        return wrong, len(open_rows)

    def _lake_rows(
        self, source: SourceSums, keys: Mapping[str, Key], halves: Mapping[str, Half], until: float
    ) -> tuple[dict[str, RowState], Point]:
        """Return rows of the lake, once it has every change that was before the source was read, and up to where it has all."""
        low, high = next((half.low, half.high) for half in halves.values())
        lake_table, lake_at, _ = self.state_of(source.subject)
        while lake_at < high and self.clock() < until:
            self.sleep(min(POLL_SECONDS, max(0.0, until - self.clock())))
            lake_table, lake_at, _ = self.state_of(source.subject)
        snapshot = lake_table.snapshot_id if lake_table is not None else None
        rows = self.lake.rows(source.subject.as_in(lake_table), snapshot, keys)
        reselected = lake_table.marker.reselected if lake_table is not None else None
        # Re-selected rows may show changes that are newer than their order key: no verdict is possible yet.
        return rows, BEFORE_ALL if reselected and reselected.high > low else lake_at


def _kept(before: Point | None) -> str:
    if before is None:
        return ""
    where = f"file {before.file}, offset {before.offset} of epoch {before.epoch}"
    return f"rows from before {where} are kept (schema_changes.truncate), and not compared"
