"""One table of a merge, from its batches to its commit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from pyspark.sql import DataFrame, SparkSession
from tenacity import Retrying, retry_if_exception_type, stop_after_attempt

from cdc_lib.config.source import SourceConfig
from cdc_lib.errors import CorruptBatch, MergeConflict, MergeError
from cdc_lib.merge.evolve import mode_of
from cdc_lib.merge.plan import Batch, Piece, TableWork, has_arrived, schemas_of, work_on
from cdc_lib.model.lake import LakeName, LakeTable, Marker
from cdc_lib.model.merge import MergePlan, TableCut
from cdc_lib.model.schema import TableSchema
from cdc_lib.ports import MergeTarget, ObjectStore
from spark_jobs.batches import changes, replayed_batches
from spark_jobs.tables.faults import told
from spark_jobs.tables.iceberg import IcebergTable

ATTEMPTS = 3
"""How often a table is merged again when another commit came first, before the whole job gives up."""


@dataclass(frozen=True, slots=True)
class TableMerge:
    """What all tables of a merge have in common.

    Args:
        config: the source.
        store: where the batches lie.
        plan: the plan.
        batches: its batches, in order.
    """

    config: SourceConfig
    store: ObjectStore
    plan: MergePlan
    batches: Sequence[Batch]

    def run(self, session: SparkSession, table: str) -> TableCut:
        """Merge one table, and again when another commit came first.

        Raises:
            MergeError: and its kinds; the table stands as it stood.
            StoreError: a batch or the lake's storage cannot be read.
        """
        again = Retrying(stop=stop_after_attempt(ATTEMPTS), retry=retry_if_exception_type(MergeConflict), reraise=True)
        with told("merge", table):
            return again(self._attempt, session, table)

    def standing(self, session: SparkSession, cut: TableCut) -> TableCut | None:
        """Return a table that this merge has nothing for as it stands now; None when it is dropped.

        Its rows are those of the cut before; maintenance may have rewritten them into another snapshot.
        """
        stands = IcebergTable(session, lake_name(self.config, cut.table), self.config.source, cut.table).load()
        if stands is None or stands.snapshot_id is None:
            return None
        return replace(cut, lake_snapshot=stands.snapshot_id, changes=0)

    def _attempt(self, session: SparkSession, table: str) -> TableCut:
        schemas = schemas_of(table, self.batches)
        if not schemas:
            raise CorruptBatch(
                "a chunk of the table has neither rows nor a schema", hint="Drain the chunk again.", table=table
            )
        name = lake_name(self.config, table)
        target: MergeTarget[DataFrame] = IcebergTable(session, name, self.config.source, table)
        stands = target.load()
        mode = stands.mode if stands is not None else mode_of(schemas[-1])
        marker = stands.marker if stands is not None else Marker()
        work = work_on(table, mode, self.batches, marker, self.plan)
        applied = self._apply(session, target, work, schemas, stands) if work.pieces else 0
        after = target.load()
        if after is None or after.snapshot_id is None or not has_arrived(after.marker, work):
            raise MergeError(
                "the table does not stand where this merge was to bring it",
                hint="Look at the table's snapshots: something else writes to it.",
                table=table,
                lake_table=str(name),
            )
        return TableCut(table, str(name), after.snapshot_id, applied)

    def _apply(
        self,
        session: SparkSession,
        target: MergeTarget[DataFrame],
        work: TableWork,
        schemas: Sequence[TableSchema],
        stands: LakeTable | None,
    ) -> int:
        columns = (stands or target.create(schemas[0])).columns
        pieces = list(work.pieces)
        if work.replay is not None:
            replayed = replayed_batches(self.store, self.config.source, work.table, work.replay)
            pieces += [Piece(batch, work.replay[0]) for batch in replayed]
            schemas = (*schemas_of(work.table, replayed), *schemas)
        for schema in schemas:
            columns = target.evolve(schema).columns
        frame = changes(session, self.store, work.table, pieces, columns)
        if work.mode == "mirror":
            to_come = self.config.start == "snapshot" and not work.marker.has_snapshot
            return target.upsert(frame, marker=work.marker, guard=work.guard, snapshot_to_come=to_come)
        return target.append(frame, marker=work.marker, supersedes=work.supersedes)


def lake_name(config: SourceConfig, table: str) -> LakeName:
    """Return the lake table of ``database.table``; dots in ``lake.namespace`` divide its levels."""
    database, _, name = table.partition(".")
    namespace = config.lake.namespace_of(config.source, database)
    return LakeName(config.lake.catalog, tuple(namespace.split(".")), name)
