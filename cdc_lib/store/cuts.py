"""Where cuts live: one document for each merge, written once."""

from __future__ import annotations

from datetime import datetime

from cdc_lib.errors import CorruptBatch
from cdc_lib.model.merge import Cut
from cdc_lib.ports import ObjectStore
from cdc_lib.store import documents, layout


def last_cut(store: ObjectStore, source: str) -> Cut | None:
    """Return the cut at the furthest position, or None before the first.

    Keys sort as positions do. Merges of snapshot chunks may publish several cuts at one position: tables only come to those,
    and that is looked at before the time, because clocks jump.
    """
    keys = [info.key for info in store.list(layout.cuts_prefix(source))]
    furthest = [key for key in keys if place_of(key) == place_of(max(keys, key=place_of))]
    cuts = [cut for key in furthest if (cut := _load(store, key)) is not None]
    return max(cuts, key=lambda cut: (len(cut.tables), cut.at), default=None)


def cuts_since(store: ObjectStore, source: str, since: datetime) -> list[Cut]:
    """Return the cuts that were written at a time (UTC) or later, in the order of their keys."""
    keys = sorted(info.key for info in store.list(layout.cuts_prefix(source)) if info.modified >= since)
    return [cut for key in keys if (cut := _load(store, key)) is not None]


def place_of(key: str) -> str:
    """Return a key without the hash that tells the merges of one position apart."""
    return key.rpartition("-")[0]


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
