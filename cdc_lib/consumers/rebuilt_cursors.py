"""Rebuilds lost cursors: the drain cursor from the lake cursor, the lake cursor from the last cut, both from the cut and the batches.

Each begins at a position that is certainly done. Later work is drained or merged again, which changes nothing. A table of which what
is stored does not show that its rows are complete gets a new snapshot.
"""

from __future__ import annotations

import secrets
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from cdc_lib.errors import ConfigError
from cdc_lib.model.cursor import DRAIN, LAKE, Cursor
from cdc_lib.model.manifest import Manifest
from cdc_lib.model.merge_plan import Cut, CutOrigin
from cdc_lib.model.position import Point, Position
from cdc_lib.model.quarantine import lagging_tables
from cdc_lib.model.table_name import TableName
from cdc_lib.model.window import SnapshotTask, requested_at
from cdc_lib.plan.ack import over_window, used_twice
from cdc_lib.quarantine.resnapshot import ResnapshotRequest
from cdc_lib.quarantine.tables import Quarantine
from cdc_lib.source import Source
from cdc_lib.store import layout
from cdc_lib.store.cuts import last_cut
from cdc_lib.store.manifests import find_manifest, first_chunks_of, load_manifest
from cdc_lib.store.windows import chained, stored_windows

_WHY = "the cursors were lost"


@dataclass(frozen=True, slots=True)
class Rebuilding:
    """Rebuilds the lost cursors of one source.

    Args:
        source: the source.
        at: now (UTC).
        by: who rebuilds.
    """

    source: Source
    at: datetime
    by: str

    def rebuilt(self, consumer: str | None = None) -> list[Cursor]:
        """Return the lost ones of the drain and the lake cursor.

        Args:
            consumer: the one that is lost; None for all that are.

        Raises:
            ConfigError: none is lost, both are and one is named, or what is stored does not show where the source was.
        """
        source = self.source.name
        drain, lake = self.source.cursors.load(source, DRAIN), self.source.cursors.load(source, LAKE)
        lost = [name for name, held in ((DRAIN, drain), (LAKE, lake)) if held is None]
        if not lost or consumer not in (None, *lost):
            raise ConfigError(
                f"the {consumer or 'drain or lake'} cursor is not lost",
                hint=f"cdc cursor show {source} lists the cursors; cdc cursor restore --file FILE takes an exported one.",
                source=source,
            )
        if consumer is not None and len(lost) > 1:
            raise ConfigError(
                "the drain cursor and the lake cursor are both lost",
                hint=f"cdc cursor restore {source} --rebuild makes both again.",
                source=source,
            )
        cut = last_cut(self.source.store, source)
        if drain is not None:
            return [self._lake_of_drain(drain, cut)]
        if lake is not None:
            return [self._drain(lake, cut, ())]
        made, unsure = self._lake_alone(cut)
        return [made, self._drain(made, cut, unsure)]

    def _lake_of_drain(self, drain: Cursor, cut: Cut | None) -> Cursor:
        """Return a lake cursor that begins at the last cut.

        Snapshots whose chunks are still stored are merged again, which changes nothing; the lake has all others.
        """
        if cut is None:
            raise self._unknown()
        earlier_changes = tuple(one for one in drain.epoch_changes if one.epoch <= cut.epoch)
        left = next((one.previous_end for one in drain.epoch_changes if one.epoch == cut.epoch + 1), drain.checkpoint)
        merged = tuple(task for task in drain.snapshots if not first_chunks_of(self.source.store, task))
        return replace(
            drain, consumer=LAKE, generation=0, epoch=cut.epoch, identity=left.identity, position=cut.position, in_flight=(), held=cut.held,
            snapshots=merged, event_time=cut.event_time, writer="", epoch_changes=earlier_changes, quarantine=drain.quarantine, gtid_set="",
            gtids_known=False, file_times={},
        )  # fmt: skip

    def _lake_alone(self, cut: Cut | None) -> tuple[Cursor, Collection[TableName]]:
        """Return a lake cursor without a drain cursor, at the last cut, or at the oldest batch before the first one.

        Returns:
            It, and the tables that need new snapshots.
        """
        windows = stored_windows(self.source.store, self.source.name)
        oldest = next((one for one in windows if cut is None or one.start.epoch == cut.epoch), None)
        manifest = load_manifest(self.source.store, oldest.key) if oldest is not None else None
        origin = cut.origin if cut is not None else None
        if origin is None and manifest is not None:
            origin = CutOrigin(manifest.identity, secrets.token_hex(8))
        if origin is not None and cut is None and manifest is not None and manifest.window is not None:
            return self._lake_at(manifest.epoch, manifest.window.start, origin), ()
        if origin is None or cut is None:
            raise self._unknown()
        made = self._lake_at(cut.epoch, cut.position, origin)
        unsure = self._unsure(cut)
        # A task without chunks: the lake has these tables, so that none is read again as a new one.
        known = {one.table for one in cut.tables}.difference(unsure)
        id_ = Point.at(cut.epoch, cut.position).sortable
        made = made.with_snapshots(SnapshotTask(cut.source, cut.epoch, id_, *one.pair, complete=True) for one in known)
        made = replace(
            made, event_time=cut.event_time, gtid_set=cut.gtid_set, gtids_known=bool(cut.gtid_set), held=cut.held
        )
        return self._with_last(made), unsure

    def _lake_at(self, epoch: int, position: Position, origin: CutOrigin) -> Cursor:
        source = self.source.name
        return Cursor(source, LAKE, 0, epoch, origin.identity, position, source_uuid=origin.source_uuid)

    def _with_last(self, lake: Cursor) -> Cursor:
        """Return a cursor with the last transaction before its position, if the window with it is stored."""
        here, windows = Point.at(lake.epoch, lake.position), stored_windows(self.source.store, lake.source, lake.epoch)
        for window in (one for one in windows if one.stop == here):
            if (manifest := find_manifest(self.source.store, window.key)) is not None:
                return replace(lake, last=manifest.last_commit, last_transaction=manifest.last_transaction)
        return lake

    def _unsure(self, cut: Cut) -> Collection[TableName]:
        """Return the tables of which it is not known that the cut and the batches after it have all changes."""
        tables = {one.table for one in cut.tables}
        # Of an older release; or a merge of a later epoch may have begun, whose batches are drained again in another one.
        if cut.origin is None or self._newest_epoch(cut.epoch) > cut.epoch:
            return tables
        held = {one.table: one for one in cut.held}
        lagging = {one.table for one in cut.tables if one.as_of is not None and one.table not in held}
        waiting = {table for table, one in held.items() if one.stopped is None}
        return {*cut.origin.lagging, *lagging, *waiting, *self._read_since(cut, cut.origin.snapshots)}

    def _read_since(self, cut: Cut, merged: Collection[str]) -> Iterator[TableName]:
        """Yield the tables with chunks of snapshots that were requested after the cut and are not merged: it is not known why."""
        here = Point.at(cut.epoch, cut.position)
        for id_ in sorted(self._snapshots() - {*merged}):
            if requested_at(id_) < here:
                continue
            for info in self.source.store.list(f"{layout.snapshots_prefix(cut.source)}{id_}/"):
                manifest = (
                    find_manifest(self.source.store, info.key) if info.key.endswith(f"/{layout.MANIFEST}") else None
                )
                if manifest is not None and manifest.chunk is not None and manifest.chunk.number == 0:
                    yield manifest.chunk.table

    def _snapshots(self) -> set[str]:
        """Return the ids of the snapshots with stored chunks."""
        keys = (info.key for info in self.source.store.list(layout.snapshots_prefix(self.source.name)))
        return {*filter(None, map(layout.snapshot_of, keys))}

    def _drain(self, lake: Cursor, cut: Cut | None, unsure: Collection[TableName]) -> Cursor:
        """Return a drain cursor that begins at the lake cursor, and is moved over the windows that are stored after it.

        If batches of later epochs are stored, it stays there in an epoch after those, so that no order key is used twice.

        Args:
            lake: the lake cursor.
            cut: the last cut.
            unsure: tables that need new snapshots.
        """
        # What the lake has in flight lies before where it continues.
        at = lake.in_flight[-1].stop if lake.in_flight else lake.position
        merged = {task.id: task for task in (*lake.snapshots, *lake.in_flight_snapshots)}
        text_keys = {*lake.text_keys, *(cut.origin.text_keys if cut is not None and cut.origin is not None else ())}
        made = replace(
            lake, consumer=DRAIN, generation=0, position=at, in_flight=(), in_flight_snapshots=(), prepared=(), held=(), catching_up=(),
            snapshots=tuple(merged[name] for name in sorted(merged)), writer="", text_keys=tuple(sorted(text_keys)),
        )  # fmt: skip
        quarantine = Quarantine(self.source)
        if (newest := self._newest_epoch(lake.epoch)) > lake.epoch:
            while made.epoch <= newest:
                made = made.with_new_epoch(made.checkpoint, "rewind", at=self.at, by=self.by, why=_WHY)
        elif not lake.in_flight:
            made, manifests = self._over_stored(made)
            made = quarantine.recorded(made, lake, manifests, at=self.at, by=self.by)
        lagging = lagging_tables(lake.quarantine, {task.snapshot_id for task in merged.values() if task.chunks})
        again = sorted({*unsure, *(one.table for one in lagging)})
        return quarantine.with_new_snapshots(made, lake, again, ResnapshotRequest(_WHY, self.at, self.by))

    def _over_stored(self, drain: Cursor) -> tuple[Cursor, Sequence[Manifest]]:
        """Return a drain cursor moved over the windows that are stored from where it is, and their manifests."""
        here, manifests = Point.at(drain.epoch, drain.position), []
        windows = stored_windows(self.source.store, drain.source, drain.epoch)
        end = max((one.stop for one in windows), default=here)
        for stored in chained(windows, here, end).windows if here < end else ():
            manifest = load_manifest(self.source.store, stored.key)
            if manifest.window is None or used_twice(drain, manifest):
                break
            drain = over_window(drain, manifest.window, manifest, at=self.at, by=self.by)
            manifests.append(manifest)
        return drain, manifests

    def _newest_epoch(self, known: int) -> int:
        """Return the newest epoch of the stored batches, at least the known one."""
        windows = (one.start.epoch for one in stored_windows(self.source.store, self.source.name))
        return max(known, *windows, *(requested_at(one).epoch for one in self._snapshots()))

    def _unknown(self) -> ConfigError:
        source = self.source.name
        return ConfigError(
            "the cursors cannot be made again: no cut and no window is stored that shows where the source was",
            hint=f"Let the source begin under a new name, with new snapshots of all tables: move {source}.yaml to a new name in the folder of "
            "the sources, and cdc run that name. cdc lake drop removes lake tables that are in its way.",
            source=source,
        )
