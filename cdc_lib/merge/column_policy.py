"""Which columns of a source table reach its lake table, where the source file does not follow each added or dropped one; pure.

A column counts as added or dropped in comparison with the source's columns at the last merge, which the table's marker
remembers. A merge that is repeated decides the same, also if it dropped the lake's columns before it ended.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from cdc_lib.lake.routing import RoutedTable
from cdc_lib.merge.chunks import end_of, is_newer
from cdc_lib.merge.column_statements import followed, names_word
from cdc_lib.merge.plan import MergeInput, StoredBatch
from cdc_lib.merge.renames import current_name, renamed_schemas
from cdc_lib.model.column_rename import ColumnRename
from cdc_lib.model.cursor import EpochChange
from cdc_lib.model.lake_table import LakeTable, Marker
from cdc_lib.model.manifest import Manifest
from cdc_lib.model.route import Target
from cdc_lib.model.schema import TableSchema
from cdc_lib.model.schema_policy import SchemaPolicy


@dataclass(frozen=True, slots=True)
class ColumnDecision:
    """What a merge does about columns that the source added or dropped.

    Args:
        added: columns that the source has and neither the lake nor the last merge.
        dropped: columns that the source had at the last merge and has no more, under their current names.
        left_out: lower-case names of columns whose values do not reach the lake, because the source dropped them.
        only: lower-case names of the columns that reach the lake; None for all.
        source_columns: what the marker remembers.
    """

    added: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()
    left_out: frozenset[str] = frozenset()
    only: frozenset[str] | None = None
    source_columns: tuple[str, ...] = ()

    def of(self, routed: RoutedTable) -> RoutedTable:
        """Return a source table whose other columns do not go into the lake table."""
        return replace(routed, target=narrowed(routed.target, self.left_out, self.only))


def narrowed(target: Target, left_out: frozenset[str], only: frozenset[str] | None = None) -> Target:
    """Return a route that also leaves out columns, by their lower-case names.

    Args:
        target: the route.
        left_out: columns that do not go into the lake table.
        only: columns of which it takes no others; None for all.
    """
    if not left_out and only is None:
        return target

    def keeps(column: str) -> bool:
        name = column.lower()
        return target.keeps(column) and name not in left_out and (only is None or name in only)

    return replace(target, keeps=keeps)


def without_added(policy: SchemaPolicy, target: Target, state: LakeTable, key: Sequence[str]) -> Target:
    """Return the route of rows that are read from the source, whose new columns no merge has decided about."""
    if policy.add_column == "follow":
        return target
    return narrowed(target, frozenset(), frozenset(name.lower() for name in (*key, *(c.name for c in state.columns))))


def decide_columns(
    policy: SchemaPolicy,
    routed: RoutedTable,
    inputs: Sequence[MergeInput],
    state: LakeTable | None,
    marker: Marker,
    renames: Sequence[ColumnRename],
    epoch_changes: Sequence[EpochChange] = (),
) -> ColumnDecision:
    """Decide which columns of a source table a merge adds, drops and leaves out.

    Args:
        policy: of the source table, with its answers; it does not follow each added and keep each dropped column.
        routed: the source table.
        inputs: what is merged of it.
        state: the lake table, after its columns were renamed; None if it does not exist.
        marker: of the source table, before the merge.
        renames: of the source table's columns, in order.
        epoch_changes: how the source's epochs began.
    """
    rows = _SchemaOrder.of(routed, [each.batch for each in inputs], marker, renames, epoch_changes)
    before = _before(marker, renames) or (_names(rows.new[0], routed) if rows.new else ())
    now = _united(before, rows.new, routed)
    if rows.newest is not None and rows.in_order:
        now = (*_names(rows.newest, routed), *(name for name in now if name.lower() in rows.unsure))
    has = frozenset(name.lower() for name in now)
    dropped = tuple(name for name in before if name.lower() not in has)
    decision = ColumnDecision((), dropped, frozenset(), None, now)
    passed = rows.passed(has) if policy.drop_column == "follow" else frozenset()
    decision = replace(decision, left_out=followed(policy, "drop_column", routed, dropped, inputs) | passed)
    if state is None or state.snapshot_id is None or not inputs:
        return decision  # a table without a commit gets all columns
    lake = {column.name.lower() for column in state.columns}
    key = {name.lower() for schema in rows.new for name in schema.primary_key}
    known = lake | key | {name.lower() for name in before if marker.source_columns}
    decision = replace(decision, added=tuple(name for name in now if name.lower() not in known))
    if policy.add_column != "follow":
        new = followed(policy, "add_column", routed, decision.added, inputs)
        decision = replace(decision, only=frozenset(lake | key | new))
    if policy.drop_column in ("follow", "ask"):
        former = former_columns(rows.merged, [*rows.new, state]) - has
        decision = replace(decision, left_out=decision.left_out | former)
    return decision


@dataclass(frozen=True, slots=True)
class _SchemaOrder:
    """The schemas of the rows of a merge, under the current column names.

    Args:
        merged: of rows that the table has, and of a chunk that was read before them.
        new: of the others, in the order in which the source had them.
        newest: the last of these, if it is certain that the source had no later one before; else None.
        unsure: lower-case names of columns that it lacks, and that may have been dropped and added again before its window ended.
        in_order: whether the order of the new ones is certain: rows of a snapshot may be newer than those of a later window, and
            older than those of an earlier one.
    """

    merged: tuple[TableSchema, ...]
    new: tuple[TableSchema, ...]
    newest: TableSchema | None
    unsure: frozenset[str]
    in_order: bool

    @classmethod
    def of(
        cls,
        routed: RoutedTable,
        batches: Iterable[StoredBatch],
        marker: Marker,
        renames: Sequence[ColumnRename],
        epoch_changes: Sequence[EpochChange],
    ) -> _SchemaOrder:
        placed = [
            (batch, schema)
            for batch in sorted(batches, key=lambda batch: end_of(batch.manifest))
            for schema in renamed_schemas(routed.table, [batch], renames)
        ]
        new = [one for one in placed if is_newer(one[0].manifest, end_of(one[0].manifest), marker)]
        certain = bool(new) and not _may_be_again(new[-1][0].manifest, epoch_changes)
        return cls(
            tuple(schema for batch, schema in placed if (batch, schema) not in new),
            tuple(schema for _, schema in new),
            new[-1][1] if certain else None,
            _unsure(routed, new[-1][0].manifest, [schema for _, schema in new]) if certain else frozenset(),
            len({batch.manifest.chunk is None for batch, _ in new}) < 2,
        )

    def passed(self, now: frozenset[str]) -> frozenset[str]:
        """Return the lower-case names of columns that the source had and dropped within the merge."""
        if self.newest is None or not self.in_order:
            return frozenset()
        return frozenset(column.name.lower() for schema in self.new for column in schema.columns) - now


def _unsure(routed: RoutedTable, manifest: Manifest, schemas: Sequence[TableSchema]) -> frozenset[str]:
    """Return columns that the last schema lacks and rows after it may have: a window names each schema of its rows once.

    A column that one statement names was dropped by it.
    """
    kinds = [one.kind for one in manifest.statements if one.table == routed.table]
    again = "create" in kinds or "create_if_missing" in kinds or kinds.count("swap") > 1
    has = {column.name.lower() for column in schemas[-1].columns}
    lacks = {column.name.lower() for schema in schemas for column in schema.columns} - has
    named = [one.statement for one in manifest.ddl if names_word(one.statement, routed.name)]
    return frozenset(name for name in lacks if again or sum(names_word(text, name) for text in named) > 1)


def _may_be_again(manifest: Manifest, epoch_changes: Iterable[EpochChange]) -> bool:
    """Whether a window may begin with changes that an earlier epoch had: after them, the source's table may have been altered."""
    earlier = [one for one in epoch_changes if one.epoch <= manifest.epoch]
    return manifest.window is not None and any(
        one.previous_end.has(manifest.gtid_first, manifest.first_time) for one in earlier
    )


def _united(before: Sequence[str], schemas: Iterable[TableSchema], routed: RoutedTable) -> tuple[str, ...]:
    """Return columns, and those of schemas that are not among them."""
    names = {name.lower(): name for name in before}
    for schema in schemas:
        for name in _names(schema, routed):
            names.setdefault(name.lower(), name)
    return tuple(names.values())


def former_columns(schemas: Iterable[TableSchema], now: Iterable[TableSchema | LakeTable]) -> frozenset[str]:
    """Return the lower-case names of columns of rows that neither the lake nor the source has."""
    has = {column.name.lower() for one in now for column in one.columns}
    return frozenset(column.name.lower() for schema in schemas for column in schema.columns) - has


def _before(marker: Marker, renames: Sequence[ColumnRename]) -> tuple[str, ...]:
    """Return the source's columns at the last merge under the names of now."""
    at = marker.merged_to
    later = [one for one in renames if at is None or one.at >= at]
    return tuple(current_name(name, later) for name in marker.source_columns)


def _names(schema: TableSchema, routed: RoutedTable) -> tuple[str, ...]:
    return tuple(column.name for column in schema.columns if routed.target.keeps(column.name))
