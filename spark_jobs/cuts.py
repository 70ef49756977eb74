"""Cuts: the documents that say which snapshots of all lake tables belong together."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from cdc_lib.errors import CorruptBatch
from cdc_lib.merge.plan import Batch
from cdc_lib.model.merge import Cut, MergePlan, TableCut
from cdc_lib.ports import ObjectStore
from cdc_lib.store import documents, layout

LOOKED_AT = 3
"""Clocks of stores are coarse: so many of the newest cuts are compared by their positions."""


def last_cut(store: ObjectStore, source: str) -> Cut | None:
    """Return the cut at the furthest position, or None before the first."""
    newest = sorted(store.list(layout.cuts_prefix(source)), key=lambda info: info.modified)[-LOOKED_AT:]
    cuts = [cut for info in newest if (cut := _load(store, info.key)) is not None]
    return max(cuts, key=lambda cut: (cut.epoch, cut.position.file_number, cut.position.offset, cut.at), default=None)


def make_cut(plan: MergePlan, batches: Sequence[Batch], tables: Sequence[TableCut], before: Cut | None) -> Cut:
    """Return the cut that completes a plan.

    Args:
        plan: the plan.
        batches: its batches.
        tables: all lake tables of the source as they stand now.
        before: the cut before.
    """
    times = [batch.manifest.last_time for batch in batches if batch.manifest.window is not None]
    if before is not None:
        times.append(before.event_time)
    return Cut(
        source=plan.source,
        merge_id=plan.merge_id,
        epoch=plan.epoch,
        position=plan.stop,
        event_time=max((time for time in times if time is not None), default=None),
        at=datetime.now(UTC),
        tables=tuple(sorted(tables, key=lambda cut: cut.table)),
    )


def publish(store: ObjectStore, cut: Cut) -> Cut:
    """Write the cut unless this merge published one before; return the one that stands."""
    key = layout.cut_key(cut.source, cut.merge_id)
    if store.put_if_absent(key, documents.dump(cut)):
        return cut
    stands = _load(store, key)
    if stands is None:
        raise CorruptBatch("the cut was there a moment ago and is gone", hint="Merge again.", key=key)
    return stands


def _load(store: ObjectStore, key: str) -> Cut | None:
    found = store.get(key)
    return documents.load(Cut, found.data, key) if found is not None else None
