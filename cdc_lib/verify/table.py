"""Compares one table with its lake table: checksums of ranges, of their hash buckets, then the rows that differ.

Rows that differ are looked at again until they are equal or known to be wrong, or until the configured wait is over; see
:mod:`cdc_lib.verify.classify`.
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
from cdc_lib.mysql.connection import Session
from cdc_lib.mysql.read_only_session import answer
from cdc_lib.mysql.server_facts import ServerFacts, read_binlog_end
from cdc_lib.mysql.watermark import low_watermark
from cdc_lib.verify.checksums import NOTHING, ListedRow, RangeBucket, Sum, of_buckets, of_ranges, suspects, unequal
from cdc_lib.verify.classify import Look, Verdict, judge
from cdc_lib.verify.comparability import Subject
from cdc_lib.verify.differences import findings
from cdc_lib.verify.lake import LakeSums
from cdc_lib.verify.source_checksums import SourceSums

MAX_LISTED_ROWS = 1_000_000
"""Most rows of one table that are listed on both sides; of more, only the number of rows is reported."""

Key = tuple[str, ...]
"""Texts of the key columns of a row."""

BEFORE_ALL = Point(0, 0, 0)

POLL_SECONDS = 2.0
"""Delay between two reads of the lake's position."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """Compares tables over one session.

    Args:
        connection: a read-only session.
        facts: of the server.
        epoch: of the server's positions.
        lake: the lake.
        state_of: loads a lake table, with the point and position up to which it has all changes.
        config: chunk size and waiting times.
    """

    connection: Session
    facts: ServerFacts
    epoch: int
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
            self.connection, subject, self.config.chunk_rows, self.config.statement_delay.total_seconds(), self.sleep
        )
        with ThreadPoolExecutor(max_workers=1) as pool:
            lake_parts = pool.submit(self.lake.parts, subject, snapshot, source.cuts)
            sums = source.sums()
            parts = lake_parts.result()
        ranges = of_ranges(parts)
        wrong = unequal(sums, ranges)
        keys, unexamined = self._narrowed(source, snapshot, parts, wrong)
        chosen = dict(list(keys.items())[: self.config.max_rows])
        looks, still_open = self._looked_at(source, chosen) if chosen else ({}, 0)
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
            **findings(subject, chosen, looks),
        )
        return (
            report
            if repair is None or not looks
            else self._repaired(report, source, {n: chosen[n] for n in looks}, repair)
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

    def _looked_at(self, source: SourceSums, keys: Mapping[str, Key]) -> tuple[dict[str, Look], int]:
        """Return the look that found each wrong row, and the number of rows that stay open."""
        until = self.clock() + self.config.wait.total_seconds()
        wrong: dict[str, Look] = {}
        open_rows, before = dict(keys), None
        while open_rows:
            look = self._look(source, open_rows, until)
            verdicts = {name: judge(name, look, before) for name in open_rows}
            wrong |= {name: look for name, verdict in verdicts.items() if verdict is Verdict.WRONG}
            open_rows = {name: keys[name] for name, verdict in verdicts.items() if verdict is Verdict.OPEN}
            if self.clock() >= until:
                break
            before = look
        return wrong, len(open_rows)

    def _look(self, source: SourceSums, keys: Mapping[str, Key], until: float) -> Look:
        low = low_watermark(self.connection, self.facts)
        source_rows = source.rows(keys)
        answer(self.connection, "COMMIT")  # on MariaDB the watermark began a transaction
        high = Point.at(self.epoch, read_binlog_end(self.connection, self.facts))
        lake_table, lake_at, _ = self.state_of(source.subject)
        while lake_at < high and self.clock() < until:
            self.sleep(min(POLL_SECONDS, max(0.0, until - self.clock())))
            lake_table, lake_at, _ = self.state_of(source.subject)
        snapshot = lake_table.snapshot_id if lake_table is not None else None
        lake_rows = self.lake.rows(source.subject.as_in(lake_table), snapshot, keys)
        reselected = lake_table.marker.reselected if lake_table is not None else None
        if reselected and reselected.high > Point.at(self.epoch, low):
            # Re-selected rows may show changes that are newer than their order key: no verdict is possible yet.
            lake_at = BEFORE_ALL
        return Look(Point.at(self.epoch, low), high, lake_at, source_rows, lake_rows)


def _kept(before: Point | None) -> str:
    if before is None:
        return ""
    where = f"file {before.file}, offset {before.offset} of epoch {before.epoch}"
    return f"rows from before {where} are kept (schema_changes.truncate), and not compared"
