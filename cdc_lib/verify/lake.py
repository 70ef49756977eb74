"""What a comparison needs of the lake: a port, because the library itself runs without Spark."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from cdc_lib.model.lake_table import LakeName, LakeTable
from cdc_lib.model.position import Point
from cdc_lib.model.route import Target
from cdc_lib.model.schema import TableSchema
from cdc_lib.model.table_name import TableName
from cdc_lib.verify.checksums import Listed, RangeShare, Sum
from cdc_lib.verify.classify import Seen
from cdc_lib.verify.comparability import Subject


class LakeSums(Protocol):
    """Reads lake tables, each as of one of its snapshots; of no snapshot there are no rows.

    Every method raises MergeError, or one of its kinds, when the lake cannot be read.
    """

    def load(self, lake: LakeName, table: TableName, *, routed: bool) -> LakeTable | None:
        """Return a lake table as it is, with the marker of ``database.table``, or None when there is none."""
        ...

    def parts(self, subject: Subject, snapshot: int | None, cuts: tuple[int, ...]) -> dict[RangeShare, Sum]:
        """Return the checksums of all parts of a table, in one pass."""
        ...

    def listed(
        self, subject: Subject, snapshot: int | None, cuts: tuple[int, ...], parts: Collection[RangeShare]
    ) -> list[Listed]:
        """Return the rows of some parts."""
        ...

    def rows(self, subject: Subject, snapshot: int | None, keys: Mapping[str, tuple[str, ...]]) -> dict[str, Seen]:
        """Return rows by their names, each with the texts of its key."""
        ...


@dataclass(frozen=True, slots=True)
class Wrong:
    """Rows of a table that are to be read again from the source.

    Args:
        subject: the tables.
        target: the lake table's route.
        schema: every column that is stored of the source's rows.
        keys: texts of the rows' keys.
        stop: the rows must hold every change before it.
    """

    subject: Subject
    target: Target
    schema: TableSchema
    keys: Sequence[tuple[str, ...]]
    stop: Point


class Repairer(Protocol):
    """Writes the source's current rows into a lake table; raises as :class:`LakeSums` does, and SourceError."""

    def repair(self, wrong: Wrong) -> str:
        """Put rows in the place of those with the same keys, and take out those that the source does not have.

        Returns:
            Why it cannot be done; empty when it is.
        """
        ...
