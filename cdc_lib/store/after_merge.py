"""Stores what is known of the rows that merges changed: one document of a source, which the next merge overwrites."""

from __future__ import annotations

from cdc_lib.model.changed_rows import AfterMerge
from cdc_lib.ports import ObjectStore
from cdc_lib.store import documents, layout


def last_after_merge(store: ObjectStore, source: str) -> AfterMerge | None:
    """Return what is known of changed rows; None before the first comparison."""
    return documents.find(AfterMerge, store, layout.after_merge_key(source))


def keep_after_merge(store: ObjectStore, after: AfterMerge) -> None:
    """Replace the stored document."""
    store.put(layout.after_merge_key(after.source), documents.dump(after))
