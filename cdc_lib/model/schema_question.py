"""A schema change that waits for a person, and the answer: values that the store keeps."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from cdc_lib.model.position import Point, Position
from cdc_lib.model.table_name import TableName

SchemaChangeKind = Literal["add_column", "drop_column", "widen", "narrow", "rename", "drop_table", "truncate"]
"""The kinds of changes that have a behaviour, named like their keys in the source file."""

Decision = Literal["follow", "keep"]
"""follow: the lake does as the source; keep: the lake keeps what it has."""

DECISIONS: Mapping[SchemaChangeKind, tuple[Decision, ...]] = {
    "add_column": ("follow", "keep"),
    "drop_column": ("follow", "keep"),
    "widen": ("follow",),
    "narrow": ("keep",),
    "rename": ("follow",),
    "drop_table": ("follow", "keep"),
    "truncate": ("follow", "keep"),
}
"""The decisions that leave the rows of the lake right, for each kind."""


@dataclass(frozen=True, slots=True)
class SchemaQuestion:
    """A statement at which a table waits for an answer.

    Args:
        table: the source table.
        kind: the kind of change.
        epoch: of the position.
        position: of the statement. If an earlier merge had it, the start of the first batch of the merge that asks.
    """

    table: TableName
    kind: SchemaChangeKind
    epoch: int
    position: Position

    @property
    def point(self) -> Point:
        """The position in the order of all changes."""
        return Point.at(self.epoch, self.position)


@dataclass(frozen=True, slots=True)
class SchemaAnswer:
    """What a person decided about one statement of one table.

    Args:
        source: name of the source.
        question: the statement.
        decision: what the lake does.
        by: who answered, for people.
        at: when (UTC).
    """

    source: str
    question: SchemaQuestion
    decision: Decision
    by: str
    at: datetime
