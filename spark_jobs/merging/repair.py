"""Rows that a comparison found wrong, read again from the source and merged by the guard of the order key.

The rows bear the low watermark that was read before them, so that a change which comes later goes over them, and one that a merge
brings once more does not. The table's marker says up to where they may be ahead, as with rows that a merge reads back.
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import SparkSession
from tenacity import Retrying, retry_if_exception_type, stop_after_attempt

from cdc_lib.config.source import SourceConfig
from cdc_lib.errors import IncompatibleSchema, MergeConflict
from cdc_lib.merge.contribution import kept_fills
from cdc_lib.merge.plan import MergeInput
from cdc_lib.model.route import routed_schema
from cdc_lib.model.schema import SourceType
from cdc_lib.model.table_commit import Changes, Filled, TableCommit
from cdc_lib.ports import ObjectStore
from cdc_lib.reselect.rows import Refused, Reread, Reselector
from cdc_lib.store import layout
from cdc_lib.verify.canonical_text import float_of
from cdc_lib.verify.lake import Wrong
from spark_jobs.changes.frames import RowMapping, changes
from spark_jobs.lake_format import LAKE_FORMAT
from spark_jobs.runtime.session import table_session

ATTEMPTS = 3
"""How often rows are written again when another commit came first."""

_ARROW = {
    "int": pa.int32(),
    "bigint": pa.int64(),
    "string": pa.string(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "timestamp_ntz": pa.timestamp("us"),
    "timestamp": pa.timestamp("us", "UTC"),
    "float": pa.float32(),
    "double": pa.float64(),
}


@dataclass(frozen=True, slots=True)
class SparkRepairer:
    """Writes rows by Spark; implements :class:`cdc_lib.verify.lake.Repairer`.

    Args:
        spark: a session that :func:`spark_jobs.runtime.session.prepare` has seen.
        config: the source.
        store: where the rows lie on their way.
        reselector: reads them.
    """

    spark: SparkSession
    config: SourceConfig
    store: ObjectStore
    reselector: Reselector

    def repair(self, wrong: Wrong) -> str:
        """Put rows in the place of those with the same keys, and take out those that the source does not have."""
        found = self.reselector.read(wrong.schema, keys_of(wrong), wrong.stop)
        if isinstance(found, Refused):
            return found.why
        written = [layout.beside(found.batch.key, file.path) for file in found.batch.manifest.files]
        again = Retrying(stop=stop_after_attempt(ATTEMPTS), retry=retry_if_exception_type(MergeConflict), reraise=True)
        try:
            why: str = again(self._written, wrong, found)
        except IncompatibleSchema as error:
            return error.message
        finally:
            self.store.delete(written)
        return why

    def _written(self, wrong: Wrong, found: Reread) -> str:
        """Write rows that were read into the table as it is now; returns why that cannot be done, or nothing."""
        subject, table = wrong.subject, wrong.schema.name
        session = table_session(self.spark, self.config)
        routed = {table: wrong.target.routed}
        target = LAKE_FORMAT.table(session, subject.lake, self.config.source, routed)
        state = target.load()
        if state is None:
            return "the lake table does not exist yet: the first merge that has rows makes it"
        # Columns that no row brought yet come with these, and the other rows get what waits for them.
        [now] = found.batch.manifest.schemas.values()
        state = target.evolve(routed_schema(now, wrong.target))
        waits = state.markers[table].pending_defaults
        renames = [one for one in state.renames if one.table == table]
        fills = [
            Filled(one.before, column, one.added.value, subject.constants)
            for one, column in kept_fills(waits, renames, wrong.target.keeps)
        ]
        row = RowMapping(wrong.target.keeps, subject.constants)
        frame = changes(session, self.store, table, [MergeInput(found.batch, None)], state.columns, row)
        marker = state.markers[table].with_reselected(found.reach)
        target.upsert(Changes(frame, guard=True), TableCommit({table: marker}, fills=fills))
        return ""


def keys_of(wrong: Wrong) -> pa.Table:
    """Return the keys of rows as the lake holds them, from their texts."""
    cells = wrong.subject.keys
    columns = [_column(cell.column.type, [key[i] for key in wrong.keys]) for i, cell in enumerate(cells)]
    return pa.table(columns, names=[cell.column.name for cell in cells])


def _column(kind: SourceType, texts: list[str]) -> pa.Array:
    lake_type = kind.lake_type
    if lake_type == "binary":
        return pa.array([bytes.fromhex(text) for text in texts], pa.binary())
    if lake_type in ("float", "double"):
        return pa.array([float_of(text) for text in texts], _ARROW[lake_type])
    found = pa.array(texts, pa.string())
    if lake_type.startswith("decimal"):
        return found.cast(pa.decimal128(*(int(part) for part in lake_type[8:-1].split(","))))
    if lake_type == "timestamp":
        return found.cast(pa.timestamp("us")).cast(pa.int64()).cast(_ARROW[lake_type])
    return found.cast(_ARROW[lake_type])
