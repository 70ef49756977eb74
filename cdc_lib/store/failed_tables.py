"""Stores the tables that stopped in the last merge: one small document, which a successful merge removes."""

from __future__ import annotations

from cdc_lib.model.failed_table import Stopped
from cdc_lib.ports import ObjectStore
from cdc_lib.store import documents, layout


def last_stopped(store: ObjectStore, source: str) -> Stopped | None:
    """Return the tables that stopped in the last merge; None if there are none."""
    return documents.find(Stopped, store, layout.stopped_key(source))


def keep_stopped(store: ObjectStore, stopped: Stopped) -> None:
    """Replace the stored document; without tables, remove it."""
    key = layout.stopped_key(stopped.source)
    if stopped.tables:
        store.put(key, documents.dump(stopped))
    else:
        store.delete([key])
