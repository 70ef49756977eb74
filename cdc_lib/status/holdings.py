"""What is known of one source: one reading of its documents, and of its server where that was asked. All views are functions of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import islice
from typing import TypeVar

from cdc_lib.config import SourceConfig
from cdc_lib.consumers.cursors import ends
from cdc_lib.consumers.states import states
from cdc_lib.merge.answers import OpenQuestion, questions_of
from cdc_lib.model.backlog import Backlog
from cdc_lib.model.batch_check import DailyChecks
from cdc_lib.model.changed_rows import AfterMerge
from cdc_lib.model.coverage import Coverage
from cdc_lib.model.cursor import DRAIN, LAKE, Cursor
from cdc_lib.model.failed_table import Stopped, StoppedTable
from cdc_lib.model.finding import Finding
from cdc_lib.model.foreign import ForeignCommit
from cdc_lib.model.manifest import Manifest
from cdc_lib.model.merge_plan import Cut
from cdc_lib.model.observation import DrainObservation, ServerObservation, TaskRetries
from cdc_lib.model.position import Point, Position
from cdc_lib.model.quarantine import LaggingTable
from cdc_lib.model.results import ConsumerState, Unanswered
from cdc_lib.model.stored_window import StoredWindow
from cdc_lib.model.table_name import TableName
from cdc_lib.model.verify import Verified
from cdc_lib.model.waiting import is_waiting, unmerged
from cdc_lib.plan.gaps import gap_of, lost_chunks, lost_cursor
from cdc_lib.ports import ObjectInfo, ObjectStore
from cdc_lib.quarantine.tables import findings as quarantine_findings
from cdc_lib.source import Source
from cdc_lib.status.backlog import backlog_of
from cdc_lib.status.binlog_retention import Outlook
from cdc_lib.status.changed_rows import changed_row_findings
from cdc_lib.status.coverage import CoveredRows, coverage_findings, covered_rows
from cdc_lib.status.cut_facts import CutFacts, facts_of_cut
from cdc_lib.status.daily_checks import daily_findings
from cdc_lib.status.lag import LakeProgress, lag_bytes, lag_of
from cdc_lib.store import documents, layout
from cdc_lib.store.after_merge import last_after_merge
from cdc_lib.store.batch_checks import daily_checks
from cdc_lib.store.complete import last_complete
from cdc_lib.store.cuts import furthest_keys, last_of, listed_cuts
from cdc_lib.store.failed_tables import last_stopped
from cdc_lib.store.foreign import noticed_commits
from cdc_lib.store.manifests import find_manifest, first_chunks_of
from cdc_lib.store.observations import last_drain, last_server, task_retries
from cdc_lib.store.windows import stored_windows, windows_after

T = TypeVar("T", Coverage, Verified)

Pair = tuple[TableName, str]
"""A source table and the full name of its lake table."""

RECENT_CUTS = 20
"""So many of the last cuts tell when a table changed last, and how much is merged in a second."""

READ_AT_ONCE = 8 << 20
"""Bytes of older cuts that are read at most for it: with thousands of tables a cut is large."""

LAST_BATCHES = 5
"""So many of the last batches are shown."""

_LOOKED_AT = 10
"""Maximum batches that are opened to find a commit time: a batch without changes has none."""


@dataclass(frozen=True, slots=True)
class Holdings:
    """One source as its documents, and perhaps its server, show it.

    Args:
        config: its file.
        at: when they were read (UTC).
        drain: the drain cursor; None before the first plan.
        lake: the lake cursor; None before the first plan.
        cut: the last one; None before the first merge.
        recent: the last cuts, oldest first, the last one among them; empty where only a list of windows was read.
        verified: the last comparison of each lake table.
        coverage: which key ranges of each table were compared.
        after_merge: the last comparisons of rows that merges changed; None before the first.
        daily_checks: the windows that were decoded a second time; None before the first.
        foreign: commits of other writers since the last clean comparison or new snapshot of their tables.
        stopped: what the last merge could not merge; None when nothing was.
        questions: schema changes at which some of these wait for an answer.
        missing: a cursor or a batch that is not there.
        progress: what the lag depends on in the store; None before the first plan.
        seen: the server's binlog, as it is now if it was asked, else as the last plan saw it; None before the first.
        asked: whether the server was asked.
        outlook: how long the server keeps what is drained next; None if it was not asked, and before the first plan.
        unanswered: the server, the store, or both, if they could not be asked.
        windows: all stored windows, where they were listed.
        last_batches: manifests of the last ones, oldest first.
        consumers: every consumer of the batches, likewise.
        drained: the last drain, likewise; None before the first.
        retries: tries of tasks after the first, likewise.
    """

    config: SourceConfig
    at: datetime
    drain: Cursor | None = None
    lake: Cursor | None = None
    cut: Cut | None = None
    recent: tuple[CutFacts, ...] = ()
    verified: tuple[Verified, ...] = ()
    coverage: tuple[Coverage, ...] = ()
    after_merge: AfterMerge | None = None
    daily_checks: DailyChecks | None = None
    foreign: tuple[ForeignCommit, ...] = ()
    stopped: Stopped | None = None
    questions: tuple[OpenQuestion, ...] = ()
    missing: tuple[Finding, ...] = ()
    progress: LakeProgress | None = None
    seen: ServerObservation | None = None
    asked: bool = False
    outlook: Outlook | None = None
    unanswered: tuple[Unanswered, ...] = ()
    windows: tuple[StoredWindow, ...] = ()
    last_batches: tuple[Manifest, ...] = ()
    consumers: tuple[ConsumerState, ...] = ()
    drained: DrainObservation | None = None
    retries: TaskRetries | None = None

    @property
    def source(self) -> str:
        """Its name."""
        return self.config.source

    @property
    def lag_seconds(self) -> float | None:
        """Age of the oldest change that is not in the lake, 0 when all are; None when unknown, and before the first cut."""
        if self.progress is None or self.lake is None:
            return None
        known = self.progress
        if self.asked and self.seen is not None and self.seen.identity.is_same_server(self.lake.identity):
            known = replace(known, at_binlog_end=self.lake.position == self.seen.binlog_end)
        return lag_of(known, self.at)

    @property
    def binlog_end(self) -> Position | None:
        """End of the binlog now; None if the server was not asked, or writes none."""
        return self.seen.binlog_end if self.asked and self.seen is not None else None

    @property
    def pending_bytes(self) -> int | None:
        """Binlog that the lake lacks in this epoch, up to its end now; None if the server was not asked, and when unknown."""
        return self.lag_bytes if self.asked else None

    @property
    def lag_bytes(self) -> int | None:
        """Binlog that the lake lacks in this epoch, up to its end as it was seen; None when unknown."""
        return lag_bytes(self.drain, self.lake, self.seen)

    @property
    def backlog(self) -> Backlog | None:
        """Binlog that is not drained, up to its end as it was seen; None when unknown."""
        return backlog_of(self.drain, self.seen)

    @property
    def retention_left_seconds(self) -> float | None:
        """Until the server may purge what is drained next, by what was seen; None when unknown, or it does not purge."""
        # The server may have been asked since.
        return self.seen.retention_left_seconds(max(self.at, self.seen.at)) if self.seen is not None else None

    @property
    def retention_warning(self) -> str:
        """What is wrong with how long the server keeps what is drained next, and how to fix it; empty if it is long enough."""
        return self.outlook.warning if self.outlook is not None else ""

    @property
    def waiting(self) -> bool:
        """Whether something is planned or drained that the lake does not have."""
        return self.drain is not None and (self.lake is None or is_waiting(self.drain, self.lake))

    @property
    def snapshots(self) -> int:
        """Snapshots that are not whole in the lake; 0 before the first plan."""
        return len(unmerged(self.drain, self.lake)) if self.drain is not None and self.lake is not None else 0

    @property
    def stopped_tables(self) -> tuple[StoppedTable, ...]:
        """The lake tables that the last merge could not merge."""
        return self.stopped.tables if self.stopped is not None else ()

    @property
    def knows_store(self) -> bool:
        """Whether the store was read."""
        return all(one.who != "store" for one in self.unanswered)

    @property
    def lagging(self) -> tuple[LaggingTable, ...]:
        """Tables that are quarantined, or released and not restored in the lake yet."""
        return self.drain.lagging_in(self.lake) if self.drain is not None else ()

    @property
    def pending_windows(self) -> int:
        """Windows of earlier epochs that the lake must still merge; those after the end of their epoch do not count."""
        if self.drain is None or self.lake is None:
            return 0
        ended, here = ends(self.drain), Point.at(self.lake.epoch, self.lake.position)
        epoch = self.drain.epoch
        earlier = (window for window in self.windows if window.start.epoch < epoch and here < window.stop)
        return sum(window.stop <= ended.get(window.start.epoch, here) for window in earlier)

    @property
    def compared(self) -> Mapping[Pair, Verified]:
        """The last comparison of each lake table."""
        return {(one.table, one.lake_table): one for one in self.verified}

    @property
    def covered(self) -> Mapping[Pair, CoveredRows]:
        """What comparisons of key ranges say of each lake table; empty without ``verify.cover_every``."""
        whole, period = self.compared, self.config.verify.cover_every
        pairs = {(one.table, one.lake_table): one for one in self.coverage}
        found = {pair: covered_rows(one, whole.get(pair), period, self.at) for pair, one in pairs.items()}
        return {pair: one for pair, one in found.items() if one is not None}

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Everything in the store that wants a person, errors first."""
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
            Finding(
                "warning", f"{one}", f"cdc verify {self.source} {' '.join(t.in_shell for t in one.tables)} --repair"
            )
            for one in self.foreign
        ]
        stopped = stopped_findings(self.stopped, self.questions)
        changed = changed_row_findings(self.source, self.after_merge, self.verified, self.cut)
        since, rules = self.lake.began_at if self.lake is not None else None, self.config.verify
        covered = coverage_findings(self.source, rules, self.coverage, self.verified, self.cut, self.at, since)
        twice = daily_findings(self.source, self.daily_checks)
        left_out = [*quarantine_findings(self.drain), *uncommented_findings(self.cut)]
        found = [*self.missing, *stopped, *drift, *changed, *covered, *twice, *left_out, *foreign]
        return tuple(sorted(found, key=lambda one: one.level != "error"))


def progress_of(source: Source, drain: Cursor | None, lake: Cursor | None, *, published: bool) -> LakeProgress | None:
    """Return what the lag depends on in the store; None before the first plan.

    Args:
        source: the source; its server is not asked.
        drain: the drain cursor; None before the first plan.
        lake: the lake cursor; None before the first plan.
        published: whether the lake has published a cut.
    """
    if drain is None or lake is None:
        return None
    complete = last_complete(source.store, source.name)
    return LakeProgress(
        published=published,
        waiting=is_waiting(drain, lake),
        at_binlog_end=None,
        oldest=_oldest(source.store, drain, lake),
        merged=lake.event_time,
        complete=complete.at if complete is not None else None,
        began=lake.moves[0].at if lake.moves else None,
    )


def _oldest(store: ObjectStore, drain: Cursor, lake: Cursor) -> datetime | None:
    """Return the time of the first change of the first batch that the lake does not have."""
    at, end = Point.at(lake.epoch, lake.position), Point.at(drain.epoch, drain.position)
    if drain.in_flight:
        end = Point.at(drain.epoch, drain.in_flight[-1].stop)
    ahead = windows_after(store, drain, at, end)
    manifests = (find_manifest(store, one.key) for one in islice(ahead, _LOOKED_AT))
    times = [one.first_time for one in manifests if one is not None and one.first_time is not None][:1]
    firsts = (one for task in unmerged(drain, lake)[:_LOOKED_AT] for one in first_chunks_of(store, task)[:1])
    times += [one.first_time for one in firsts if one.first_time is not None]
    return min(times, default=None)


def _missing(source: Source, drain: Cursor | None, lake: Cursor | None) -> Iterator[Finding]:
    """Yield a finding for a missing cursor, or for a missing batch that the lake needs next."""
    if (lost := lost_cursor(source)) is not None:
        yield Finding("error", lost.message, lost.hint)
    if (gap := gap_of(source.store, drain, lake)) is not None:
        yield Finding("error", gap.what, gap.hint)
    for error in lost_chunks(source.store, drain, lake) if drain is not None and lake is not None else ():
        yield Finding("error", error.message, error.hint)


def _open_commits(source: Source, drain: Cursor | None, verified: Iterable[Verified]) -> Iterator[ForeignCommit]:
    """Yield the foreign commits since the last clean comparison or new snapshot of their tables."""
    clean = {one.lake_table: one.at for one in verified if one.clean}
    again = {one.table: one.released_at for one in drain.quarantine if one.released_at} if drain is not None else {}
    for one in noticed_commits(source.store, source.name):
        compared = one.lake_table in clean and clean[one.lake_table] > one.noticed_at
        if not compared and not all(table in again and again[table] > one.noticed_at for table in one.tables):
            yield one


def uncommented_findings(cut: Cut | None) -> Iterator[Finding]:
    """Yield a finding for each table whose comments the last merge could not carry over."""
    for one in cut.uncommented if cut is not None else ():
        hint = "The next merge of rows tries again; its log says why. comments: in the source file leaves a table out."
        yield Finding("warning", f"{one.table}: its comments are not in the lake", hint)


def stopped_findings(stopped: Stopped | None, questions: Iterable[OpenQuestion] = ()) -> Iterator[Finding]:
    """Yield a finding for each table that the last merge could not merge, with a hint.

    Args:
        stopped: these tables; None if there are none.
        questions: those among them that wait for an answer, or for the merge that applies it.
    """
    answered = {one.question: one.outlook for one in questions if one.answer is not None}
    for one in stopped.tables if stopped is not None else ():
        outlook = answered.get(one.question) if one.question is not None else None
        what = f"{', '.join(one.tables)} stopped before {one.lake_table}: {one.what}"
        yield Finding("warning" if outlook else "error", what, outlook or one.hint)


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
        """Return what the store holds now, without the last cuts, and without what a list of all windows shows.

        Args:
            now: the time (UTC).

        Raises:
            StoreUnavailable: the store gives no answer.
            CorruptBatch: a document is not what its key says.
        """
        return self._read(now)[0]

    def read_with_cuts(self, now: datetime) -> Holdings:
        """Return what the store holds now, with the last cuts; see :meth:`read`."""
        held, listed = self._read(now)
        return replace(held, recent=tuple(self.cuts(_recent(listed))))

    def read_all(self, now: datetime) -> Holdings:
        """Return what the store holds now, with what a list of all windows shows; see :meth:`read`."""
        held, source = self.read(now), self.source
        windows = tuple(stored_windows(source.store, source.name))
        found = (find_manifest(source.store, window.key) for window in windows[-LAST_BATCHES:])
        keep_for = source.config.store.keep_batches_for
        return replace(
            held,
            windows=windows,
            last_batches=tuple(one for one in found if one is not None),
            consumers=tuple(states(windows, source.cursors, source.name, keep_for)),
            drained=last_drain(source.store, source.name),
            retries=task_retries(source.store, source.name),
        )

    def _read(self, now: datetime) -> tuple[Holdings, list[ObjectInfo]]:
        source, store, name = self.source, self.source.store, self.source.name
        drain, lake = source.cursor(DRAIN), source.cursor(LAKE)
        listed = self.listed_cuts()
        stored = {info.key for info in listed}
        self._cuts = {key: facts for key, facts in self._cuts.items() if key in stored}
        cut = self._last_cut(listed)
        stopped, verified = last_stopped(store, name), tuple(self._comparisons())
        held = Holdings(
            source.config, now, drain, lake, cut,
            verified=verified,
            coverage=tuple(self._covered()),
            after_merge=last_after_merge(store, name),
            daily_checks=daily_checks(store, name),
            foreign=tuple(_open_commits(source, drain, verified)),
            stopped=stopped,
            questions=tuple(questions_of(store, stopped)),
            missing=tuple(_missing(source, drain, lake)),
            progress=progress_of(source, drain, lake, published=cut is not None),
            seen=last_server(store, name),
        )  # fmt: skip
        return held, listed

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


def _recent(listed: list[ObjectInfo]) -> list[ObjectInfo]:
    """Return the last cuts, as many as may be read at once, at least the last one."""
    kept, size = listed[-1:], 0
    for info in reversed(listed[-RECENT_CUTS:-1]):
        size += info.size
        if size > READ_AT_ONCE:
            break
        kept.insert(0, info)
    return kept
