"""The batches that wait to be merged, as one plan; nothing is written."""

from __future__ import annotations

from dataclasses import dataclass, replace

from cdc_lib.errors import ConfigError
from cdc_lib.merge.load import load_plan
from cdc_lib.merge.plan import StoredBatch
from cdc_lib.merge.planner import plan_of
from cdc_lib.model.cursor import DRAIN, LAKE, Cursor
from cdc_lib.model.merge_plan import MergePlan
from cdc_lib.model.quarantine import to_reach
from cdc_lib.model.table_name import TableName
from cdc_lib.model.window import SnapshotTask, Window
from cdc_lib.model.xa_settlement import settle
from cdc_lib.plan.gaps import as_gap, chain_of, refuse_lost
from cdc_lib.source import Source
from cdc_lib.store.manifests import load_manifest


@dataclass(frozen=True, slots=True)
class Waiting:
    """Everything that is drained and not merged.

    Args:
        plan: one merge of all of it.
        batches: its batches, in order.
        not_ready: tables with changes that no merge can take yet, and why.
    """

    plan: MergePlan
    batches: tuple[StoredBatch, ...]
    not_ready: dict[TableName, str]


def waiting_batches(source: Source) -> Waiting:
    """Read the cursors of a source and the manifests of the batches between them.

    Args:
        source: the source; its server is not asked.

    Raises:
        ConfigError: the source has no cursors yet.
        CursorMissing: a cursor is lost.
        BatchesMissing: a batch that waits is no longer stored.
        StoreError: a document cannot be read.
    """
    refuse_lost(source)
    drain, lake, store = source.cursor(DRAIN), source.cursor(LAKE), source.store
    if drain is None or lake is None:
        raise ConfigError("nothing is drained yet", hint="The first run does it. See cdc status.", source=source.name)
    lake = lake.without_merge().following(drain)
    chain = chain_of(store, drain, lake)
    if (gap := as_gap(lake, chain)) is not None:
        raise gap.error()
    windows = tuple(window for one in chain.windows if (window := load_manifest(store, one.key).window) is not None)
    plan = plan_of_all(drain, lake, windows)
    batches = load_plan(store, plan)
    return Waiting(plan, tuple(batches), {**_unready(drain, lake), **_unsettled(plan, batches)})


def plan_of_all(drain: Cursor, lake: Cursor, windows: tuple[Window, ...]) -> MergePlan:
    """Return one merge of all windows and of all chunks that the lake does not have.

    Args:
        drain: the drain cursor.
        lake: the lake cursor with nothing in flight.
        windows: those after the lake cursor, in order.
    """
    merged = {task.id: task.chunks for task in lake.snapshots}
    tasks = tuple(task for task in drain.snapshots if task.chunks > merged.get(task.id, 0) and not task.cancelled)
    return plan_of(replace(lake, in_flight=windows, in_flight_snapshots=tasks, quarantine=drain.quarantine))


def _unready(drain: Cursor, lake: Cursor) -> dict[TableName, str]:
    """Return the tables whose snapshot is not whole, or must wait until the lake has earlier windows."""
    merged = {task.id: task.chunks for task in lake.snapshots}
    found = {}
    for task in drain.snapshots:
        if not task.complete:
            found[task.name] = "a snapshot of it is being read"
        elif task.chunks > merged.get(task.id, 0) and _must_wait(drain, lake, task):
            found[task.name] = "a new snapshot of it is merged after the windows that wait now"
    return found | {one.table: "its changes wait for its snapshot" for one in lake.held}


def _must_wait(drain: Cursor, lake: Cursor, task: SnapshotTask) -> bool:
    return to_reach(drain.quarantine, task.name, task.snapshot_id, lake.epoch, lake.position) is not None


def _unsettled(plan: MergePlan, batches: list[StoredBatch]) -> dict[TableName, str]:
    """Return all tables of the batches, if they commit an XA transaction that they do not hold."""
    windows = [(batch.key, batch.manifest) for batch in batches if batch.manifest.window is not None]
    if not settle(plan.prepared, windows).unknown:
        return {}
    why = "an XA transaction is committed whose rows are in an earlier batch"
    return {file.table: why for batch in batches for file in batch.manifest.files}
