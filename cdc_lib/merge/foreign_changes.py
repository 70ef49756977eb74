"""Whether a lake table still holds what the last merge wrote to it; pure.

A merge begins only on a table whose history contains the last cut. Each commit of a merge holds the marker of what is
merged, and Iceberg's sequence numbers only grow. So a table whose newest marker is as new as the cut's holds everything,
also when the snapshots in between were expired or compacted.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from cdc_lib.errors import ForeignChange
from cdc_lib.merge.plan import StoredBatch
from cdc_lib.model.column_rename import ColumnRename
from cdc_lib.model.foreign import LakeCommit, LakeField, Past
from cdc_lib.model.lake_table import LakeTable, Marker, TableFingerprint
from cdc_lib.model.lake_types import widens
from cdc_lib.model.merge_plan import MergePlan, TableCut
from cdc_lib.model.position import Point

AFTER_ALL_CHANGES = Point(2**31 - 1, 2**31 - 1, 2**63 - 1)
"""After every change: a snapshot replaces all rows of another incarnation of the source."""


@dataclass(frozen=True, slots=True)
class LakeFault:
    """What is wrong with a lake table.

    Args:
        what: what is wrong, as the end of a sentence that begins with the table's name.
        drop: whether the lake table must be dropped or renamed before a new snapshot can create it again.
        back: another remedy, to try before a new snapshot; empty without one.
        is_dropped: whether the source has none of its tables any more, so that no snapshot can replace its rows.
    """

    what: str
    drop: bool = False
    back: str = ""
    is_dropped: bool = False


def fault_of(cut: TableCut, state: LakeTable | None, past: Past | None, source_uuid: str) -> LakeFault | None:
    """Return what is wrong with a lake table since a cut; None if it holds what was merged.

    Args:
        cut: the table's entry in the last cut.
        state: the lake table now; None if it does not exist.
        past: what happened since; None if the table's snapshot and columns are the cut's.
        source_uuid: UUID of the source.
    """
    if cut.fingerprint is None:
        return None
    if state is None and cut.dropped is not None:
        return None  # the source has no such table either, and a table that it creates again begins empty
    if state is None:
        return LakeFault("does not exist any more: it was dropped or renamed, or lake.uri names another catalog")
    return (
        unpublished(state)
        or _of_marker(cut, cut.fingerprint, state, source_uuid)
        or _of_columns(cut.fingerprint, state, past)
    )


def _of_marker(cut: TableCut, fingerprint: TableFingerprint, state: LakeTable, source_uuid: str) -> LakeFault | None:
    marker = state.markers.get(cut.table, Marker())
    if marker.is_blank and state.uuid == fingerprint.uuid and state.empty:
        return LakeFault("lacks what was merged: it was rolled back to before its first merge")
    if marker.is_blank:
        what = "was replaced" if state.uuid == fingerprint.uuid else "is another table than the one that was merged"
        return LakeFault(f"{what}, and holds nothing that was merged", drop=True)
    if marker.source_uuid != source_uuid:
        return other_incarnation(state)
    if not _reaches(marker, state, state.sequences.get(cut.table, 0), fingerprint):
        return LakeFault(
            f"lacks what was merged: it was rolled back to {_position_text(marker.merged_to)}, and the last merge ended at "
            f"{_position_text(fingerprint.merged_to)}"
        )
    return None


def _of_columns(fingerprint: TableFingerprint, state: LakeTable, past: Past | None) -> LakeFault | None:
    """Return which column differs from what the last merge left."""
    if past is None or state.schema_id == fingerprint.schema_id:
        return None
    if past.fields_then is None:
        return LakeFault("has other columns than the last merge left, and no longer knows those")
    return _columns(past.fields_then, {field.id: field for field in past.fields}, state)


def unpublished(state: LakeTable | None) -> LakeFault | None:
    """Return the fault of a table whose newest markers no merge published."""
    if state is None or not state.unpublished:
        return None
    return LakeFault(f"has a marker that does not count: {state.unpublished}")


def other_incarnation(state: LakeTable) -> LakeFault:
    """Return the fault of a table that another incarnation of the source, or another source, has written.

    A source that begins with an empty store is a new incarnation: its first plan draws a new ``source_uuid``.
    """
    what = "was merged by a source with another id or name"
    restore = "If the store was lost, restore it with its cursors; if the source file was renamed or copied, undo that."
    return LakeFault(what, drop=state.mode in ("soft_delete", "scd2"), back=restore)


def foreign_table(state: LakeTable | None) -> LakeFault | None:
    """Return the fault of a table with rows that no merge wrote."""
    if state is None or state.snapshot_id is None or state.empty or state.carried:
        return None
    if any(not marker.is_blank for marker in state.markers.values()):
        return None
    return LakeFault("was made by somebody else: it has rows, and no merge wrote to it", drop=True)


def is_resnapshotted(table: str, batches: Iterable[StoredBatch], plan: MergePlan) -> bool:
    """Whether a new snapshot replaces all rows of a table, in this plan or a later one."""
    return is_read_again(table, batches, plan) or any(lag.table == table for lag in plan.lagging)


def is_read_again(table: str, batches: Iterable[StoredBatch], plan: MergePlan) -> bool:
    """Whether a new snapshot in this plan replaces all rows of a table."""
    requested = {record.snapshot_id for record in plan.quarantine if record.table == table and record.snapshot_id}
    chunks = (batch.manifest.chunk for batch in batches)
    first = (chunk for chunk in chunks if chunk is not None and chunk.table == table and chunk.number == 0)
    return any(chunk.snapshot_id in requested for chunk in first)


def foreign_commits(past: Past) -> list[LakeCommit]:
    """Return the commits of other writers that added or deleted rows, oldest first.

    A rewrite changes no row, and each commit of a merge has its marker.
    """
    foreign = [
        one for one in past.commits if not one.marked and one.operation != "replace" and (one.added or one.deleted)
    ]
    return foreign[::-1]


def refuse(source: str, lake_table: str, tables: Sequence[str], fault: LakeFault) -> ForeignChange:
    """Return the error of a lake table at fault, with the command that repairs it.

    Args:
        source: name of the source.
        lake_table: full name of the lake table.
        tables: its source tables that have no new snapshot yet.
        fault: what is wrong.
    """
    if fault.is_dropped:
        return ForeignChange(
            f"the lake table {lake_table} {fault.what}; the source dropped the table, so that no snapshot can make it again",
            hint="Restore the files from the storage's versions or a backup; or give the table up: "
            f"cdc lake drop {source} {tables[0]}. All other tables are merged meanwhile.",
            source=source,
            table=", ".join(tables),
        )
    snapshot = f"cdc snapshot {source} {' '.join(tables)}"
    drop = f"cdc lake drop {source} {tables[0]}, then " if fault.drop else ""
    hint = f"{fault.back} Else: {drop}{snapshot}" if fault.back else f"{drop}{snapshot}"
    return ForeignChange(
        f"the lake table {lake_table} {fault.what}",
        hint=f"{hint}: the rows are read from the source again, and replace those of the lake. If the source no longer has the "
        f"table: cdc step rollback {source}; the next run reads on, and leaves the lake table as it is.",
        source=source,
        table=", ".join(tables),
    )


def _reaches(marker: Marker, state: LakeTable, sequence: int, fingerprint: TableFingerprint) -> bool:
    """Whether a marker is as new as that which a merge left."""
    if fingerprint.merged_to is not None and (marker.merged_to is None or marker.merged_to < fingerprint.merged_to):
        return False
    # A table that a backfill created again, or that was restored from a backup, never had the commit of the cut.
    return (
        state.uuid != fingerprint.uuid or state.last_sequence < fingerprint.sequence or sequence >= fingerprint.sequence
    )


def _columns(fields_then: Iterable[LakeField], now: Mapping[int, LakeField], state: LakeTable) -> LakeFault | None:
    for then in fields_then:
        field = now.get(then.id)
        if then.id in state.dropped_fields:
            continue
        if field is None:
            return LakeFault(f"lacks what was merged: its column {then.name} was dropped")
        if field.name != then.name and not _is_renamed(field, state.renames):
            back = f"ALTER TABLE {{lake_table}} RENAME COLUMN {field.name} TO {then.name} brings it back."
            return LakeFault(
                f"has other columns than the last merge left: its column {then.name} was renamed to {field.name}",
                back=back,
            )
        if field.type != then.type and not widens(then.type, field.type):
            return LakeFault(
                f"has other columns than the last merge left: its column {then.name} was {then.type} and is {field.type}"
            )
    return None


def _is_renamed(field: LakeField, renames: Collection[ColumnRename]) -> bool:
    """Whether a merge gave a column its name."""
    return any(field.name.lower() == new.lower() for each in renames for _, new in (*each.names, *each.displaced))


def _position_text(point: Point | None) -> str:
    return (
        f"file {point.file}, offset {point.offset} of epoch {point.epoch}"
        if point is not None
        else "its first snapshot"
    )
