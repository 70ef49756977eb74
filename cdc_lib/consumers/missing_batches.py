"""Rebuilds lost cursors: the drain cursor from the lake cursor, the lake cursor from the last cut.

Each begins at a position that is certainly done. Later work is drained or merged again, which changes nothing.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

from cdc_lib.errors import ConfigError
from cdc_lib.model.cursor import DRAIN, LAKE, Cursor
from cdc_lib.ports import CursorStore, ObjectStore
from cdc_lib.store.cuts import last_cut
from cdc_lib.store.manifests import first_chunks_of
from cdc_lib.store.windows import stored_windows


def drain_of_lake(store: ObjectStore, cursors: CursorStore, source: str) -> Cursor:
    """Return a drain cursor that begins at the lake cursor.

    If batches of later epochs are stored, its epoch is after those, so that no order key is used twice.

    Raises:
        ConfigError: there is no lake cursor, or the drain cursor exists.
    """
    lake = cursors.load(source, LAKE)
    if lake is None or cursors.load(source, DRAIN) is not None:
        raise _not_lost(source, DRAIN, LAKE)
    # What the lake has in flight lies before where it continues.
    at = lake.in_flight[-1].stop if lake.in_flight else lake.position
    merged = {task.id: task for task in (*lake.snapshots, *lake.in_flight_snapshots)}
    made = replace(
        lake, consumer=DRAIN, generation=0, position=at, in_flight=(), in_flight_snapshots=(), prepared=(), held=(), catching_up=(),
        snapshots=tuple(merged[name] for name in sorted(merged)), writer="",
    )  # fmt: skip
    newest = max((one.start.epoch for one in stored_windows(store, source)), default=made.epoch)
    why, now = "the drain cursor was lost", datetime.now(UTC)
    while lake.epoch < newest and made.epoch <= newest:
        made = made.with_new_epoch(made.checkpoint, "rewind", at=now, by="cursor restore", why=why)
    return made


def lake_of_cut(store: ObjectStore, cursors: CursorStore, source: str) -> Cursor:
    """Return a lake cursor that begins at the last cut.

    Snapshots whose chunks are still stored are merged again, which changes nothing; the lake has all others.

    Raises:
        ConfigError: there is no cut or no drain cursor, or the lake cursor exists.
    """
    drain, cut = cursors.load(source, DRAIN), last_cut(store, source)
    if drain is None or cut is None or cursors.load(source, LAKE) is not None:
        raise _not_lost(source, LAKE, "last cut")
    earlier_changes = tuple(one for one in drain.epoch_changes if one.epoch <= cut.epoch)
    left = next((one.previous_end for one in drain.epoch_changes if one.epoch == cut.epoch + 1), drain.checkpoint)
    merged = tuple(task for task in drain.snapshots if not first_chunks_of(store, task))
    return replace(
        drain, consumer=LAKE, generation=0, epoch=cut.epoch, identity=left.identity, position=cut.position, in_flight=(), held=cut.held,
        snapshots=merged, event_time=cut.event_time, writer="", epoch_changes=earlier_changes, quarantine=drain.quarantine, gtid_set="",
        gtids_known=False, file_times={},
    )  # fmt: skip


def _not_lost(source: str, consumer: str, other: str) -> ConfigError:
    return ConfigError(
        f"the {consumer} cursor cannot be made again: it is there, or the {other} is not",
        hint=f"cdc cursor show {source} lists the cursors; cdc cursor restore --file FILE takes an exported one.",
        source=source,
    )
