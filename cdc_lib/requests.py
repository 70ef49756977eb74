"""What a person asks of a source between two runs: tables read again, decisions, and cursors that are moved by hand.

Each request is recorded in a cursor or in the store, and the next run does it. A request that is refused has changed nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from functools import partial

from cdc_lib.config.start import StartAt
from cdc_lib.errors import ConfigError
from cdc_lib.model.cursor import DRAIN, LAKE, Cursor
from cdc_lib.model.missing_transactions import MissingTransactions
from cdc_lib.model.quarantine import QuarantineRecord
from cdc_lib.model.results import LocatedPosition, ResnapshotPreview
from cdc_lib.model.table_name import TableName
from cdc_lib.model.window import SnapshotTask
from cdc_lib.plan.gaps import planned_cursor
from cdc_lib.plan.start import Starter
from cdc_lib.snapshot.partial import PartialRequest, PartialSnapshots
from cdc_lib.snapshot.request import SnapshotRequests
from cdc_lib.source import Source
from cdc_lib.steps.ack import over_durable

# --- tables


def resume_table(source: Source, table: str, *, by: str) -> QuarantineRecord:
    """Resume a quarantined table with a new snapshot; returns its record.

    Raises:
        ConfigError: the table is not quarantined, or cannot be read by SELECT.
        SourceError: the server cannot be reached or is another one.
        CursorMoved: another process moved the cursor at the same time.
    """
    name, cursor = TableName.parse(table), planned_cursor(source, DRAIN)
    requests = SnapshotRequests(source.at_cursor(cursor))
    moved = source.cursors.swap(cursor, requests.resume_quarantined(cursor, name, at=_now(), by=by))
    record = moved.quarantine_record(name)
    if record is None:
        raise AssertionError(table)
    return record


def preview_resnapshot(source: Source, tables: Sequence[str]) -> tuple[ResnapshotPreview, ...]:
    """Return what a new snapshot of the tables would do, by names or patterns; nothing is changed.

    Raises:
        ConfigError: a table is not captured, or cannot be read or merged.
        SourceError: the server cannot be reached.
    """
    cursor = planned_cursor(source, DRAIN)
    return SnapshotRequests(source.at_cursor(cursor)).preview(cursor, tables)


def resnapshot(
    source: Source, tables: Sequence[str], *, by: str, why: str, replaces: bool = False
) -> tuple[QuarantineRecord, ...]:
    """Request new snapshots of tables, by names or patterns; the lake merges none of their changes until it has these.

    With ``replaces`` the lake tables begin again with them, without the history that they keep.

    Raises:
        ConfigError: a table is not captured, or cannot be read or merged; nothing was changed.
        SourceError: the server cannot be reached or is another one.
        CursorMoved: another process moved the cursor at the same time.
    """
    cursor, lake = planned_cursor(source, DRAIN), source.cursor(LAKE)
    requests = SnapshotRequests(source.at_cursor(cursor))
    names = [one.table for one in requests.preview(cursor, tables)]
    requested = requests.resnapshot(cursor, lake, names, why=why, at=_now(), by=by, replaces=replaces)
    last = {one.table: one for one in source.cursors.swap(cursor, requested).quarantine}
    return tuple(last[name] for name in names if name in last)


def snapshot_rows(source: Source, wanted: PartialRequest, *, by: str) -> SnapshotTask:
    """Request a partial snapshot, while merging of the table continues; returns the task to be drained.

    Raises:
        ConfigError: there are no such rows, or the table cannot be read in parts; nothing was changed.
        SourceError: the server cannot be reached or is another one.
        CursorMoved: another process moved the cursor at the same time.
    """
    cursor, lake = planned_cursor(source, DRAIN), source.cursor(LAKE)
    parts = PartialSnapshots(source.at_cursor(cursor))
    moved = source.cursors.swap(cursor, parts.requested(cursor, lake, wanted, at=_now(), by=by))
    (task,) = set(moved.snapshots) - set(cursor.snapshots)
    return task


def cancel_snapshot(source: Source, table: str) -> None:
    """Cancel the partial snapshot of a table: it is neither read further nor merged.

    Raises:
        ConfigError: there is no unmerged partial snapshot.
        CursorMoved: another process moved the cursor at the same time.
    """
    cursor, lake = planned_cursor(source, DRAIN), source.cursor(LAKE)
    source.cursors.swap(cursor, PartialSnapshots(source).cancelled(cursor, lake, TableName.parse(table)))


# --- cursors


def rollback(source: Source, *, by: str, why: str) -> Cursor:
    """Drop the merge that the lake cursor has in flight, and return the cursor; the next plan_merge plans again.

    The tables' markers record what such a merge has already committed, or commits while it still runs.

    Raises:
        ConfigError: nothing is in flight.
        CursorMoved: there is no cursor, or another process moved it at the same time.
    """
    lake = planned_cursor(source, LAKE)
    if not lake.is_merging:
        raise ConfigError(
            "no merge is in flight",
            hint="There is nothing to forget: cdc step merge plans again.",
            source=lake.source,
        )
    return source.cursors.swap(lake, lake.rolled_back(at=_now(), by=by, why=why))


def locate(source: Source, start: StartAt) -> LocatedPosition:
    """Find a position at the server, or at the standby that takes over; no cursor moves.

    Raises:
        SourceError: the server does not have it.
    """
    return Starter.of(source.at_reachable()).locate(start, source.cursor(DRAIN))


def rewind(source: Source, start: StartAt | None, *, by: str, why: str) -> Cursor:
    """Move the drain cursor to a position at the server, in a new epoch, and return it; the lake follows.

    If the server cannot be reached, the position is at the standby at which the next plan would continue.

    Args:
        source: the source.
        start: the position; None for the one before the last failover or rewind.
        by: who moves it.
        why: the reason; both are stored in the cursor.

    Raises:
        CursorMoved: there is no cursor, or another process moved it at the same time.
        ConfigError: there is nothing to go back to.
        SourceError: the server does not have the position.
    """
    cursor = planned_cursor(source, DRAIN)
    starter = Starter.of(source.at_reachable())
    checkpoint = starter.find(starter.previous_position(cursor) if start is None else start)
    # What is taken back before anything of it counted leaves nothing; else rows would stay half read again.
    untouched = start is None and cursor.position == cursor.epoch_changes[-1].new_start.position
    durable = cursor if untouched else over_durable(source, cursor, by=by)
    return source.cursors.swap(cursor, durable.with_new_epoch(checkpoint, "rewind", at=_now(), by=by, why=why))


def fail_over(source: Source, host: str, port: int, *, by: str, missing: str = "") -> Cursor:
    """Continue at another server of the source, and return the drain cursor.

    Args:
        source: the source.
        host: of the server.
        port: of the server.
        by: who requests it.
        missing: GTIDs of transactions that were read and that the server may lack.

    Raises:
        TransactionsMissing: the server never had other transactions that were read.
        ConfigError: the source file does not name the server.
        SourceError: it cannot be reached, or the cursor cannot continue there.
    """
    if (host, port) not in source.config.addresses:
        known = ", ".join(f"{host}:{port}" for host, port in source.config.addresses)
        raise ConfigError(
            f"{host}:{port} is not a server of {source.name}",
            hint=f"They are {known}; add it under standbys: in the source file.",
        )
    cursor = planned_cursor(source, DRAIN)
    starter = Starter.of(source.at((host, port)))
    accepted = MissingTransactions(str(starter.facts.identity), missing) if missing else None
    found = starter.continued(cursor, partial(over_durable, source, by=by), by, accepted)
    return source.cursors.swap(cursor, found) if found != cursor else cursor


def _now() -> datetime:
    return datetime.now(UTC)
