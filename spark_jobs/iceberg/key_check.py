"""Checks that a merge left exactly one row of each of its keys, before the merge is published.

The number of rows after a merge must be the number before, minus the rows that it deletes, plus those that it inserts. Snapshot
summaries tell how many rows a statement deleted and appended. How many it had to delete is certain if it found all keys, or all
that the plan does not insert. Otherwise the rows of these keys are counted, in the files that the deletes read.
"""

from __future__ import annotations

from cdc_lib.model.lake_table import ORDER, LakeTable
from cdc_lib.model.pace import counted
from spark_jobs.iceberg.key_filter import KEPT, KeyRange, same_key
from spark_jobs.sql import struct


def settled(keys: KeyRange, deleted: int | None) -> bool:
    """Whether the number of deleted rows alone shows that no replaced row is left.

    Args:
        keys: of the plan; each had at most one row.
        deleted: number of rows of these keys that were deleted; None if unknown.
    """
    return deleted in (keys.rows, keys.rows - keys.inserts)


def counts_sql(lake: str, table: LakeTable, keys: KeyRange) -> str:
    """Return the SELECT of two numbers: rows of keys that are not deleted, and rows that the merge should have replaced.

    Args:
        lake: SQL name of the table's branch.
        table: the lake table.
        keys: of the plan.
    """
    kept = "true" if table.mode == "soft_delete" else f"s.{KEPT}"
    of_lake, of_plan = struct(ORDER, "t"), struct(ORDER, "s")
    return (
        f"SELECT count_if({kept}), count_if({of_lake} < {of_plan} OR ({of_lake} = {of_plan} AND NOT {kept}))"
        f" FROM {lake} AS t JOIN {keys.relation} AS s ON {same_key(table.primary_key)}{keys.within('t')}"
    )


def fault(keys: KeyRange, to_append: int, found: int, old: int, *, one_each: bool) -> str:
    """Return what is wrong with the counted rows; empty for nothing.

    Args:
        keys: of the plan.
        to_append: number of keys that must have a row.
        found: number of rows that these keys have.
        old: number of rows that should have been replaced.
        one_each: whether each key must have exactly one row; not if newer rows were there twice because another key was in force.
    """
    if old:
        return f"still there: {counted(old, 'replaced row')} of {counted(keys.rows, 'changed key')}"
    if one_each and found != to_append:
        return f"{counted(found, 'row')} for {counted(to_append, 'changed key')}"
    return ""
