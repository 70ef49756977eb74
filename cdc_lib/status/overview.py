"""The status of a source and the findings about its server."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime
from itertools import islice

from cdc_lib.config import Credentials, SourceConfig
from cdc_lib.consumers.cursors import ends
from cdc_lib.consumers.states import states
from cdc_lib.drain.columns import cascade_findings, left_to_tools, shape_of, shared_names, versioned
from cdc_lib.drain.columns import findings as shape_findings
from cdc_lib.errors import CdcError, SourceError
from cdc_lib.merge.answers import OpenQuestion, questions_of
from cdc_lib.model.binlog_checkpoint import BinlogCheckpoint
from cdc_lib.model.cursor import DRAIN, LAKE, Cursor
from cdc_lib.model.failed_table import Stopped
from cdc_lib.model.finding import Finding
from cdc_lib.model.foreign import ForeignCommit
from cdc_lib.model.merge_plan import Cut
from cdc_lib.model.observation import ServerObservation
from cdc_lib.model.pace import counted
from cdc_lib.model.position import Point, Position
from cdc_lib.model.results import Gauges, Status, Unanswered
from cdc_lib.model.stored_window import StoredWindow
from cdc_lib.model.waiting import is_waiting, unmerged
from cdc_lib.mysql.clock import judge_clock
from cdc_lib.mysql.information_schema import InformationSchema
from cdc_lib.mysql.preflight import judge
from cdc_lib.mysql.replica_ids import judge_replica_id, registered_replicas
from cdc_lib.mysql.server_facts import ServerFacts, facts_of, read_facts
from cdc_lib.mysql.xa_recover import judge_prepared
from cdc_lib.plan.definitions import ServerDefinitions
from cdc_lib.plan.gaps import gap_of, lost_chunks, lost_cursor
from cdc_lib.plan.windows import bytes_left
from cdc_lib.ports import ObjectStore
from cdc_lib.quarantine.tables import findings as quarantine_findings
from cdc_lib.source import Source
from cdc_lib.status.binlog_retention import look_ahead
from cdc_lib.status.changed_rows import changed_row_findings
from cdc_lib.status.coverage import coverage_findings
from cdc_lib.status.daily_checks import daily_findings
from cdc_lib.status.lag import LakeProgress, lag_of
from cdc_lib.status.mode_findings import mode_findings
from cdc_lib.status.observation import observation_of
from cdc_lib.store.after_merge import last_after_merge
from cdc_lib.store.batch_checks import daily_checks
from cdc_lib.store.complete import last_complete
from cdc_lib.store.coverage import coverages
from cdc_lib.store.cuts import last_cut
from cdc_lib.store.failed_tables import last_stopped
from cdc_lib.store.foreign import noticed_commits
from cdc_lib.store.manifests import find_manifest, first_chunks_of
from cdc_lib.store.observations import note_server
from cdc_lib.store.verified import last_verified
from cdc_lib.store.windows import stored_windows, windows_after

log = logging.getLogger(__name__)

_LOOKED_AT = 10
"""Maximum batches that are opened to find a commit time: a batch without changes has none."""


def status_of(source: Source) -> Status:
    """Return what is known of a source: what the store says if the server cannot be asked, and the other way round."""
    return asked_status(source.config, lambda: source.credentials, lambda: source)


def asked_status(config: SourceConfig, log_in: Callable[[], Credentials], stored: Callable[[], Source]) -> Status:
    """Return what is known of a source: what the store says if the server cannot be asked, and the other way round.

    Args:
        config: the source.
        log_in: returns its log-in, or raises a CdcError.
        stored: returns it with its store, likewise; its log-in is not used.
    """
    status, progress = Status(config.source, None, None, None, None, None, (), None), None
    unanswered = []
    try:
        status, progress = _stored_status(stored())
    except CdcError as error:
        unanswered.append(Unanswered("store", error.code, error.what, error.hint))
    try:
        status = _with_server(status, progress, config, log_in())
    except CdcError as error:
        unanswered.append(Unanswered("server", error.code, error.what, error.hint))
    return replace(status, unanswered=tuple(unanswered))


def _with_server(
    status: Status, progress: LakeProgress | None, config: SourceConfig, credentials: Credentials
) -> Status:
    """Return the status with what the server says.

    Raises:
        SourceError: it cannot be asked.
    """
    drain, lake = status.drain, status.lake
    here = config.at_server_of(drain)
    facts = facts_of(here.server, credentials)
    outlook = look_ahead(here, credentials, facts, drain)
    binlog_end, pending = _head_and_pending(facts, drain, lake)
    forecast, warning = (outlook.forecast, outlook.warning) if outlook else (None, "")
    lag = _lag_at(progress, lake, facts)
    return replace(status, binlog_end=binlog_end, pending_bytes=pending, lag_seconds=lag, retention=forecast, retention_warning=warning)  # fmt: skip


def _stored_status(source: Source) -> tuple[Status, LakeProgress | None]:
    """Return the status without what the server says, and what its lag depends on."""
    drain, lake, store, name = source.cursor(DRAIN), source.cursor(LAKE), source.store, source.name
    windows = stored_windows(store, name)
    batches = tuple(filter(None, (find_manifest(store, window.key) for window in windows[-5:])))
    consumers = tuple(states(windows, source.cursors, name, source.config.store.keep_batches_for))
    lagging = drain.lagging_in(lake) if drain else ()
    snapshots = len(unmerged(drain, lake)) if drain and lake else 0
    cut = last_cut(store, name)
    progress = _progress(store, drain, lake, published=cut is not None)
    older = _of_earlier_epochs(windows, drain, lake)
    verified = tuple(last_verified(store, name))
    stopped = last_stopped(store, name)
    status = Status(
        name, drain, lake, None, _lag_at(progress, lake, None), None, batches, cut, consumers, lagging, None, "", older, verified,
        stopped.tables if stopped is not None else (), tuple(open_commits(store, name, drain)),
        tuple(f"{one.what}. {one.hint}" for one in missing_findings(source)),
        snapshots, last_after_merge(store, name), tuple(coverages(store, name)), daily_checks(store, name),
    )  # fmt: skip
    return status, progress


def open_commits(store: ObjectStore, source: str, drain: Cursor | None) -> list[ForeignCommit]:
    """Return the foreign commits since the last clean comparison or new snapshot of their tables."""
    noticed = noticed_commits(store, source)
    if not noticed:
        return []
    clean = {one.lake_table: one.at for one in last_verified(store, source) if one.clean}
    again = {one.table: one.released_at for one in drain.quarantine if one.released_at} if drain is not None else {}
    return [
        one
        for one in noticed
        if not (one.lake_table in clean and clean[one.lake_table] > one.noticed_at)
        and not all(table in again and again[table] > one.noticed_at for table in one.tables)
    ]


def gauges_of(source: Source) -> Gauges:
    """Return the monitored figures of a source.

    They are a by-product of other steps: an unreachable server becomes a warning, not an error. What the server says is kept
    in the store, for readers of the store alone.
    """
    drain, lake, store = source.cursor(DRAIN), source.cursor(LAKE), source.store
    here = source.at_cursor(drain)
    published = last_cut(store, source.name) is not None
    try:
        facts = here.facts()
        outlook = look_ahead(here.config, here.credentials, facts, drain)
    except SourceError as error:
        lag = lag_seconds(store, drain, lake, None, published=published)
        return Gauges(None, lag, f"it is unknown when the server purges what is drained next: {error}")
    forecast = outlook.forecast if outlook is not None else None
    if (seen := observation_of(source.name, facts, _needed(drain, lake), forecast, datetime.now(UTC))) is not None:
        note_server(store, seen)
    left = None if forecast is None else 0.0 if forecast.purged else forecast.shortest
    hours = None if left is None else left / 3600
    lag = lag_seconds(store, drain, lake, facts, published=published)
    return Gauges(hours, lag, outlook.warning if outlook else "", forecast.backlog if forecast is not None else None)


def observed(source: Source) -> ServerObservation | None:
    """Ask the server for what monitoring needs of it; None when it cannot be asked. Nothing is kept."""
    drain, lake = source.cursor(DRAIN), source.cursor(LAKE)
    here = source.at_cursor(drain)
    try:
        facts = here.facts()
    except SourceError as error:
        log.warning("%s: the server cannot be asked: %s", source.name, error)
        return None
    outlook = look_ahead(here.config, here.credentials, facts, drain)
    forecast = outlook.forecast if outlook is not None else None
    return observation_of(source.name, facts, _needed(drain, lake), forecast, datetime.now(UTC))


def _head_and_pending(
    facts: ServerFacts, drain: Cursor | None, lake: Cursor | None
) -> tuple[Position | None, int | None]:
    here = None if drain is None or lake is None else in_this_epoch(drain, lake)
    if facts.binlog_end is None or here is None or not facts.identity.is_same_server(here.identity):
        return facts.binlog_end, None
    return facts.binlog_end, bytes_left(here.position, facts.files, facts.binlog_end)


def _needed(drain: Cursor | None, lake: Cursor | None) -> BinlogCheckpoint | None:
    """Return from where on the lake needs the binlog; None before the first plan."""
    if drain is None:
        return None
    return drain.checkpoint if lake is None else in_this_epoch(drain, lake)


def in_this_epoch(drain: Cursor, lake: Cursor) -> BinlogCheckpoint:
    """Return the position from which on the lake lacks changes of the drain cursor's epoch."""
    return drain.epoch_changes[-1].new_start if lake.epoch < drain.epoch and drain.epoch_changes else lake.checkpoint


def _of_earlier_epochs(windows: Sequence[StoredWindow], drain: Cursor | None, lake: Cursor | None) -> int:
    """Count the windows of earlier epochs that the lake must still merge; those after the end of their epoch do not count."""
    if drain is None or lake is None:
        return 0
    ended, here = ends(drain), Point.at(lake.epoch, lake.position)
    earlier = (window for window in windows if window.start.epoch < drain.epoch and here < window.stop)
    return sum(window.stop <= ended.get(window.start.epoch, here) for window in earlier)


def lag_seconds(
    store: ObjectStore,
    drain: Cursor | None,
    lake: Cursor | None,
    facts: ServerFacts | ServerObservation | None,
    *,
    published: bool,
) -> float | None:
    """Return the age of the oldest change that is not in the lake; see :func:`cdc_lib.status.lag.lag_of`.

    Args:
        store: where the batches are.
        drain: the drain cursor; None before the first plan.
        lake: the lake cursor; None before the first plan.
        facts: what the server says now; None when it is not asked.
        published: whether the lake has published a cut.
    """
    return _lag_at(_progress(store, drain, lake, published=published), lake, facts)


def _progress(store: ObjectStore, drain: Cursor | None, lake: Cursor | None, *, published: bool) -> LakeProgress | None:
    """Return what the lag depends on in the store; None before the first plan."""
    if drain is None or lake is None:
        return None
    complete = last_complete(store, lake.source)
    return LakeProgress(
        published=published,
        waiting=is_waiting(drain, lake),
        at_binlog_end=None,
        oldest=_oldest(store, drain, lake),
        merged=lake.event_time,
        complete=complete.at if complete is not None else None,
        began=lake.moves[0].at if lake.moves else None,
    )


def _lag_at(
    progress: LakeProgress | None, lake: Cursor | None, facts: ServerFacts | ServerObservation | None
) -> float | None:
    """Return the lag with what the server says now."""
    if progress is None or lake is None:
        return None
    if facts is not None and facts.binlog_end is not None and facts.identity.is_same_server(lake.identity):
        progress = replace(progress, at_binlog_end=lake.position == facts.binlog_end)
    return lag_of(progress, datetime.now(UTC))


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


def findings_of(source: Source) -> list[Finding]:
    """Return the findings about the server, each with a hint.

    Raises:
        SourceError: the server cannot be reached.
    """
    config, store, cut = source.config, source.store, last_cut(source.store, source.name)
    with closing(source.connect()) as connection:
        facts = read_facts(connection, config.server)
        findings = [*judge(facts), judge_clock(facts.clock, datetime.now(UTC)), *judge_prepared(connection, facts)]
        if (own := config.server.server_id) is not None:
            findings += judge_replica_id(own, facts.identity.server_id, registered_replicas(connection, facts))
        reader = InformationSchema(connection)
        found = reader.tables()
        tables = config.tables.select(found)
        shaped = [*versioned(config, reader.versioned()), *left_to_tools(config, found)]
        shaped += cascade_findings(config, ServerDefinitions.read(connection, config, store, facts, tables).cascades)
        shaped += shared_names(config, tables)
        shaped += shape_findings(config, shape_of(config, source.credentials), reader, tables)
        shaped += mode_findings(config, reader, tables, cut)
    if tables:
        findings.append(Finding("ok", f"{counted(len(tables), 'table')} captured"))
    else:
        patterns = ", ".join(config.tables.include)
        findings.append(
            Finding("error", f"no table is captured by {patterns}", "Check tables.include, and GRANT SELECT on them.")
        )
    drain, lake = source.cursor(DRAIN), source.cursor(LAKE)
    missing = list(missing_findings(source))
    outlook = look_ahead(config, source.credentials, facts, drain)
    forecast = [outlook.finding] if outlook else []
    ended = last_stopped(store, config.source)
    stopped = list(stopped_findings(ended, questions_of(store, ended)))
    foreign = [
        Finding("warning", f"{one}", f"cdc verify {config.source} {' '.join(one.tables)} --repair")
        for one in open_commits(store, config.source, drain)
    ]
    verified = last_verified(store, config.source)
    changed = changed_row_findings(config.source, last_after_merge(store, config.source), verified, cut)
    twice = daily_findings(config.source, daily_checks(store, config.source))
    known = coverages(store, config.source)
    since = lake.began_at if lake is not None else None
    covered = coverage_findings(config.source, config.verify, known, verified, cut, datetime.now(UTC), since)
    return [
        *findings,
        *forecast,
        *shaped,
        *quarantine_findings(drain),
        *missing,
        *stopped,
        *changed,
        *covered,
        *twice,
        *foreign,
        *uncommented_findings(cut),
    ]


def missing_findings(source: Source) -> Iterator[Finding]:
    """Yield a finding for a missing cursor, or for a missing batch that the lake needs next."""
    if (lost := lost_cursor(source)) is not None:
        yield Finding("error", lost.message, lost.hint)
    drain, lake, store = source.cursor(DRAIN), source.cursor(LAKE), source.store
    if (gap := gap_of(store, drain, lake)) is not None:
        yield Finding("error", gap.what, gap.hint)
    for error in lost_chunks(store, drain, lake) if drain is not None and lake is not None else ():
        yield Finding("error", error.message, error.hint)


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
