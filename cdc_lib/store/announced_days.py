"""Stores up to which day the days of a source are announced: one small document, which only goes on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import date

from cdc_lib.errors import CorruptBatch, StoreUnavailable
from cdc_lib.model.sealed_days import AnnouncedDays, Announcement
from cdc_lib.ports import ObjectStore
from cdc_lib.store import documents, layout

_ATTEMPTS = 5
"""Writers of one document at once: the tasks of one source, of which Airflow runs one at a time."""


def announced_days(store: ObjectStore, source: str) -> AnnouncedDays | None:
    """Return up to which day the days of a source are announced; None before the first look."""
    return documents.find(AnnouncedDays, store, layout.sealed_days_key(source))


def note_announced(store: ObjectStore, source: str, through: date) -> AnnouncedDays:
    """Store a later day up to which all are announced; return what is stored, which another writer may have brought further.

    Raises:
        StoreUnavailable: others write it all the time.
    """

    def later(known: AnnouncedDays | None) -> AnnouncedDays:
        return AnnouncedDays(source, through) if known is None else replace(known, through=max(known.through, through))

    return _changed(store, source, later)


def note_announcement(store: ObjectStore, source: str, begun: Announcement) -> None:
    """Store which days a task is about to announce; something must be noted of the source already.

    Raises:
        StoreUnavailable: others write it all the time.
        CorruptBatch: the document was removed.
    """

    def begins(known: AnnouncedDays | None) -> AnnouncedDays:
        if known is None:
            raise CorruptBatch(
                "the announced days were removed while a task announced some",
                hint="Leave the document in the store; the next run writes it again.",
                source=source,
            )
        return replace(known, last=begun)

    _changed(store, source, begins)


def _changed(store: ObjectStore, source: str, change: Callable[[AnnouncedDays | None], AnnouncedDays]) -> AnnouncedDays:
    key = layout.sealed_days_key(source)
    if (new := documents.changed(AnnouncedDays, store, key, change, _ATTEMPTS)) is not None:
        return new
    raise StoreUnavailable("the announced days are written by several tasks at once", hint="Try again.", key=key)
