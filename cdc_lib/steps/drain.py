"""Drains one unit: a window of the binlog, or a snapshot of a table."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial

from cdc_lib.binlog.statement_reader import Dated
from cdc_lib.compile_kernels import compile_once
from cdc_lib.config.shape import has_every_rule
from cdc_lib.drain.exclusions import Exclusions, hiding_of
from cdc_lib.drain.window import Drainer
from cdc_lib.errors import CdcError, CursorMoved, DecodeError
from cdc_lib.model.cursor import Cursor
from cdc_lib.model.observation import DrainObservation, TablesObservation
from cdc_lib.model.position import Point
from cdc_lib.model.results import DrainResult
from cdc_lib.model.window import DrainUnit, Window
from cdc_lib.mysql.server_facts import ServerFacts, read_charsets
from cdc_lib.quarantine.masks_lost import MaskGuard
from cdc_lib.schema_history.versions import Histories
from cdc_lib.snapshot.reader import SnapshotReader
from cdc_lib.source import Source
from cdc_lib.store import layout
from cdc_lib.store.manifests import find_manifest
from cdc_lib.store.observations import last_tables, note_drain


def seen_by_plans(source: Source) -> TablesObservation | None:
    """Return when plans found tables defined, for snapshots of a source that hides columns."""
    return last_tables(source.store, source.name) if hiding_of(source.config) is not None else None


def drain(
    source: Source, unit: DrainUnit, cursor: Cursor, until: datetime | None, seen: TablesObservation | None
) -> DrainResult:
    """Read one unit and write its batches; existing batches are not written again.

    An acknowledged unit that is no longer stored was garbage collected and is not read again.

    Args:
        source: at the server of the drain cursor.
        unit: in flight.
        cursor: the drain cursor, loaded after ``seen``: what a later plan has seen is decided in it.
        until: when reading the snapshot of a whole table ends (UTC), after at least one chunk; a later call goes on.
            None: after its last chunk.
        seen: when plans found tables defined; see :class:`cdc_lib.quarantine.masks_lost.MaskGuard`.

    Raises:
        DecodeError: something in the binlog cannot be decoded.
        SourceError: the server cannot be reached, or is another one.
        StoreError: the batch cannot be written.
    """
    if unit.epoch != cursor.epoch:
        raise CursorMoved(
            f"the unit belongs to epoch {unit.epoch}, and the cursor is in epoch {cursor.epoch}",
            hint="Another server took over, or somebody moved the cursor: plan again.",
            source=unit.source,
            unit=unit.id,
        )
    if _is_collected(source, unit, cursor):
        return DrainResult(unit.id, batches=0, rows=0, bytes=0, events=0, seconds=0.0)
    compile_once()
    try:
        result = _read(source, unit, cursor, until, seen)
    except CdcError as error:
        error.fill(source=source.name)
        if isinstance(error, DecodeError):
            error.effect = "Nothing was acknowledged."
        raise
    if result.batches:
        now = datetime.now(UTC)
        note_drain(source.store, DrainObservation(unit.source, now, unit.id, result.seconds, result.rows, result.bytes))
    return result


def _read(
    source: Source, unit: DrainUnit, cursor: Cursor, until: datetime | None, seen: TablesObservation | None
) -> DrainResult:
    source = source.with_text_keys(cursor)
    if isinstance(unit, Window):
        earlier = [window for window in cursor.in_flight if window.stop <= unit.start]
        excluded = Exclusions.of(cursor, unit)
        drainer = Drainer(source, known=cursor.versions)
        before = cursor.gtids_before(unit)
        return drainer.window(unit, cursor.identity, earlier, excluded, cursor.file_times, before)
    # All tables wait for a part: it is read to its end.
    until = until if unit.selection is None else None
    hiding, reader = hiding_of(source.config), SnapshotReader(source)
    if hiding is not None and not has_every_rule(source.config, *unit.name.pair):
        guard = MaskGuard(source, hiding, unit.name, cursor, seen, partial(_statements, source, cursor))
        reader = replace(reader, mask_lost=guard.lost)
    return reader.read(unit, cursor.identity, until)


def _statements(source: Source, cursor: Cursor, facts: ServerFacts) -> Sequence[Dated]:
    """Return the statements from a cursor to the end of the binlog that define something."""
    with closing(source.connect()) as connection:
        charsets = read_charsets(connection)
    histories = Histories(source.config, source.credentials, source.store, cursor.epoch, facts, charsets, {})
    return histories.statements(cursor.position, facts.end)


def _is_collected(source: Source, unit: DrainUnit, cursor: Cursor) -> bool:
    """Whether a unit's batch was acknowledged and garbage collected, or the unit is a dropped snapshot."""
    if isinstance(unit, Window):
        acked = Point.at(unit.epoch, unit.stop) <= Point.at(cursor.epoch, cursor.position)
        return acked and unit.start < unit.stop and find_manifest(source.store, layout.manifest_key(unit)) is None
    # Fields, and not ids, are compared: of many snapshots each asks this of all.
    whole = unit.snapshot_id, unit.database, unit.table
    tasks = (task for task in cursor.snapshots if task.complete)
    known = next((one for one in tasks if (one.snapshot_id, one.database, one.table) == whole), None)
    if known is None or known.cancelled:
        return known is not None
    return find_manifest(source.store, layout.chunk_manifest_key(unit, 0)) is None
