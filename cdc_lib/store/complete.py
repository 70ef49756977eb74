"""Stores when the lake of a source last had every change: one small document, which the next plan overwrites."""

from __future__ import annotations

from datetime import datetime

from cdc_lib.model.complete import Complete
from cdc_lib.ports import ObjectStore
from cdc_lib.store import documents, layout


def last_complete(store: ObjectStore, source: str) -> Complete | None:
    """Return when the lake last had every change; None if it never had."""
    return documents.find(Complete, store, layout.complete_key(source))


def note_complete(store: ObjectStore, source: str, at: datetime, server_clock: datetime) -> None:
    """Store that the lake had every change at a time, by this machine's and by the server's clock."""
    store.put(layout.complete_key(source), documents.dump(Complete(source, at, server_clock)))
