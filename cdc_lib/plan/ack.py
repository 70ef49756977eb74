"""Moves a cursor over an acknowledged window: pure."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from cdc_lib.binlog.framing.damaged_file import continue_in
from cdc_lib.errors import PositionNotFound
from cdc_lib.model.cursor import Cursor
from cdc_lib.model.gtid import GtidSet
from cdc_lib.model.last_transaction import LastTransaction
from cdc_lib.model.manifest import Manifest
from cdc_lib.model.window import Window


def over_window(cursor: Cursor, window: Window, manifest: Manifest | None, *, at: datetime, by: str) -> Cursor:
    """Return a cursor moved over a window, with the GTIDs and times of its manifest.

    Args:
        cursor: at the window's start.
        window: the acknowledged window.
        manifest: of its batch; None if it is no longer stored.
        at: now (UTC).
        by: who acknowledges it.
    """
    if manifest is None:
        return cursor.acked(window, at=at, event_time=None, by=by)
    return cursor.with_versions(manifest.versions).acked(
        window,
        at=at,
        event_time=manifest.last_time,
        by=by,
        gtids=manifest.gtids,
        last=manifest.last_commit,
        last_transaction=manifest.last_transaction if manifest.transactions else _still_last(cursor, window),
    )


def _still_last(cursor: Cursor, window: Window) -> LastTransaction | None:
    """Return the last transaction before a window without any."""
    last = cursor.last_transaction
    return replace(last, before=window.stop) if last is not None and last.before == cursor.position else None


def used_twice(cursor: Cursor, manifest: Manifest) -> GtidSet | None:
    """Return the GTIDs of a window that transactions before it have; None if there are none, or that is not known.

    MySQL gives each GTID once, unless it is reverted to an earlier state. MariaDB's numbers may come out of order.
    """
    if cursor.identity.flavor != "mysql" or not cursor.gtids_known:
        return None
    return GtidSet.parse("mysql", cursor.gtid_set).common(GtidSet.parse("mysql", manifest.gtid_set)) or None


def refuse_used_twice(cursor: Cursor, manifest: Manifest | None) -> None:
    """Refuse the window where a cursor is if its GTIDs are those of transactions before it.

    Raises:
        PositionNotFound: the server gave them to other transactions.
    """
    if manifest is None or (twice := used_twice(cursor, manifest)) is None:
        return
    raise PositionNotFound(
        f"the server gave GTIDs to two transactions each: {str(twice)[:200]}",
        hint="It was reverted to an earlier state, and changes may be missing on either side. Continue with new snapshots of all "
        f"tables: {continue_in(cursor.source, cursor.position.file)}.",
        source=cursor.source,
        position=str(cursor.position),
    )
