"""Where the versions of a row come from: the event, the window or chunk that has it, and the first stored cut that has it."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from cdc_lib.config import SourceConfig
from cdc_lib.lake.routing import lake_merges
from cdc_lib.model.cursor import DRAIN
from cdc_lib.model.lake_table import ORDER
from cdc_lib.model.manifest import ROW
from cdc_lib.model.merge_plan import Cut
from cdc_lib.model.position import SNAPSHOT_ROW, Point, Position
from cdc_lib.model.table_name import TableName
from cdc_lib.model.verification import VersionCheck, checks_of_version
from cdc_lib.ports import ObjectStore
from cdc_lib.read.archive.reach import WindowSlice, tail
from cdc_lib.read.archive.versions import ArchivedVersions
from cdc_lib.store import documents, layout
from cdc_lib.store.after_merge import last_after_merge
from cdc_lib.store.cursors import ObjectCursorStore, required_cursor
from cdc_lib.store.cuts import listed_cuts, position_of
from cdc_lib.store.verification import verified_table
from cdc_lib.store.windows import stored_windows


@dataclass(frozen=True, slots=True)
class VersionOrigin:
    """Where one version comes from.

    Args:
        epoch: epoch of the position.
        position: where its event starts; of a row that was read by SELECT, the position before that.
        window: id of the window with the event; empty if it is not stored, or a SELECT read the row.
        chunk: id of the snapshot's batch that has the row; empty if it is not stored, or an event brought the row.
        merge: id of the first stored cut that has the version; empty if none is stored. Old cuts are thinned out, so an earlier merge may
            have made it.
        merged_at: when that cut was published.
        lake_snapshot: the table's snapshot in that cut.
        checks: the comparisons with the source that covered it, as far as they are stored.
    """

    epoch: int
    position: Position
    window: str = ""
    chunk: str = ""
    merge: str = ""
    merged_at: datetime | None = None
    lake_snapshot: int | None = None
    checks: tuple[VersionCheck, ...] = ()


def origins(
    found: ArchivedVersions, table: str, config: SourceConfig, store: ObjectStore, key: Sequence[str] = ()
) -> list[VersionOrigin]:
    """Return where each of a row's versions comes from, in their order.

    Args:
        found: the versions, from the newest one on.
        table: ``database.table`` at the source.
        config: the source.
        store: holds its batches and cuts.
        key: texts of the row's key, to find the row among those that were wrong.

    Raises:
        StoreError: a cursor, a cut or a comparison cannot be read.
    """
    drain = required_cursor(ObjectCursorStore(store), config.source, DRAIN)
    base = drain.position.file.rpartition(".")[0]
    places = zip(*(found.rows.column(name).to_pylist() for name in ORDER[:3]), strict=True)
    points = [Point(*place) for place in places]
    is_read = [number == SNAPSHOT_ROW for number in found.rows.column(ROW).to_pylist()]
    windows = {epoch: _windows(store, config.source, epoch) for epoch in {one.epoch for one in points}}
    cuts = _Cuts(store, config, table)
    name, lake_table = TableName.parse(table), cuts.lake_table
    verified = verified_table(store, config.source, name, lake_table)
    after = last_after_merge(store, config.source)
    changed = after.by_table.get((name, lake_table)) if after is not None else None
    made = []
    for one, next_one, was_read in zip(points, [None, *points], is_read, strict=False):
        cut = cuts.first_with(one)
        checks = checks_of_version(one, next_one, cut[0], key, verified, changed)
        position = Position(f"{base}.{one.file:06d}", one.offset)
        window = "" if was_read else _window_of(one, windows[one.epoch])
        chunk = found.chunks.get(one, "") if was_read else ""
        made.append(VersionOrigin(one.epoch, position, window, chunk, *cut, checks))
    return made


def _windows(store: ObjectStore, source: str, epoch: int) -> Sequence[WindowSlice]:
    stored = stored_windows(store, source, epoch)
    return tail(stored, max(one.stop for one in stored)) if stored else ()


def _window_of(point: Point, windows: Sequence[WindowSlice]) -> str:
    number = bisect_right(windows, point, key=lambda one: one.low) - 1
    return windows[number].window.key.split("/")[-2] if number >= 0 and point < windows[number].high else ""


class _Cuts:
    """Finds the first stored cut with a change; each is read once."""

    def __init__(self, store: ObjectStore, config: SourceConfig, table: str) -> None:
        self._store = store
        self._keys = [one.key for one in listed_cuts(store, config.source)]
        self._prefix = layout.cuts_prefix(config.source)
        self.lake_table = str(lake_merges(config, [table])[0].name)
        self._read: dict[str, Cut | None] = {}

    def first_with(self, point: Point) -> tuple[str, datetime | None, int | None]:
        """Return id, time and the table's snapshot of the first cut after a point; empty if none has the table."""
        first = bisect_right(self._keys, f"{self._prefix}{point.sortable}", key=position_of)
        for key in self._keys[first:]:
            if key not in self._read:
                self._read[key] = documents.find(Cut, self._store, key)
            if (cut := self._read[key]) is None:
                continue
            for table in cut.tables:
                if table.lake_table == self.lake_table:
                    return cut.merge_id, cut.at, table.lake_snapshot
        return "", None, None
