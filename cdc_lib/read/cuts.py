"""The cut as of a time, so that tables are read as they were then: ``lake.table("shop.orders", cut=cut)``.

A module of its own: it needs the object store, and reading the lake does not.
"""

from __future__ import annotations

from datetime import datetime

from cdc_lib.errors import ConfigError
from cdc_lib.model.merge_plan import Cut
from cdc_lib.ports import ObjectStore
from cdc_lib.store import documents
from cdc_lib.store.cuts import listed_cuts


def cut_as_of(store: ObjectStore, source: str, time: datetime) -> Cut:
    """Return the last cut whose last transaction was committed at a time or before it.

    Old cuts are thinned out, and the snapshots that they name expire: see :class:`cdc_lib.config.maintenance.MaintenanceConfig`.

    Args:
        store: of the source.
        source: its name.
        time: with its time zone.

    Raises:
        ConfigError: the time has no time zone, or no cut is stored that is as old.
    """
    if time.tzinfo is None:
        raise ConfigError("the time of a cut needs a time zone", hint="For example 2026-01-31T12:00:00+00:00.")
    for info in reversed(listed_cuts(store, source)):
        cut = documents.find(Cut, store, info.key)
        if cut is not None and cut.event_time is not None and cut.event_time <= time:
            return cut
    raise ConfigError(
        f"no cut is stored whose last transaction was committed by {time}",
        hint="cdc lake cuts {source} lists the cuts.",
        source=source,
    )
