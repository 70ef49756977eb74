"""Where cuts live: one document for each merge, written once."""

from __future__ import annotations

from cdc_lib.errors import CorruptBatch
from cdc_lib.model.merge import Cut
from cdc_lib.ports import ObjectStore
from cdc_lib.store import documents, layout

LOOKED_AT = 3
"""Clocks of stores are coarse: so many of the newest cuts are compared by their positions."""


def last_cut(store: ObjectStore, source: str) -> Cut | None:
    """Return the cut at the furthest position, or None before the first."""
    newest = sorted(store.list(layout.cuts_prefix(source)), key=lambda info: info.modified)[-LOOKED_AT:]
    cuts = [cut for info in newest if (cut := _load(store, info.key)) is not None]
    return max(cuts, key=lambda cut: (cut.epoch, cut.position.file_number, cut.position.offset, cut.at), default=None)


def cut_of(store: ObjectStore, source: str, merge_id: str) -> Cut | None:
    """Return the cut that a merge published, or None."""
    return _load(store, layout.cut_key(source, merge_id))


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
