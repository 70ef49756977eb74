"""What a merge knows of the source tables: their batches, and how the source file and answers treat them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from cdc_lib.config.source import SourceConfig
from cdc_lib.lake.routing import RoutedTable
from cdc_lib.merge.answers import policy_of
from cdc_lib.merge.column_policy import former_columns, narrowed
from cdc_lib.merge.contribution import Contribution
from cdc_lib.merge.load import replayed_batches
from cdc_lib.merge.plan import MergeInput, StoredBatch, following, refuse_partial_swap
from cdc_lib.merge.renames import known, renamed_schemas, renames_of
from cdc_lib.merge.replayed_defaults import limit_replays
from cdc_lib.merge.table_batches import TableBatches
from cdc_lib.merge.table_resets import statement_effects
from cdc_lib.model.column_rename import ColumnRename
from cdc_lib.model.cursor import DRAIN, Cursor, EpochChange
from cdc_lib.model.lake_table import LakeTable, Marker, marker_of
from cdc_lib.model.merge_plan import MergePlan
from cdc_lib.model.route import routed_schema
from cdc_lib.model.schema import TableSchema
from cdc_lib.model.schema_policy import SchemaPolicy
from cdc_lib.model.schema_question import SchemaAnswer
from cdc_lib.model.table_name import TableName
from cdc_lib.ports import ObjectStore
from cdc_lib.store.cursors import ObjectCursorStore

KeysOf = Callable[[StoredBatch], frozenset[tuple[str, ...]]]
"""Returns the primary keys that rows of a batch have in the lake table, in lower case."""

Counts = Callable[[TableName, Sequence[StoredBatch], Marker, LakeTable | None, KeysOf], Sequence[StoredBatch]]
"""Returns the batches to merge into a table."""


@dataclass(frozen=True, slots=True)
class SourceTables:
    """The source tables of a merge.

    Args:
        config: the source.
        store: holds the batches.
        plan: the plan.
        batches: those of each table, in order.
        answers: about schema changes, read once: all decisions of a merge see the same.
        counts: selects the batches of a table; None for all.
    """

    config: SourceConfig
    store: ObjectStore
    plan: MergePlan
    batches: TableBatches
    answers: Sequence[SchemaAnswer] = ()
    counts: Counts | None = None

    def of(self, table: TableName) -> Sequence[StoredBatch]:
        """Return the batches of the plan that hold something of a table, with nothing of other tables."""
        return self.batches.get(table, ())

    def counted(self, routed: RoutedTable, state: LakeTable | None) -> Sequence[StoredBatch]:
        """Return the batches of a table to merge."""
        batches = self.of(routed.table)
        if self.counts is None:
            return batches
        renames = self.renames(routed.table, state)

        def keys_of(batch: StoredBatch) -> frozenset[tuple[str, ...]]:
            schemas = renamed_schemas(routed.table, [batch], renames)
            keys = (routed_schema(schema, routed.target).primary_key for schema in schemas)
            return frozenset(tuple(name.lower() for name in key) for key in keys)

        return self.counts(routed.table, batches, self.known(routed.table, state), state, keys_of)

    def policy(self, table: TableName) -> SchemaPolicy:
        """Return what follows from schema changes of a table."""
        return policy_of(self.config, table, self.answers)

    def known(self, table: TableName, state: LakeTable | None) -> Marker:
        """Return the marker of a table; a blank one if another incarnation of the source wrote it."""
        marker = marker_of(state, table)
        return Marker() if marker.is_foreign_to(self.plan.source_uuid) else marker

    def renames(self, table: TableName, state: LakeTable | None) -> tuple[ColumnRename, ...]:
        """Return the renames of a table's columns."""
        return known(state, table, renames_of(table, self.of(table)))

    def schemas(
        self, routed: RoutedTable, batches: Iterable[StoredBatch], state: LakeTable | None
    ) -> tuple[TableSchema, ...]:
        """Return the schema versions of a table's rows, as in the lake."""
        schemas = renamed_schemas(routed.table, batches, self.renames(routed.table, state))
        return tuple(routed_schema(schema, routed.target) for schema in schemas)

    def epoch_changes(self) -> tuple[EpochChange, ...]:
        """Return how the source's epochs began."""
        drain = self._drain()
        return drain.epoch_changes if drain is not None else ()

    def _drain(self) -> Cursor | None:
        return ObjectCursorStore(self.store).load(self.config.source, DRAIN)

    def with_replay(self, part: Contribution, state: LakeTable | None) -> Contribution:
        """Add the windows that a late chunk must be merged with."""
        work, routed = part.work, part.routed
        if work.replay is None:
            return part
        drain, policy = self._drain(), self.policy(work.table)
        again = replayed_batches(self.store, self.config.source, work.table, work.replay, self.plan.quarantine, drain)
        schemas = renamed_schemas(work.table, again, part.renames)
        if policy.drop_column in ("follow", "ask") and state is not None:
            routed = replace(routed, target=narrowed(routed.target, former_columns(schemas, [*part.schemas, state])))
        older = tuple(routed_schema(schema, routed.target) for schema in schemas)
        refuse_partial_swap(work.table, again, work.replay[0])
        manifests = (batch.manifest for batch in again)
        before = statement_effects(work.table, manifests, work.replay[0], Marker(), policy)
        # Resets after the replay also remove rows of the replay.
        floor = max(filter(None, (work.reset_before, before.before)), default=None)
        inputs = (*work.inputs, *(MergeInput(batch, work.replay[0]) for batch in again))
        work = following(replace(work, inputs=inputs), replace(before, before=floor))
        work = limit_replays(work, drain.epoch_changes if drain is not None else ())
        return replace(part, routed=routed, work=work, schemas=(*older, *part.schemas))
