"""Compares a machine's clock with the store's: commits to lake tables and ages of files are by the clock of the machine that writes."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta

from cdc_lib.errors import WrongClock
from cdc_lib.ports import ObjectStore
from cdc_lib.store import layout

TOLERANCE = timedelta(seconds=30)
"""By how much two clocks may differ; Iceberg refuses a commit that is a minute older than the one before."""


def refuse_other_clock(store: ObjectStore, source: str, clock: Callable[[], datetime]) -> None:
    """Write an object, and compare its time with the clock before and afterwards.

    Args:
        store: of the source.
        source: its name.
        clock: returns the machine's time (UTC).

    Raises:
        WrongClock: they differ.
    """
    key, before = layout.clock_key(source), clock()
    store.put(key, b"")
    stored = next((one.modified for one in store.list(key) if one.key == key), None)
    after = clock()
    if stored is None or before - TOLERANCE <= stored <= after + TOLERANCE:
        return
    raise WrongClock(
        f"this machine's clock is at {_said(after)}, and that of the store at {_said(stored)}",
        hint="Set the clock that is wrong (timedatectl set-ntp true), and run it again. Nothing was written.",
        source=source,
    )


def refuse_later_commit(committed: datetime | None, now: datetime, lake_table: str) -> None:
    """Refuse to write to a table whose last commit is later than this machine's clock: Iceberg would refuse it at the end.

    Args:
        committed: when the table was changed last; None if unknown.
        now: this machine's time (UTC).
        lake_table: full name of the table.

    Raises:
        WrongClock: it is.
    """
    if committed is not None and committed > now + TOLERANCE:
        raise WrongClock(
            f"this machine's clock is at {_said(now)}, and the last commit of the lake table {lake_table} is of {_said(committed)}",
            hint="Set this machine's clock if it is slow. If the clock of the machine that committed was ahead, nothing can be "
            "written before that time is over: run it again then.",
            lake_table=lake_table,
        )


def _said(at: datetime) -> str:
    return f"{at:%Y-%m-%d %H:%M:%S} UTC"
