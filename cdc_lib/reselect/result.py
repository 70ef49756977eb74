"""What a re-selection returns."""

from __future__ import annotations

from dataclasses import dataclass

from cdc_lib.merge.plan import StoredBatch
from cdc_lib.model.lake_table import Reselected


@dataclass(frozen=True, slots=True)
class Reread:
    """Result of a re-selection.

    Args:
        batch: its rows, in the shape of a snapshot's chunk.
        rows: number of keys with a row.
        missing: number of keys without a row: the batch holds a delete for each.
        reach: low and high watermark.
    """

    batch: StoredBatch
    rows: int
    missing: int
    reach: Reselected


@dataclass(frozen=True, slots=True)
class Refused:
    """Why rows could not be re-selected.

    Args:
        why: the reason, as a clause.
        again: whether a retry may succeed.
        replaced: whether the source has another table by now, or none: only a new snapshot shows what became of the rows.
    """

    why: str
    again: bool = False
    replaced: bool = False
