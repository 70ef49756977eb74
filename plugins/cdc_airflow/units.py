"""What a mapped drain task works on: a window, one snapshot, or a share of many snapshots."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import UTC
from typing import TYPE_CHECKING, Any

from cdc_lib.model.pace import counted

if TYPE_CHECKING:
    from cdc_lib.model.cursor import Cursor
    from cdc_lib.model.manifest import Manifest
    from cdc_lib.model.window import DrainUnit, SnapshotTask

FEWEST_SHARES = 32
"""Up to so many snapshots have a mapped task each. More are shared out: a task instance costs a process, an XCom and a row of the UI."""

SHARE = "snapshot_share"

NOTHING = "nothing"
"""What a mapped task of a cleared run is mapped over when the new plan has no unit for it."""


def mapped(units: Sequence[DrainUnit], parallelism: int) -> list[dict[str, Any]]:
    """Return the plain forms over which `drain` is mapped, in the order of the units; shares of snapshots come last.

    A share names its snapshots by id alone, so that an XCom of a thousand tables is small. Neighbours go to different shares,
    because the tables of one database are often alike in size.

    Args:
        units: in flight.
        parallelism: mapped tasks that run at the same time; there are at least four shares for each.
    """
    from cdc_lib.model.window import Window
    from cdc_lib.store.documents import to_plain

    snapshots = [unit for unit in units if not isinstance(unit, Window)]
    shares = max(FEWEST_SHARES, 4 * parallelism)
    if len(snapshots) <= shares:
        return [to_plain(unit) for unit in units]
    windows = [to_plain(unit) for unit in units if isinstance(unit, Window)]
    ids = [[task.id for task in snapshots[number::shares]] for number in range(shares)]
    return [*windows, *({"kind": SHARE, "ids": share} for share in ids)]


def beyond(tasks: int, states: Mapping[str, Any], names: Collection[str]) -> list[dict[str, Any]]:
    """Return a form of the kind :data:`NOTHING` for each mapped task of a run that a new plan has no unit for.

    Without one Airflow removes the task. Before 3.3 it then never runs a task after it, and calls that a deadlock.

    Args:
        tasks: how many the new plan has units for.
        states: of the tasks in the run, by what Airflow calls them: ``drain``, or ``drain_0`` if it is mapped.
        names: ids of the tasks that are mapped over the plan.
    """
    indexes = [name.removeprefix(f"{task}_") for task in names for name in states if name.startswith(f"{task}_")]
    there = max((int(index) + 1 for index in indexes if index.isdecimal()), default=0)
    return [{"kind": NOTHING} for _ in range(tasks, there)]


def snapshots_of(share: dict[str, Any], drain: Cursor | None) -> list[SnapshotTask]:
    """Return the snapshots of a share. Those that are complete, or not in flight any more, are no work.

    Args:
        share: what the task was mapped over, of the kind :data:`SHARE`.
        drain: the drain cursor.
    """
    in_flight = {unit.id: unit for unit in drain.snapshot_units} if drain is not None else {}
    return [in_flight[one] for one in share["ids"] if one in in_flight]


def title_of(unit: DrainUnit, manifest: Manifest | None = None) -> str:
    """Name a unit for people: the table of a snapshot, and its range; the bounds of a window, and its commit times when they are known.

    Args:
        unit: a window or snapshot task.
        manifest: of the window's batch; None before it is drained.
    """
    from cdc_lib.model.window import Window

    if not isinstance(unit, Window):
        return f"snapshot of {unit.title}"
    same_file = unit.start.file == unit.stop.file
    bounds = f"{unit.start} to {unit.stop.offset if same_file else unit.stop}"
    if manifest is None or manifest.first_time is None or manifest.last_time is None:
        return bounds
    first, last = (time.astimezone(UTC) for time in (manifest.first_time, manifest.last_time))
    until = f"{last:%H:%M:%S}" if first.date() == last.date() else f"{last:%Y-%m-%d %H:%M:%S}"
    return f"{first:%Y-%m-%d %H:%M:%S} to {until} UTC, {bounds}"


def title_of_share(tasks: Sequence[SnapshotTask]) -> str:
    """Name a share for people by the number of its tables, its first and its last."""
    if len(tasks) < 2:
        return title_of(tasks[0]) if tasks else "snapshots that are complete"
    tables = len({task.name for task in tasks})
    return f"snapshots of {counted(tables, 'table')}, {tasks[0].title} to {tasks[-1].title}"
