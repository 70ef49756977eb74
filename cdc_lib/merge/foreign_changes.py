"""Whether a lake table still holds what the last merge left in it; pure.

A merge begins only on a table whose history contains what the last cut left. The commits of merges tell it: each holds the
marker of what is merged, and Iceberg numbers the commits of a table in an order that is never gone back in. So a table
whose newest marker is as new as the cut's holds everything, also when the snapshots between were expired or compacted.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from cdc_lib.errors import ForeignChange
from cdc_lib.lake.evolution import widens
from cdc_lib.merge.plan import Batch
from cdc_lib.model.column_rename import ColumnRename
from cdc_lib.model.foreign import LakeCommit, LakeField, Past
from cdc_lib.model.lake_table import LakeTable, Marker, TableFingerprint
from cdc_lib.model.merge_plan import MergePlan, TableCut
from cdc_lib.model.position import Point

EVER = Point(2**31 - 1, 2**31 - 1, 2**63 - 1)
"""Behind every change: a snapshot that replaces rows of another life replaces all of them."""


@dataclass(frozen=True, slots=True)
class Fault:
    """What is wrong with a lake table.

    Args:
        what: what was found, as the end of a sentence that begins with the table's name.
        drop: whether the lake table must be dropped or renamed before a new snapshot can make it again.
        back: another way out, to be tried before a new snapshot; empty without one.
    """

    what: str
    drop: bool = False
    back: str = ""


def fault_of(cut: TableCut, found: LakeTable | None, past: Past | None, life: str) -> Fault | None:
    """Return what is wrong with a lake table since a cut; None where it holds what was merged.

    Args:
        cut: the table's entry in the last cut.
        found: the lake table now.
        past: what happened since; None where the table's snapshot and columns are the cut's.
        life: of the source.
    """
    if cut.fingerprint is None:
        return None
    if found is None and cut.dropped is not None:
        return None  # the source has no such table either, and one that it makes again begins with no row
    if found is None:
        return Fault("does not exist any more: it was dropped or renamed")
    return _of_marker(cut, cut.fingerprint, found, life) or _of_columns(cut.fingerprint, found, past)


def _of_marker(cut: TableCut, left: TableFingerprint, found: LakeTable, life: str) -> Fault | None:
    marker = found.markers.get(cut.table, Marker())
    if marker.is_blank and found.uuid == left.uuid and found.empty:
        return Fault("lacks what was merged: it was rolled back to before its first merge")
    if marker.is_blank:
        what = "was replaced" if found.uuid == left.uuid else "is another table than the one that was merged"
        return Fault(f"{what}, and holds nothing that was merged", drop=True)
    if marker.source_uuid != life:
        return other_life(found)
    if not _reaches(marker, found, found.sequences.get(cut.table, 0), left):
        return Fault(
            f"lacks what was merged: it was rolled back to {_place(marker.merged_to)}, and the last merge had brought it "
            f"to {_place(left.merged_to)}"
        )
    return None


def _of_columns(left: TableFingerprint, found: LakeTable, past: Past | None) -> Fault | None:
    """Return which column is not there as the last merge left it."""
    if past is None or found.schema_id == left.schema_id:
        return None
    if past.fields_then is None:
        return Fault("has other columns than the last merge left, and no longer knows those")
    return _columns(past.fields_then, {one.id: one for one in past.fields}, found.renames)


def other_life(found: LakeTable) -> Fault:
    """Return what is wrong with a table that another life of the source, or another source, has written."""
    what = "was merged by a source with another id or name"
    restore = "If the store was lost, restore it with its cursors; if the source file was renamed or copied, undo that."
    return Fault(what, drop=found.mode in ("soft_delete", "scd2"), back=restore)


def stranger(found: LakeTable | None) -> Fault | None:
    """Return what is wrong with a table that no merge knows: one that has rows was made by somebody else."""
    if found is None or found.snapshot_id is None or found.empty or found.carried:
        return None
    if any(not marker.is_blank for marker in found.markers.values()):
        return None
    return Fault("was made by somebody else: it has rows, and no merge wrote to it", drop=True)


def is_read_again(table: str, batches: Iterable[Batch], plan: MergePlan) -> bool:
    """Whether a new snapshot replaces all rows of a table, by this plan or a later one."""
    asked = {one.snapshot_id for one in plan.quarantine if one.table == table and one.snapshot_id}
    chunks = (batch.manifest.chunk for batch in batches)
    brought = (one for one in chunks if one is not None and one.table == table and one.number == 0)
    return any(one.snapshot_id in asked for one in brought) or any(one.table == table for one in plan.lagging)


def foreign_commits(past: Past) -> list[LakeCommit]:
    """Return the commits of other writers that added or deleted rows, oldest first.

    A rewrite changes no row. A merge's commits have its marker, except deletes of whole files: such a one lies right below
    a marked one of the same Spark application.
    """
    found: list[LakeCommit] = []
    above: LakeCommit | None = None
    for one in past.commits:
        own = one.marked or (above is not None and bool(one.application) and one.application == above.application)
        if not own and one.operation != "replace" and (one.added or one.deleted):
            found.append(one)
        above = one if own else None
    return found[::-1]


def refuse(source: str, lake_table: str, tables: Sequence[str], fault: Fault) -> ForeignChange:
    """Return the error of a lake table at fault, with the command that leads out.

    Args:
        source: name of the source.
        lake_table: its full name.
        tables: the source tables whose rows go there, and have no new snapshot yet.
        fault: what is wrong.
    """
    snapshot = f"cdc snapshot {source} {' '.join(tables)}"
    drop = f"DROP TABLE {lake_table} (or rename it), then " if fault.drop else ""
    hint = f"{fault.back} Else: {drop}{snapshot}" if fault.back else f"{drop}{snapshot}"
    return ForeignChange(
        f"the lake table {lake_table} {fault.what}",
        hint=f"{hint}: the rows are read from the source again, and those of the lake give way.",
        source=source,
        table=", ".join(tables),
    )


def _reaches(marker: Marker, found: LakeTable, sequence: int, left: TableFingerprint) -> bool:
    """Whether a marker is as new as that which a merge left."""
    if left.merged_to is not None and (marker.merged_to is None or marker.merged_to < left.merged_to):
        return False
    # A table that a backfill made again, or that came back from a backup, never had the commit that the cut means.
    return found.uuid != left.uuid or found.last_sequence < left.sequence or sequence >= left.sequence


def _columns(
    fields_then: Iterable[LakeField], now: Mapping[int, LakeField], renames: Collection[ColumnRename]
) -> Fault | None:
    for then in fields_then:
        found = now.get(then.id)
        if found is None:
            return Fault(f"lacks what was merged: its column {then.name} was dropped")
        if found.name != then.name and not _is_renamed(found, renames):
            back = f"ALTER TABLE {{lake_table}} RENAME COLUMN {found.name} TO {then.name} brings it back."
            return Fault(
                f"has other columns than the last merge left: its column {then.name} was renamed to {found.name}",
                back=back,
            )
        if found.type != then.type and not widens(then.type, found.type):
            return Fault(
                f"has other columns than the last merge left: its column {then.name} was {then.type} and is {found.type}"
            )
    return None


def _is_renamed(field: LakeField, renames: Collection[ColumnRename]) -> bool:
    """Whether a merge gave a column its name."""
    return any(field.name.lower() == new.lower() for one in renames for _, new in (*one.names, *one.displaced))


def _place(point: Point | None) -> str:
    return (
        f"file {point.file}, offset {point.offset} of epoch {point.epoch}"
        if point is not None
        else "its first snapshot"
    )
