"""Repairs wrong rows: reads them from the source again and merges them with the order key guard.

The rows have the low watermark that was read before them, so a later change overwrites them, and an older change that is merged
again does not. The table's marker records how far they may be ahead, as for rows that a merge re-selects.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import SparkSession
from tenacity import Retrying, retry_if_exception_type, stop_after_attempt

from cdc_lib.apply.rows import LakeShape, changes_of
from cdc_lib.config.source import SourceConfig
from cdc_lib.errors import IncompatibleSchema, MergeConflict
from cdc_lib.merge.column_policy import without_added
from cdc_lib.merge.contribution import kept_fills
from cdc_lib.merge.plan import MergeInput
from cdc_lib.model.lake_table import LakeColumn
from cdc_lib.model.lake_types import fits
from cdc_lib.model.route import routed_schema
from cdc_lib.model.table_commit import Filled, TableCommit
from cdc_lib.ports import LakeRows, MergeChanges, ObjectStore
from cdc_lib.reselect.result import Refused, Reread
from cdc_lib.reselect.rows import Reselector
from cdc_lib.store import layout
from cdc_lib.store.clock import refuse_later_commit
from cdc_lib.verify.cell_arrays import key_columns
from cdc_lib.verify.lake import RepairRequest
from spark_jobs.lake_format import LAKE_FORMAT
from spark_jobs.runtime.session import java_now, table_session

ATTEMPTS = 3
"""Attempts to write rows when another commit comes first."""


@dataclass(frozen=True, slots=True)
class SparkRepairer:
    """Writes rows with Spark; implements :class:`cdc_lib.verify.lake.Repairer`.

    Args:
        spark: a session that :func:`spark_jobs.runtime.session.connect_catalog` has seen.
        config: the source.
        store: temporary storage of the rows.
        reselector: reads the rows.
    """

    spark: SparkSession
    config: SourceConfig
    store: ObjectStore
    reselector: Reselector

    def repair(self, request: RepairRequest) -> str:
        """Replace the rows of the keys with the source's rows, and delete those that the source does not have."""
        reread = self.reselector.read(request.schema, key_columns(request.subject.keys, request.keys), request.stop)
        if isinstance(reread, Refused):
            return reread.why
        written = [layout.beside(reread.batch.key, file.path) for file in reread.batch.manifest.files]
        again = Retrying(stop=stop_after_attempt(ATTEMPTS), retry=retry_if_exception_type(MergeConflict), reraise=True)
        try:
            why: str = again(self._written, request, reread)
        except IncompatibleSchema as error:
            return error.message
        finally:
            self.store.delete(written)
        return why

    def _written(self, request: RepairRequest, reread: Reread) -> str:
        """Write re-selected rows into the table; returns why that cannot be done, empty on success."""
        subject, table = request.subject, request.schema.name
        LAKE_FORMAT.prove(self.spark)
        session = table_session(self.spark, self.config)
        routed = {table: request.target.routed}
        target = LAKE_FORMAT.table(session, subject.lake, self.config.source, routed)
        state = target.load()
        if state is None:
            return "the lake table does not exist yet: the first merge that has rows makes it"
        refuse_later_commit(state.updated, java_now(session), str(subject.lake))
        # The re-selected rows may add columns to the table; older rows then get their pending defaults.
        [now] = reread.batch.manifest.schemas.values()
        policy = self.config.schema_changes.policy(*table.pair)
        route = without_added(policy, request.target, state, now.primary_key)
        state = target.evolve(routed_schema(now, route))
        waits = state.markers[table].pending_defaults
        renames = [one for one in state.renames if one.table == table]
        fills = [
            Filled(one.before, column, one.added.value, subject.constants, one.since)
            for one, column in kept_fills(waits, renames, route.keeps)
        ]
        # A merge reads a table again of which another column has the name by now.
        fills = [one for one in fills if _fits(one, state.columns)]
        marker, inputs = state.markers[table].with_reselected(reread.reach), [MergeInput(reread.batch, None)]
        commit = TableCommit({table: marker}, fills=fills, merge_id=marker.merge_id)

        def rows(lake: LakeRows) -> Iterator[pa.Table]:
            return changes_of(self.store, inputs, LakeShape(table, lake.fields, subject.constants, route.keeps))

        target.apply(MergeChanges(rows), commit)
        return ""


def _fits(fill: Filled, columns: Iterable[LakeColumn]) -> bool:
    column = fill.column_in(columns)
    return column is None or fill.value is None or fits(column.type, fill.value)
