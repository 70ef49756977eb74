"""One table against its lake table: checksums of ranges, of their shares, then the rows that are not the same.

What differs is looked at again until it is known to be wrong or to have changed meanwhile, or until the time for that is over;
see :mod:`cdc_lib.verify.classify`.
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
from cdc_lib.verify.checksums import Listed, RangeShare, Sum, of_ranges, of_shares, suspects, unequal
from cdc_lib.verify.classify import Look, Verdict, judge
from cdc_lib.verify.comparability import Subject
from cdc_lib.verify.differences import findings
from cdc_lib.verify.lake import LakeSums
from cdc_lib.verify.source_checksums import SourceSums

MOST_LISTED = 1_000_000
"""Rows of one table that are listed on both sides; of unequal parts beyond that only the number of rows is told."""

Key = tuple[str, ...]
"""Texts of the columns of a row's key."""

BEFORE_ALL = Point(0, 0, 0)

MOMENT = 2.0
"""Seconds between two looks at where the lake is."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """Compares tables over one session.

    Args:
        connection: a session that only reads.
        facts: of the server.
        epoch: that its positions belong to.
        lake: the lake.
        state_of: loads a lake table, and tells up to where it has all changes.
        config: how much is read at once, and how long is waited.
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
        """Return what is not the same.

        Args:
            subject: the tables.
            repair: reads rows again, which hold every change before a point then; returns why it cannot.

        Raises:
            SourceError: the source cannot be read.
            MergeError: the lake cannot be read.
        """
        began = self.clock()
        found, _, position = self.state_of(subject)
        snapshot = found.snapshot_id if found is not None else None
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
        """Repair rows and look at them once more; what was wrong stays in the report."""
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
        self, source: SourceSums, snapshot: int | None, parts: Mapping[RangeShare, Sum], ranges: list[int]
    ) -> tuple[dict[str, Key], int]:
        """Return the rows that are not the same, as far as they are listed, and how many rows are not."""
        budget, unexamined = MOST_LISTED, 0
        wanted: dict[int, list[int]] = {}
        for number in ranges:
            if budget <= 0:
                unexamined += of_ranges(parts).get(number, Sum(0, 0)).rows
                continue
            here, there = source.shares(number), of_shares(parts, number)
            for share in unequal(here, there):
                rows = max(here.get(share, Sum(0, 0)).rows, there.get(share, Sum(0, 0)).rows)
                budget -= rows
                if budget < 0:
                    unexamined += rows
                else:
                    wanted.setdefault(number, []).append(share)
        listed: list[Listed] = []
        for number, shares in wanted.items():
            listed += source.listed(number, shares)
        chosen = {RangeShare(number, share) for number, shares in wanted.items() for share in shares}
        return suspects(listed, self.lake.listed(source.subject, snapshot, source.cuts, chosen)), unexamined

    def _looked_at(self, source: SourceSums, keys: Mapping[str, Key]) -> tuple[dict[str, Look], int]:
        """Return, for each row that is wrong, the look that says so; and how many rows stay open."""
        until = self.clock() + self.config.wait.total_seconds()
        wrong: dict[str, Look] = {}
        left, before = dict(keys), None
        while left:
            look = self._look(source, left, until)
            verdicts = {name: judge(name, look, before) for name in left}
            wrong |= {name: look for name, verdict in verdicts.items() if verdict is Verdict.WRONG}
            left = {name: keys[name] for name, verdict in verdicts.items() if verdict is Verdict.OPEN}
            if self.clock() >= until:
                break
            before = look
        return wrong, len(left)

    def _look(self, source: SourceSums, keys: Mapping[str, Key], until: float) -> Look:
        low = low_watermark(self.connection, self.facts)
        there = source.rows(keys)
        answer(self.connection, "COMMIT")  # on MariaDB the watermark began a transaction
        high = Point.at(self.epoch, read_binlog_end(self.connection, self.facts))
        found, lake_at, _ = self.state_of(source.subject)
        while lake_at < high and self.clock() < until:
            self.sleep(min(MOMENT, max(0.0, until - self.clock())))
            found, lake_at, _ = self.state_of(source.subject)
        snapshot = found.snapshot_id if found is not None else None
        rows = self.lake.rows(source.subject, snapshot, keys)
        if found is not None and found.marker.reselected and found.marker.reselected.high > Point.at(self.epoch, low):
            # Rows that were read back bear an older order key than what they may show: it tells nothing of them yet.
            lake_at = BEFORE_ALL
        return Look(Point.at(self.epoch, low), high, lake_at, there, rows)
