"""The backlog of a source, by what the store knows of it."""

from __future__ import annotations

from cdc_lib.model.backlog import Backlog
from cdc_lib.model.cursor import Cursor
from cdc_lib.model.observation import ServerObservation
from cdc_lib.plan.windows import bytes_left


def backlog_of(drain: Cursor | None, seen: ServerObservation | None) -> Backlog | None:
    """Return what is not drained up to the end of the binlog, as it was seen last.

    None before the first plan, where the server that was seen is another one than the cursor's or has ended before it, and where it
    purged the cursor's file.
    """
    if drain is None or seen is None or not seen.identity.is_same_server(drain.identity):
        return None
    if drain.position > seen.binlog_end:
        return None
    size = bytes_left(drain.position, seen.files, seen.binlog_end)
    return None if size is None else Backlog(size, size / seen.drain_rate if seen.drain_rate else None)
