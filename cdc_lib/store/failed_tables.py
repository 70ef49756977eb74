"""Where the tables are kept that stopped in the last merge: one small document, which goes when a merge ends well."""

from __future__ import annotations

from cdc_lib.model.failed_table import Stopped
from cdc_lib.ports import ObjectStore
from cdc_lib.store import documents, layout


def last_stopped(store: ObjectStore, source: str) -> Stopped | None:
    """Return what stopped in the last merge; None when nothing did."""
    return documents.find(Stopped, store, layout.stopped_key(source))


def keep_stopped(store: ObjectStore, stopped: Stopped) -> None:
    """Write it in the place of what stood there; without a table, remove that."""
    key = layout.stopped_key(stopped.source)
    if stopped.tables:
        store.put(key, documents.dump(stopped))
    else:
        store.delete([key])
