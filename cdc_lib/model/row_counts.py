"""How many rows of each kind of change: what was inserted, updated, deleted, or read by SELECT."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RowCounts:
    """Rows by their ``_op``.

    Args:
        inserts: ``c``.
        updates: ``u``.
        deletes: ``d``.
        reads: ``r``, rows of a snapshot.
    """

    inserts: int = 0
    updates: int = 0
    deletes: int = 0
    reads: int = 0

    def __add__(self, other: RowCounts) -> RowCounts:
        return RowCounts(
            self.inserts + other.inserts,
            self.updates + other.updates,
            self.deletes + other.deletes,
            self.reads + other.reads,
        )

    @property
    def total(self) -> int:
        """All of them."""
        return self.inserts + self.updates + self.deletes + self.reads


NO_ROWS = RowCounts()
