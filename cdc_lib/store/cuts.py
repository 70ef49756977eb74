"""Stores cuts: one document for each merge, written once."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime

from cdc_lib.errors import CorruptBatch
from cdc_lib.model.merge_plan import Cut
from cdc_lib.model.position import Point, Position
from cdc_lib.model.thinning import thinned
from cdc_lib.ports import ObjectInfo, ObjectStore
from cdc_lib.store import documents, layout

KEPT_CUTS = 100
"""Number of the last cuts that are kept at any age."""

THIN_AT_ONCE = 20
"""Minimum number of cuts for thinning."""


def last_cut(store: ObjectStore, source: str, merge_id: str = "") -> Cut | None:
    """Return the cut at the furthest position, or None before the first.

    Keys sort like positions. Merges of snapshot chunks may publish several cuts at one position: the last one has the most
    tables. The number of tables is compared before the time, because clocks jump.

    Args:
        store: the object store.
        source: name of the source.
        merge_id: of a merge that is known to have published one: some gateways list new objects late.
    """
    return _furthest(store, [info.key for info in store.list(layout.cuts_prefix(source))], source, merge_id)


def _furthest(store: ObjectStore, listed: list[str], source: str, merge_id: str) -> Cut | None:
    keys = [*{*listed, layout.cut_key(source, merge_id)}] if merge_id else listed
    last = last_of(store, furthest_keys(keys)) or last_of(store, furthest_keys(listed))
    return last[1] if last is not None else None


def furthest_keys(keys: list[str]) -> list[str]:
    """Return the keys of the cuts at the furthest position; empty without cuts."""
    furthest_position = max(map(position_of, keys), default="")
    return [key for key in keys if position_of(key) == furthest_position]


def last_of(store: ObjectStore, keys: Iterable[str]) -> tuple[str, Cut] | None:
    """Return the last one of the cuts at one position, with its key; None when all were removed meanwhile."""
    cuts = [(key, cut) for key in keys if (cut := documents.find(Cut, store, key)) is not None]
    return max(cuts, key=lambda one: (len(one[1].tables), one[1].at), default=None)


def listed_cuts(store: ObjectStore, source: str) -> list[ObjectInfo]:
    """Return the cuts that are stored, in the order of their positions; none is read."""
    return sorted(store.list(layout.cuts_prefix(source)), key=lambda info: (position_of(info.key), info.modified))


def last_cut_by(store: ObjectStore, source: str, epoch: int, position: Position, merge_id: str = "") -> Cut | None:
    """Return the last cut at or before a position; None if none is stored. See :func:`last_cut` for the arguments.

    A lake and lake cursor that were restored from a backup do not have the snapshots of later cuts.
    """
    last = last_cut(store, source, merge_id)
    if last is None or Point.at(last.epoch, last.position) <= Point.at(epoch, position):
        return last
    furthest_position = f"{layout.cuts_prefix(source)}{Point.at(epoch, position).sortable}"
    keys = [one.key for one in store.list(layout.cuts_prefix(source)) if position_of(one.key) <= furthest_position]
    return _furthest(store, keys, source, "")


def cuts_since(store: ObjectStore, source: str, since: datetime) -> list[Cut]:
    """Return the cuts that were written at a time (UTC) or later, in the order of their keys."""
    keys = sorted(info.key for info in store.list(layout.cuts_prefix(source)) if info.modified >= since)
    return [cut for key in keys if (cut := documents.find(Cut, store, key)) is not None]


def last_cuts(store: ObjectStore, source: str, limit: int) -> list[Cut]:
    """Return the last cuts by position, in order; only these are read.

    Args:
        store: the object store.
        source: name of the source.
        limit: maximum number.
    """
    return [
        cut for info in listed_cuts(store, source)[-limit:] if (cut := documents.find(Cut, store, info.key)) is not None
    ]


def named_snapshots(store: ObjectStore, source: str, since: datetime | None = None) -> frozenset[int]:
    """Return the lake snapshots that the cuts of a source reference.

    Args:
        store: the object store.
        source: name of the source.
        since: a time (UTC); of the cuts that were written before, only the last one is used. None for all cuts.
    """
    cuts = cuts_since(store, source, since or datetime.min.replace(tzinfo=UTC))
    if since is not None and (last := last_cut(store, source)) is not None:
        cuts.append(last)
    return frozenset(table.lake_snapshot for cut in cuts for table in cut.tables)


def thin_cuts(store: ObjectStore, source: str, now: datetime) -> int:
    """Remove cuts so that their number is bounded at any schedule; returns how many were removed.

    Kept are the last ones and all at the last position, then one for each hour, then one for each day.

    Args:
        store: the object store.
        source: name of the source.
        now: current time (UTC).
    """
    found = {info.key: info.modified for info in store.list(layout.cuts_prefix(source))}
    if len(found) <= KEPT_CUTS + THIN_AT_ONCE:
        return 0
    by_position = sorted(found, key=position_of)
    last = {position_of(key) for key in by_position[-KEPT_CUTS:]}
    removed = sorted(found.keys() - thinned(found, now) - {key for key in found if position_of(key) in last})
    if len(removed) < THIN_AT_ONCE:
        return 0
    store.delete(removed)
    return len(removed)


def position_of(key: str) -> str:
    """Return a key without the hash that distinguishes the merges at one position."""
    return key.rpartition("-")[0]


def cut_of(store: ObjectStore, source: str, merge_id: str) -> Cut | None:
    """Return the cut that a merge published, or None."""
    return documents.find(Cut, store, layout.cut_key(source, merge_id))


def publish(store: ObjectStore, cut: Cut) -> Cut:
    """Write the cut if this merge has not published one; return the published one."""
    key = layout.cut_key(cut.source, cut.merge_id)
    if store.put_if_absent(key, documents.dump(cut)):
        return cut
    state = documents.find(Cut, store, key)
    if state is None:
        raise CorruptBatch("a cut was removed right after it was found", hint="Merge again.", key=key)
    return state
