"""Pins a lake table together with the batches that wait for it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyiceberg.table import Table

from cdc_lib.apply.complete import completed, refuse_partial_keys
from cdc_lib.apply.decide import files_of
from cdc_lib.apply.key_rows import AskedKeys
from cdc_lib.apply.removals import with_mode
from cdc_lib.apply.rows import (
    LakeShape,
    Order,
    changes_of,
    last_changes,
    less,
    order_of,
)
from cdc_lib.config import SourceConfig
from cdc_lib.errors import IncompatibleSchema, ValuesNotLogged
from cdc_lib.lake.routing import RoutedTable, lake_merges
from cdc_lib.merge.collapse import DELETE, MISSING
from cdc_lib.merge.contribution import Contribution
from cdc_lib.merge.live_rows import found_again
from cdc_lib.merge.plan import TableWork, work_on
from cdc_lib.merge.stopped_statements import refuse_statements
from cdc_lib.model.lake_table import COMPUTED_PROPERTY, LakeTable, Marker, computed_from
from cdc_lib.model.manifest import ABSENT, BINLOG, EPOCH, OFFSET, OP, ROW
from cdc_lib.model.position import Point
from cdc_lib.model.table_commit import Superseded
from cdc_lib.model.table_mode import Mode
from cdc_lib.model.table_name import TableName
from cdc_lib.ports import ObjectStore
from cdc_lib.read.fresh.decide import not_fresh, why_lagging, why_not, why_not_files, why_not_partial
from cdc_lib.read.fresh.markers import marker_of
from cdc_lib.read.fresh.snapshot import FreshSnapshot, WaitingChanges
from cdc_lib.read.fresh.waiting import Waiting
from cdc_lib.read.lookup import Many
from cdc_lib.read.snapshot import PinnedSnapshot

_FILTERED = "the source file filters its rows with Spark SQL"
_COMPUTED = "the table has computed columns, which only Spark computes"


def with_waiting(
    base: PinnedSnapshot, table: Table, config: SourceConfig, store: ObjectStore, waiting: Waiting
) -> FreshSnapshot:
    """Return a snapshot with the changes that the next merge would bring.

    Args:
        base: the current snapshot of the lake table.
        table: the lake table; its name at the source is that of the snapshot.
        config: the source.
        store: holds the batches.
        waiting: the batches, read before the table was loaded: what was merged since is left out.

    Raises:
        MergeError: only a merge can apply the changes; the message says why.
        CorruptBatch: a file is missing or damaged.
    """
    routed = lake_merges(config, [base.name])[0].routed_tables[0]
    plan, mode = waiting.plan, cast("Mode", base.mode)
    marker = marker_of(table.metadata, config.source, routed.table, routed=routed.target.routed)
    policy = config.schema_changes.policy(*routed.table.pair)
    work = found_again(store, work_on(routed.table, mode, waiting.batches, marker, plan, policy), policy)
    windows = (each.batch.manifest for each in work.inputs if each.batch.manifest.window is not None)
    refuse_statements(routed.table, policy, windows, marker.merged_to)
    part = Contribution(routed, work, ())
    superseded = part.superseded(config.source, _state(base, mode, marker, routed))
    key = [one.name for one in base.key.columns] if base.has_key else []
    files = files_of(routed.table, work.inputs)
    reasons = (
        waiting.not_ready.get(routed.table, ""),
        why_lagging(plan, routed.table),
        why_not(routed, work, marker, plan, superseded) if work.inputs else "",
        _FILTERED if work.inputs and routed.target.where else "",
        _COMPUTED if work.inputs and computed_from(table.metadata.properties.get(COMPUTED_PROPERTY)) else "",
        why_not_files(routed, mode, files, base.columns.names, key),
        why_not_partial(routed, work, superseded, files),
    )
    if why := next(filter(None, reasons), ""):
        raise not_fresh(why, routed.table)
    fields = tuple(one.field for one in base.columns.choose(None))
    constants, reads = routed.constants(config.source), work.marker.reads
    shape = LakeShape(routed.table, fields, constants, routed.target.keeps, reads=reads, ahead_until=work.ahead_until)
    try:
        rows = _completed(base, pa.concat_tables(changes_of(store, work.inputs, shape)), key, routed.table)
    except IncompatibleSchema as error:
        raise not_fresh(error.message, routed.table) from None
    until = max(filter(None, (Point.at(plan.epoch, plan.stop), marker.merged_to)))
    if mode == "append":
        entries = [shape.reset(one).drop_columns([ABSENT]) for one in part.entries]
        return FreshSnapshot(base, WaitingChanges((), order_of(rows), pa.concat_tables([rows, *entries]), (), until))
    return FreshSnapshot(
        base, _changed(base, work, last_changes(rows, key, begins=work.mode == "scd2"), tuple(superseded), until)
    )


def _completed(base: PinnedSnapshot, changes: pa.Table, key: Sequence[str], table: TableName) -> pa.Table:
    """Return changes without ``_absent``; the last one of each key has all cells.

    Raises:
        ConfigError: a cell is not known.
    """
    partial = changes.filter(pc.is_valid(changes.column(ABSENT)))
    if not partial.num_rows:
        return changes.drop_columns([ABSENT])
    try:
        refuse_partial_keys(changes, key, base.name)
    except ValuesNotLogged:
        raise not_fresh("a row lacks a part of its key", table) from None
    keys = map(base.key.parse, zip(*(partial.column(name).to_pylist() for name in key), strict=True))
    old, _ = Many(base, list({one.order: one for one in keys}.values()), everything=True).read(
        base.columns.choose(None)
    )
    rows = completed(changes, old, key, cast("Mode", base.mode))
    missing = pc.filter(names := last_changes(rows, key, begins=False).column(MISSING), pc.not_equal(names, ""))
    if len(missing):
        raise not_fresh(f"a row has no value of column {missing[0]} (binlog_row_image is not FULL)", table)
    return rows.drop_columns([MISSING])


def _state(base: PinnedSnapshot, mode: Mode, marker: Marker, routed: RoutedTable) -> LakeTable:
    return LakeTable((), (), mode, marker, base.id, None, {routed.table: marker})


def _changed(
    base: PinnedSnapshot, work: TableWork, last: pa.Table, superseded: tuple[Superseded, ...], until: Point
) -> WaitingChanges:
    """Return the effect of the last change of each key."""
    keys = tuple(last.column(one.name).combine_chunks() for one in base.key.columns)
    order = order_of(last)
    rows = with_mode(last, work.mode, superseded)
    if work.guard and last.num_rows:
        rows = rows.filter(pa.array(~_outdated(base, keys, order)))
    if work.mode != "soft_delete":
        rows = rows.filter(pc.not_equal(rows.column(OP), DELETE))
    ascending = [(one.name, "ascending") for one in base.key.columns]
    rows = rows.take(pc.sort_indices(rows, sort_keys=ascending))
    return WaitingChanges(keys, order, rows, superseded, until)


def _outdated(base: PinnedSnapshot, keys: Sequence[pa.Array], order: Order) -> NDArray[np.bool_]:
    """Return which changes are older than the lake's row of their key."""
    asked, outdated = AskedKeys(keys), order[0] < 0
    for file in base.files:
        for group in base.groups(file):
            rows, numbers = asked.find(base.key_rows(group))
            live = base.live(group, rows)
            if not len(live):
                continue
            numbers = numbers[pc.is_in(pa.array(rows), pa.array(live)).to_numpy(zero_copy_only=False)]
            theirs = order_of(base.read(group, live, base.columns.choose((EPOCH, BINLOG, OFFSET, ROW))))
            outdated[numbers] |= less(tuple(part[numbers] for part in order), theirs, or_equal=False)
    return outdated
