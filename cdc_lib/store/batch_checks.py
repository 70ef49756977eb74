"""Stores which windows were decoded a second time day by day: one small document of a source."""

from __future__ import annotations

from collections.abc import Callable

from cdc_lib.model.batch_check import DailyChecks
from cdc_lib.ports import ObjectStore
from cdc_lib.store import documents, layout

TRIES = 5
"""Tries to replace the document while others do."""


def daily_checks(store: ObjectStore, source: str) -> DailyChecks | None:
    """Return what is known; None before the first day."""
    return documents.find(DailyChecks, store, layout.batch_checks_key(source))


def change_daily_checks(
    store: ObjectStore, source: str, change: Callable[[DailyChecks | None], DailyChecks]
) -> DailyChecks | None:
    """Replace the document by what a change makes of it, and return the new one; None if others always were faster.

    Args:
        store: holds it.
        source: name of the source.
        change: gets the stored document, or None; it is called again after each try that another task was faster in.
    """
    return documents.changed(DailyChecks, store, layout.batch_checks_key(source), change, TRIES)
