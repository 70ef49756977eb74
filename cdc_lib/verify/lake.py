"""Ports of a comparison to the lake: the library itself runs without Spark."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from cdc_lib.model.lake_table import LakeName, LakeTable
from cdc_lib.model.position import Point
from cdc_lib.model.route import Target
from cdc_lib.model.schema import TableSchema
from cdc_lib.model.table_name import TableName
from cdc_lib.verify.canonical_text import settled
from cdc_lib.verify.checksums import ListedRow, RangeBucket, Sum
from cdc_lib.verify.comparability import Subject
from cdc_lib.verify.judgement import RowState


def states_of(subject: Subject, rows: Iterable[tuple[str, Iterable[str | None], int, Point]]) -> dict[str, RowState]:
    """Return the rows of a lake table by their names.

    Args:
        subject: what is compared.
        rows: of each, its name, the texts of the compared columns, how often it counts, and the change that wrote it.
    """
    states: dict[str, RowState] = {}
    for name, texts, weight, written in rows:
        cells = tuple(settled(cell, text, subject.values) for cell, text in zip(subject.cells, texts, strict=True))
        before = states.get(name)
        copies = weight + (before.copies if before is not None else 0)
        at = max(written, before.written) if before is not None and before.written is not None else written
        states[name] = RowState(cells if subject.how != "copies" else (), copies, at, cells)
    return {name: state for name, state in states.items() if state.copies}


class LakeSums(Protocol):
    """Reads lake tables, each as of one of its snapshots; without a snapshot there are no rows.

    Every method raises MergeError, or a subclass, if the lake cannot be read.
    """

    def load(self, lake: LakeName, table: TableName, *, routed: bool) -> LakeTable | None:
        """Return the current state of a lake table, with the marker of ``database.table``; None if it is missing."""
        ...

    def parts(self, subject: Subject, snapshot: int | None, cuts: tuple[int, ...]) -> dict[RangeBucket, Sum]:
        """Return the checksums of all parts of a table, in one pass."""
        ...

    def listed(
        self, subject: Subject, snapshot: int | None, cuts: tuple[int, ...], parts: Collection[RangeBucket]
    ) -> list[ListedRow]:
        """Return the rows of some parts."""
        ...

    def rows(self, subject: Subject, snapshot: int | None, keys: Mapping[str, tuple[str, ...]]) -> dict[str, RowState]:
        """Return rows by their names, each with the texts of its key."""
        ...


@dataclass(frozen=True, slots=True)
class RepairRequest:
    """Rows of a table to read again from the source.

    Args:
        subject: the tables.
        target: the lake table's route.
        schema: all stored columns of the source.
        keys: texts of the rows' keys.
        stop: the rows must hold every change before it.
    """

    subject: Subject
    target: Target
    schema: TableSchema
    keys: Sequence[tuple[str, ...]]
    stop: Point


class Repairer(Protocol):
    """Writes the source's current rows into a lake table; raises the errors of :class:`LakeSums`, and SourceError."""

    def repair(self, wrong: RepairRequest) -> str:
        """Replace the rows of the keys with the source's rows, and delete those that the source does not have.

        Returns:
            Why it cannot be done; empty on success.
        """
        ...
