"""What the store holds of one source, read for all that is shown of it. No server is asked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import TypeVar

from cdc_lib.config.verify import VerifyConfig
from cdc_lib.merge.answers import OpenQuestion, questions_of
from cdc_lib.model.backlog import Backlog
from cdc_lib.model.changed_rows import AfterMerge
from cdc_lib.model.coverage import Coverage
from cdc_lib.model.cursor import DRAIN, LAKE, Cursor
from cdc_lib.model.failed_table import Stopped
from cdc_lib.model.finding import Finding
from cdc_lib.model.foreign import ForeignCommit
from cdc_lib.model.merge_plan import Cut
from cdc_lib.model.observation import ServerObservation
from cdc_lib.model.position import Point
from cdc_lib.model.verify import Verified
from cdc_lib.model.waiting import is_waiting
from cdc_lib.plan.gaps import as_gap, lost_cursor
from cdc_lib.ports import ObjectInfo
from cdc_lib.quarantine.tables import findings as quarantine_findings
from cdc_lib.source import Source
from cdc_lib.status.backlog import backlog_of
from cdc_lib.status.changed_rows import changed_row_findings
from cdc_lib.status.coverage import coverage_findings
from cdc_lib.status.cut_facts import CutFacts, facts_of_cut
from cdc_lib.status.figures import lag_bytes
from cdc_lib.status.overview import lag_seconds, open_commits, stopped_findings, uncommented_findings
from cdc_lib.store import documents, layout
from cdc_lib.store.after_merge import last_after_merge
from cdc_lib.store.cuts import furthest_keys, last_of, listed_cuts
from cdc_lib.store.failed_tables import last_stopped
from cdc_lib.store.observations import last_server
from cdc_lib.store.windows import chained, windows_after

T = TypeVar("T", Coverage, Verified)

RECENT_CUTS = 20
"""So many of the last cuts tell when a table changed last, and how much is merged in a second."""

READ_AT_ONCE = 8 << 20
"""Bytes of older cuts that are read at most for it: with thousands of tables a cut is large."""


@dataclass(frozen=True, slots=True)
class Holdings:
    """One source as its documents show it.

    Args:
        source: its name.
        at: when they were read (UTC).
        drain: the drain cursor; None before the first plan.
        lake: the lake cursor; None before the first plan.
        cut: the last one; None before the first merge.
        recent: the last cuts, oldest first, the last one among them.
        verified: the last comparison of each lake table.
        coverage: which key ranges of each table were compared.
        verify: how the source is compared.
        after_merge: the last comparisons of rows that merges changed; None before the first.
        foreign: commits of other writers since.
        stopped: what the last merge could not merge; None when nothing was.
        questions: schema changes at which some of these wait for an answer.
        missing: a cursor or a batch that is not there.
        lag_seconds: age of the oldest change that is not in the lake, as far as the store shows; None when unknown.
        seen: the server's binlog, as the last plan saw it; None before the first.
    """

    source: str
    at: datetime
    drain: Cursor | None
    lake: Cursor | None
    cut: Cut | None = None
    recent: tuple[CutFacts, ...] = ()
    verified: tuple[Verified, ...] = ()
    coverage: tuple[Coverage, ...] = ()
    verify: VerifyConfig = field(default_factory=VerifyConfig)
    after_merge: AfterMerge | None = None
    foreign: tuple[ForeignCommit, ...] = ()
    stopped: Stopped | None = None
    questions: tuple[OpenQuestion, ...] = ()
    missing: tuple[Finding, ...] = ()
    lag_seconds: float | None = None
    seen: ServerObservation | None = None

    @property
    def lag_bytes(self) -> int | None:
        """Binlog that the lake lacks, up to its end as the last plan saw it; None when unknown."""
        return lag_bytes(self.drain, self.lake, self.seen)

    @property
    def backlog(self) -> Backlog | None:
        """Binlog that is not drained, up to its end as the last plan saw it; None when unknown."""
        return backlog_of(self.drain, self.seen)

    @property
    def retention_left_seconds(self) -> float | None:
        """Until the server may purge what is drained next, by what the last plan saw; None when unknown, or it does not purge."""
        return self.seen.retention_left_seconds(self.at) if self.seen is not None else None

    @property
    def waiting(self) -> bool:
        """Whether something is planned or drained that the lake does not have."""
        return self.drain is not None and (self.lake is None or is_waiting(self.drain, self.lake))

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Everything that wants a person, errors first."""
        drift = [
            Finding(
                "error",
                f"{one.table} has drift: {one.drift_text}, as of {one.position}",
                f"cdc verify {self.source} {one.table.in_shell} --repair",
            )
            for one in self.verified
            if not one.clean
        ]
        foreign = [
            Finding("warning", f"{one}", f"cdc verify {self.source} {' '.join(t.in_shell for t in one.tables)}")
            for one in self.foreign
        ]
        stopped = stopped_findings(self.stopped, self.questions)
        changed = changed_row_findings(self.source, self.after_merge, self.verified, self.cut)
        since = self.lake.began_at if self.lake is not None else None
        covered = coverage_findings(self.source, self.verify, self.coverage, self.verified, self.cut, self.at, since)
        left_out = [*quarantine_findings(self.drain), *uncommented_findings(self.cut)]
        found = [*self.missing, *stopped, *drift, *changed, *covered, *left_out, *foreign]
        return tuple(sorted(found, key=lambda one: one.level != "error"))


@dataclass
class HoldingsReader:
    """Reads the holdings of one source again and again; what cannot change is read once.

    Args:
        source: the source; its server is not asked.
    """

    source: Source
    _last: tuple[str, Cut] | None = None
    _whole: tuple[str, Cut] | None = None
    _cuts: dict[str, CutFacts] = field(default_factory=dict)
    _verified: dict[str, tuple[datetime, Verified]] = field(default_factory=dict)
    _coverage: dict[str, tuple[datetime, Coverage]] = field(default_factory=dict)

    def read(self, now: datetime) -> Holdings:
        """Return what the store holds now.

        Args:
            now: the time (UTC).

        Raises:
            StoreUnavailable: the store gives no answer.
            CorruptBatch: a document is not what its key says.
        """
        store, source = self.source.store, self.source.name
        drain, lake = self.source.cursor(DRAIN), self.source.cursor(LAKE)
        listed = self.listed_cuts()
        stored = {info.key for info in listed}
        self._cuts = {key: facts for key, facts in self._cuts.items() if key in stored}
        cut = self._last_cut(listed)
        lag = lag_seconds(store, drain, lake, None, published=cut is not None)
        stopped = last_stopped(store, source)
        return Holdings(
            source, now, drain, lake, cut,
            recent=tuple(self.cuts(_recent(listed))),
            verified=tuple(self._comparisons()),
            after_merge=last_after_merge(store, source),
            coverage=tuple(self._covered()),
            verify=self.source.config.verify,
            foreign=tuple(open_commits(store, source, drain)),
            stopped=stopped,
            questions=tuple(questions_of(store, stopped)),
            missing=tuple(self._missing(drain, lake)),
            lag_seconds=lag,
            seen=last_server(store, source),
        )  # fmt: skip

    def listed_cuts(self) -> list[ObjectInfo]:
        """Return the cuts that are stored, in the order of their positions; none is read."""
        return listed_cuts(self.source.store, self.source.name)

    def cuts(self, listed: list[ObjectInfo]) -> list[CutFacts]:
        """Return some cuts in their order; one that was read before is not read again, one that was removed is left out."""
        known = {}
        for info in listed:
            found = self._cuts.get(info.key) or self._facts(info.key)
            if found is not None:
                known[info.key] = found
        self._cuts = {**self._cuts, **known}
        return list(known.values())

    def whole_cut(self, info: ObjectInfo) -> Cut | None:
        """Return a cut with all its tables; None of one that was removed meanwhile.

        The last one that was asked for is kept: with thousands of tables it takes long to read.
        """
        for known in (self._last, self._whole):
            if known is not None and known[0] == info.key:
                return known[1]
        found = documents.find(Cut, self.source.store, info.key)
        if found is not None:
            self._whole = info.key, found
        return found

    def _facts(self, key: str) -> CutFacts | None:
        cut = documents.find(Cut, self.source.store, key)
        return facts_of_cut(cut) if cut is not None else None

    def _last_cut(self, listed: list[ObjectInfo]) -> Cut | None:
        """Return the cut at the furthest position; see :func:`cdc_lib.store.cuts.last_cut`."""
        if not listed:
            return None
        furthest = furthest_keys([info.key for info in listed])
        if len(furthest) == 1 and self._last is not None and self._last[0] == furthest[0]:
            return self._last[1]
        self._last = last_of(self.source.store, furthest)
        if self._last is None:
            return None
        self._cuts[self._last[0]] = facts_of_cut(self._last[1])
        return self._last[1]

    def _comparisons(self) -> list[Verified]:
        """Return the last comparison of each table; of thousands, those that were written since are read."""
        self._verified = self._written_since(Verified, layout.verified_prefix(self.source.name), self._verified)
        return [one for _, one in self._verified.values()]

    def _covered(self) -> list[Coverage]:
        """Return which ranges of each table were compared, likewise."""
        self._coverage = self._written_since(Coverage, layout.coverage_prefix(self.source.name), self._coverage)
        return [one for _, one in self._coverage.values()]

    def _written_since(
        self, kind: type[T], prefix: str, before: Mapping[str, tuple[datetime, T]]
    ) -> dict[str, tuple[datetime, T]]:
        known = {}
        for info in self.source.store.list(prefix):
            last = before.get(info.key)
            if last is not None and last[0] == info.modified:
                known[info.key] = last
            elif (
                info.key.endswith(".json") and (found := documents.find(kind, self.source.store, info.key)) is not None
            ):
                known[info.key] = info.modified, found
        return known

    def _missing(self, drain: Cursor | None, lake: Cursor | None) -> list[Finding]:
        if drain is None or lake is None:
            lost = lost_cursor(self.source)
            return [Finding("error", lost.message, lost.hint)] if lost is not None else []
        end, at = drain.end_of_epoch(lake.epoch), lake.in_flight[-1].stop if lake.in_flight else lake.position
        if end is None or end <= at:
            return []
        start, stop = Point.at(lake.epoch, at), Point.at(lake.epoch, end)
        gap = as_gap(lake, chained(windows_after(self.source.store, drain, start, stop), start, stop))
        return [Finding("error", gap.what, gap.hint)] if gap is not None else []


def _recent(listed: list[ObjectInfo]) -> list[ObjectInfo]:
    """Return the last cuts, as many as may be read at once, at least the last one."""
    kept, size = listed[-1:], 0
    for info in reversed(listed[-RECENT_CUTS:-1]):
        size += info.size
        if size > READ_AT_ONCE:
            break
        kept.insert(0, info)
    return kept
