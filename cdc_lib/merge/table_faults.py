"""Which errors of a merge concern one table alone, so that the others are merged without it: pure.

An error of the machine, the storage or the catalog meets every table. Quarantining a table for it would cost a new snapshot and
help nobody.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from cdc_lib.errors import CdcError, ConfigError, CorruptBatch, LakeRefused, MachineExhausted, MergeError
from cdc_lib.model.table_name import TableName

_UNSPECIFIC = (MergeError, ConfigError, CorruptBatch)
"""Classes of errors that may have a cause outside their table; their subclasses have one in it."""

_NAMES = re.compile(r"\w*(?:Exception|Error)\b|\[[A-Z_.]+\]")
"""Names of Java exceptions, and Spark's error classes."""


@dataclass(frozen=True, slots=True)
class FailedTable:
    """A lake table that could not be merged.

    Args:
        tables: the source tables whose rows go there.
        lake_table: its name.
        error: why.
    """

    tables: tuple[TableName, ...]
    lake_table: str
    error: CdcError


def faults_of_one_table(failed: Sequence[FailedTable], merged: int) -> list[FailedTable]:
    """Return the failures that concern their table alone.

    Args:
        failed: all tables of a merge that failed.
        merged: how many did not.
    """
    permanent = [
        one for one in failed if not one.error.retryable and not isinstance(one.error, LakeRefused | MachineExhausted)
    ]
    kinds = {_kind_of(one) for one in permanent}
    common = not merged and len(permanent) > 1 and len(permanent) == len(failed) and len(kinds) == 1
    return [one for one in permanent if not (common and type(one.error) in _UNSPECIFIC)]


def _kind_of(failed: FailedTable) -> tuple[str, tuple[str, ...]]:
    """Return what the errors of several tables have in common if they have one cause."""
    error = failed.error
    return error.code, tuple(_NAMES.findall(error.message)) or (_without_names(failed),)


def _without_names(failed: FailedTable) -> str:
    text = failed.error.message
    for name in (failed.lake_table, *failed.tables):
        text = text.replace(str(name), "")
    return text
