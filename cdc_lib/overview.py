"""What there is to see of a source: where it stands, and what was looked at on its server."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

from cdc_lib.config import Credentials, SourceConfig
from cdc_lib.consumers.cursors import ends
from cdc_lib.consumers.states import states
from cdc_lib.draining import Drainer
from cdc_lib.errors import SourceError, SourceUnavailable
from cdc_lib.model.aside import standing
from cdc_lib.model.cursor import DRAIN, LAKE, Cursor
from cdc_lib.model.lake import Point
from cdc_lib.model.place import Place
from cdc_lib.model.position import Position
from cdc_lib.model.results import Gauges, Status
from cdc_lib.model.stopped import Stopped
from cdc_lib.modes import mode_findings
from cdc_lib.ports import CursorStore
from cdc_lib.quarantine import findings as quarantine_findings
from cdc_lib.runways import look_ahead
from cdc_lib.shaping import findings as shape_findings
from cdc_lib.shaping import left_to_tools, versioned
from cdc_lib.source.connect import connect
from cdc_lib.source.facts import ServerFacts, facts_of, read_facts
from cdc_lib.source.preflight import Finding, judge
from cdc_lib.source.prepared import judge_prepared
from cdc_lib.source.schema import InformationSchema
from cdc_lib.starting import address_of
from cdc_lib.store.cuts import last_cut
from cdc_lib.store.stopped import last_stopped
from cdc_lib.store.verified import last_verified
from cdc_lib.store.windows import StoredWindow, stored_windows
from cdc_lib.window.plan import bytes_between


def status_of(drainer: Drainer, cursors: CursorStore) -> Status:
    """Return where a source stands; a server that cannot be reached leaves head and lag open."""
    config, store = drainer.config, drainer.store
    drain, lake = cursors.load(config.source, DRAIN), cursors.load(config.source, LAKE)
    windows = stored_windows(store, config.source)
    batches = tuple(filter(None, (drainer.manifest(window.key) for window in windows[-5:])))
    here = config.at(*address_of(config, drain))
    facts = _facts_if_reachable(here, drainer.credentials)
    outlook = look_ahead(here, drainer.credentials, facts, drain) if facts else None
    head, pending = _head_and_pending(facts, drain, lake)
    consumers = tuple(states(windows, cursors, config.source, config.store.keep_batches_for))
    merged = {task.snapshot_id for task in lake.snapshots if task.chunks} if lake else set()
    aside = standing(drain.aside, merged) if drain else ()
    cut = last_cut(store, config.source)
    lag = _lag(drain, lake, head)
    runway, warning = (outlook.runway, outlook.warning) if outlook else (None, "")
    older = _of_earlier_epochs(windows, drain, lake)
    verified = tuple(last_verified(store, config.source))
    return Status(
        config.source, drain, lake, head, lag, pending, batches, cut, consumers, aside, runway, warning, older, verified
    )


def gauges_of(drainer: Drainer, cursors: CursorStore) -> Gauges:
    """Return the figures of a source that are watched.

    For those who did something else: a server that cannot be asked is told of, and is no error.
    """
    drain, lake = cursors.load(drainer.config.source, DRAIN), cursors.load(drainer.config.source, LAKE)
    here = drainer.config.at(*address_of(drainer.config, drain))
    try:
        facts = facts_of(here.server, drainer.credentials)
        outlook = look_ahead(here, drainer.credentials, facts, drain)
    except SourceError as error:
        return Gauges(None, None, f"nobody can say when the server purges what is drained next: {error}")
    left = None if outlook is None else 0.0 if outlook.runway.purged else outlook.runway.shortest
    hours = None if left is None else left / 3600
    return Gauges(hours, _lag(drain, lake, facts.head), outlook.warning if outlook else "")


def _facts_if_reachable(config: SourceConfig, credentials: Credentials) -> ServerFacts | None:
    try:
        return facts_of(config.server, credentials)
    except SourceUnavailable:
        # Status must also be seen while the server is down; a head of None says so.
        return None


def _head_and_pending(
    facts: ServerFacts | None, drain: Cursor | None, lake: Cursor | None
) -> tuple[Position | None, int | None]:
    if facts is None:
        return None, None
    here = None if drain is None or lake is None else _in_this_epoch(drain, lake)
    if facts.head is None or here is None or not facts.identity.is_same_server(here.identity):
        return facts.head, None
    return facts.head, bytes_between(here.position, facts.files, facts.head)


def _in_this_epoch(drain: Cursor, lake: Cursor) -> Place:
    """Return from where on the lake lacks what the epoch of the drain cursor has."""
    return drain.switches[-1].began if lake.epoch < drain.epoch and drain.switches else lake.place


def _of_earlier_epochs(windows: Sequence[StoredWindow], drain: Cursor | None, lake: Cursor | None) -> int:
    """Count the windows of earlier epochs that the lake does not have; those behind the end of their epoch do not count."""
    if drain is None or lake is None:
        return 0
    ended, here = ends(drain), Point.at(lake.epoch, lake.position)
    earlier = (window for window in windows if window.start.epoch < drain.epoch and here < window.stop)
    return sum(window.stop <= ended.get(window.start.epoch, here) for window in earlier)


def _lag(drain: Cursor | None, lake: Cursor | None, head: Position | None) -> float | None:
    if drain is None or lake is None or head is None:
        return None
    if (lake.epoch, lake.position) == (drain.epoch, head):
        return 0.0
    since = lake.event_time or (lake.moves[0].at if lake.moves else None)
    return None if since is None else max(0.0, (datetime.now(UTC) - since).total_seconds())


def findings_of(drainer: Drainer, cursors: CursorStore) -> list[Finding]:
    """Return what was looked at on the server, each with what mends it.

    Raises:
        SourceError: the server cannot be reached.
    """
    config = drainer.config
    connection = connect(config.server, drainer.credentials)
    try:
        facts = read_facts(connection, config.server)
        findings = [*judge(facts), *judge_prepared(connection, facts)]
        reader = InformationSchema(connection)
        found = reader.tables()
        tables = [t for t in found if config.tables.captures(*t)]
        shaped = [*versioned(config, reader.versioned()), *left_to_tools(config, found)]
        shaped += shape_findings(config, drainer.shape, reader, tables)
        shaped += mode_findings(config, reader, tables, last_cut(drainer.store, config.source))
    finally:
        connection.close()
    if tables:
        findings.append(Finding("ok", f"{len(tables)} tables are captured"))
    else:
        patterns = ", ".join(config.tables.include)
        findings.append(
            Finding("error", f"no table is captured by {patterns}", "Check tables.include, and GRANT SELECT on them.")
        )
    drain = cursors.load(config.source, DRAIN)
    outlook = look_ahead(config, drainer.credentials, facts, drain)
    runway = [outlook.finding] if outlook else []
    stopped = list(stopped_findings(last_stopped(drainer.store, config.source)))
    return [*findings, *runway, *shaped, *quarantine_findings(drain), *stopped]


def stopped_findings(stopped: Stopped | None) -> Iterator[Finding]:
    """Yield the tables that the last merge could not merge, each with what mends it."""
    for one in stopped.tables if stopped is not None else ():
        tables = ", ".join(one.tables)
        mend = one.mend.replace("SOURCE", stopped.source if stopped else "")
        yield Finding("error", f"{tables} stopped in front of {one.lake_table}: {one.what}", mend)
