"""Which errors of a merge concern one table alone, so that the others are merged without it: pure.

- An error that passes (:attr:`~cdc_lib.errors.CdcError.retryable`: a store that is down, a conflict) concerns no table.
- The permanent error of a table is its own, unless all tables of the merge met the same and none was merged.
- A storage or catalog that refuses the job, and a machine that is full or out of memory, usually meet every table: quarantining
  tables for it would cost new snapshots and help nobody. It is a table's own once two merges in a row met it with this table, and
  the second one merged at least as many tables as met it: the folder that is denied, the table that needs more than the machine has.
  Where no later merge can take more tables, because an epoch ends, others that take a commit without rows count for a refusal.
- An error outside the tables (a plan, a cursor, a driver that ends) never gets here: it ends the job.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from cdc_lib.errors import CdcError, ConfigError, CorruptBatch, LakeRefused, MachineExhausted, MergeError
from cdc_lib.model.failed_table import StoppedTable
from cdc_lib.model.table_name import TableName

_UNSPECIFIC = (MergeError, ConfigError, CorruptBatch)
"""Classes of errors that may have a cause outside their table; their subclasses have one in it."""

_SHARED = (LakeRefused, MachineExhausted)
"""Classes of errors of what all tables share."""

_NAMES = re.compile(r"\w*(?:Exception|Error)\b|\[[A-Z_.]+\]")
"""Names of Java exceptions, and Spark's error classes."""


@dataclass(frozen=True, slots=True)
class FailedTable:
    """A lake table that could not be merged.

    Args:
        tables: the source tables whose rows go there.
        lake_table: its name.
        error: why.
        is_dropped: whether the source dropped them: the error is reported, and neither a new snapshot nor a quarantine helps.
    """

    tables: tuple[TableName, ...]
    lake_table: str
    error: CdcError
    is_dropped: bool = False


def faults_of_one_table(
    failed: Sequence[FailedTable], merged: int, before: Collection[StoppedTable] = ()
) -> list[FailedTable]:
    """Return the failures that concern their table alone.

    Args:
        failed: all tables of a merge that failed.
        merged: how many lake tables took a commit.
        before: those that stopped in the merge before.
    """
    shared = {one.lake_table for one in failed if isinstance(one.error, _SHARED)}
    again = {(one.lake_table, one.code) for one in before if len(shared) <= merged}
    permanent = [
        one
        for one in failed
        if not (one.is_dropped or one.error.retryable)
        and (not isinstance(one.error, _SHARED) or (one.lake_table, one.error.code) in again)
    ]
    kinds = {_kind_of(one) for one in permanent}
    common = not merged and len(permanent) > 1 and len(permanent) == len(failed) and len(kinds) == 1
    return [one for one in permanent if not (common and type(one.error) in _UNSPECIFIC)]


def to_compare(failed: Sequence[FailedTable], before: Collection[StoppedTable]) -> int:
    """Return how many lake tables must take a commit to show that a refusal is a table's own; 0 where that would show nothing.

    A commit without rows needs no memory and no disk.

    Args:
        failed: all tables of a merge that failed.
        before: those that stopped in the merge before.
    """
    shared = [one for one in failed if isinstance(one.error, _SHARED)]
    stopped = {(one.lake_table, one.code) for one in before}
    is_refused = all(isinstance(one.error, LakeRefused) for one in shared)
    return len(shared) if is_refused and any((one.lake_table, one.error.code) in stopped for one in shared) else 0


def _kind_of(failed: FailedTable) -> tuple[str, tuple[str, ...]]:
    """Return what the errors of several tables have in common if they have one cause."""
    error = failed.error
    return error.code, tuple(_NAMES.findall(error.message)) or (_without_names(failed),)


def _without_names(failed: FailedTable) -> str:
    text = failed.error.message
    for name in (failed.lake_table, *failed.tables):
        text = text.replace(str(name), "")
    return text
