"""The statements at which the source changed columns, from the manifests of a merge: pure."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from cdc_lib.lake.routing import RoutedTable
from cdc_lib.merge.plan import MergeInput
from cdc_lib.model.manifest import Manifest, chunk_of
from cdc_lib.model.position import Point, Position
from cdc_lib.model.schema_policy import SchemaPolicy
from cdc_lib.model.schema_question import SchemaChangeKind


@dataclass(frozen=True, slots=True)
class ColumnStatement:
    """Where the source changed a column.

    Args:
        epoch: of the position.
        position: of the statement. If an earlier merge had it, the start of the merge's first batch.
        text: of the statement; empty if the merge does not have it.
    """

    epoch: int
    position: Position
    text: str = ""

    @property
    def point(self) -> Point:
        """The position in the order of all changes."""
        return Point.at(self.epoch, self.position)


def statement_of(routed: RoutedTable, columns: Collection[str], inputs: Sequence[MergeInput]) -> ColumnStatement:
    """Return the last statement of a merge that names the table and one of the columns.

    Args:
        routed: the source table.
        columns: their names at the source.
        inputs: what is merged of the table; at least one.
    """
    named = [one for one in statements_on(routed, inputs) if any(names_word(one.text, name) for name in columns)]
    if named:
        return named[-1]
    first = inputs[0].batch.manifest
    return ColumnStatement(first.epoch, _start(first))


def statements_on(routed: RoutedTable, inputs: Iterable[MergeInput]) -> list[ColumnStatement]:
    """Return the statements of a merge that name a table, in their order."""
    return [
        ColumnStatement(each.batch.manifest.epoch, one.position, one.statement)
        for each in inputs
        for one in each.batch.manifest.ddl
        if names_word(one.statement, routed.name)
    ]


def followed(
    policy: SchemaPolicy,
    kind: SchemaChangeKind,
    routed: RoutedTable,
    columns: Iterable[str],
    inputs: Sequence[MergeInput],
) -> frozenset[str]:
    """Return the lower-case names of the columns whose change the lake follows.

    Args:
        policy: of the source table, with its answers.
        kind: the kind of change.
        routed: the source table.
        columns: the changed ones.
        inputs: what is merged of the table.
    """
    return frozenset(
        name.lower()
        for name in columns
        if policy.of(kind) == "follow"
        or (policy.of(kind) == "ask" and policy.at(kind, statement_of(routed, [name], inputs).point) == "follow")
    )


def names_word(statement: str, word: str) -> bool:
    """Whether a statement has a name as a word."""
    return re.search(rf"(?<!\w){re.escape(word)}(?!\w)", statement, re.IGNORECASE) is not None


def _start(manifest: Manifest) -> Position:
    return manifest.window.start if manifest.window is not None else chunk_of(manifest).low_watermark
