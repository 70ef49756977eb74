"""Where it is kept when the lake of a source last had everything: one small document, written over by the next plan."""

from __future__ import annotations

from datetime import datetime

from cdc_lib.model.complete import Complete
from cdc_lib.ports import ObjectStore
from cdc_lib.store import documents, layout


def last_complete(store: ObjectStore, source: str) -> datetime | None:
    """Return when the lake was last seen to have everything; None when it never was."""
    found = documents.find(Complete, store, layout.complete_key(source))
    return found.at if found is not None else None


def note_complete(store: ObjectStore, source: str, at: datetime) -> None:
    """Write that the lake had everything."""
    store.put(layout.complete_key(source), documents.dump(Complete(source, at)))
