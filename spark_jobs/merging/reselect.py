"""Re-selects rows of a merge from the source, if the binlog has them incomplete or the merge leaves out much of it.

The driver reads them over a few connections and writes them next to the batches: so Spark gets the same rows when it computes
a stage again, and the log-in to the source stays in one process.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from cdc_lib.config.reselect import ReselectRule
from cdc_lib.config.source import SourceConfig
from cdc_lib.errors import ConfigError, IncompatibleSchema, ReselectError
from cdc_lib.lake.routing import RoutedTable
from cdc_lib.merge.collapse import MISSING
from cdc_lib.merge.plan import MergeInput, rows_not_logged
from cdc_lib.model.lake_table import LakeTable, Reselected
from cdc_lib.model.lexer import quoted
from cdc_lib.model.manifest import OP
from cdc_lib.model.merge_plan import MergePlan
from cdc_lib.model.pace import counted
from cdc_lib.model.position import Point
from cdc_lib.model.route import routed_schema
from cdc_lib.model.schema import TableSchema
from cdc_lib.ports import ObjectStore, Replaced
from cdc_lib.reselect.policy import reads_all
from cdc_lib.reselect.rows import Refused, Reread
from cdc_lib.store import layout
from spark_jobs.changes.filters import filtered
from spark_jobs.changes.frames import RowMapping, changes
from spark_jobs.merging.source_rows import Origin, Say
from spark_jobs.sql import belongs


@dataclass(frozen=True, slots=True)
class SourceReselect:
    """Replaces changes of one lake table by the source's current rows; implements :class:`cdc_lib.ports.Reselect`.

    Args:
        session: the Spark session.
        config: the source.
        store: temporary storage of the rows.
        plan: the merge.
        origin: opens the source.
        lag: of the merge; see :mod:`cdc_lib.reselect.policy`.
        say: receives a line for each re-selected table.
        evolve: adds the columns of a schema to the lake table.
        routed_tables: source tables, each with its newest schema.
        written: keys of the written files, which are removed after the merge.
    """

    session: SparkSession
    config: SourceConfig
    store: ObjectStore
    plan: MergePlan
    origin: Origin
    lag: timedelta | None
    say: Say
    evolve: Callable[[TableSchema], LakeTable]
    routed_tables: Sequence[tuple[RoutedTable, TableSchema]]
    written: list[str] = field(default_factory=list)

    def __call__(self, last: DataFrame, table: LakeTable) -> Replaced[DataFrame]:
        """Return the changes with re-selected rows in place of incomplete or old ones.

        Raises:
            ReselectError: rows that are needed cannot be read now.
        """
        reached: dict[str, Reselected] = {}
        reasons: list[str] = []
        before = table.columns
        for routed, schema in self.routed_tables:
            outcome = self._of(last, table, routed, schema)
            if isinstance(outcome, str):
                reasons.append(outcome)
            elif outcome is not None:
                last, reached[routed.table], table = outcome
        columns = table.columns if table.columns != before else None
        return Replaced(last, reached, "; ".join(filter(None, reasons)), columns)

    def reads_whole(self) -> bool:
        """Whether rows may be re-selected although they are complete in the binlog."""
        rules = [self.config.reselect.rule(routed.database, routed.name) for routed, _ in self.routed_tables]
        return any(reads_all(rule, self.lag) for rule in rules)

    def remove(self) -> None:
        """Remove the written files."""
        self.store.delete(self.written)
        self.written.clear()

    def _of(
        self, last: DataFrame, table: LakeTable, routed: RoutedTable, schema: TableSchema
    ) -> tuple[DataFrame, Reselected, LakeTable] | str | None:
        """Replace rows of one source table.

        Returns:
            The changes, the watermarks of the rows, and the lake table with their columns; None if there is nothing to do,
            or a text that says why it cannot be done.
        """
        rule = self.config.reselect.rule(routed.database, routed.name)
        if rule.mode == "never":
            return None
        condition = self._condition(last, rule)
        if condition is None:
            return None
        constants = routed.constants(self.config.source)
        if len(self.routed_tables) > 1 and not constants:
            return "the lake table does not show which source table a row is from"
        replaced = " AND ".join((condition, *belongs(constants)))
        names = [quoted(name) for name in table.primary_key if name not in constants]
        keys = last.where(replaced).selectExpr(*names).limit(rule.max_keys + 1).toArrow()
        if keys.num_rows == 0:
            return None
        found = self._read(keys, schema, rule)
        if isinstance(found, Reread):
            folder = found.batch.key
            self.written.extend(layout.beside(folder, file.path) for file in found.batch.manifest.files)
            last, table, found = self._with_added(last, table, routed, found)
        if not isinstance(found, Reread):
            return self._without(last.where(replaced), routed, rule, found)
        self.say(
            f"{routed.table}: {counted(keys.num_rows, 'row')} re-selected as of {found.reach.low.file:06d}:{found.reach.low.offset}, "
            f"{found.missing} of them deleted"
        )
        row = RowMapping(routed.target.keeps, constants)
        rows = changes(self.session, self.store, routed.table, [MergeInput(found.batch, None)], table.columns, row)
        rows = filtered(rows, routed.target.where, table.mode, routed.table)
        if MISSING in last.columns:
            rows = rows.selectExpr("*", f"'' AS {MISSING}")
        return last.where(f"NOT ({replaced})").unionByName(rows, allowMissingColumns=True), found.reach, table

    def _with_added(
        self, last: DataFrame, table: LakeTable, routed: RoutedTable, found: Reread
    ) -> tuple[DataFrame, LakeTable, Reread | Refused]:
        """Add the columns to the lake table that were added at the source in between.

        The windows that add them will find the rows newer, and not change them.
        """
        [now] = found.batch.manifest.schemas.values()
        schema = routed_schema(now, routed.target)
        if {one.name.lower() for one in schema.columns} <= {one.name.lower() for one in table.columns}:
            return last, table, found
        # The frame's plan may read the lake table, and no longer runs after a change of its columns.
        last = last.localCheckpoint()
        try:
            return last, self.evolve(schema), found
        except IncompatibleSchema as error:
            return last, table, Refused(error.message, replaced=True)

    def _read(self, keys: pa.Table, schema: TableSchema, rule: ReselectRule) -> Reread | Refused | ConfigError:
        if keys.num_rows > rule.max_keys:
            return Refused(f"more than {rule.max_keys} keys (reselect.max_keys)")
        try:
            return self.origin().read(schema, keys, Point.at(self.plan.epoch, self.plan.stop))
        except ConfigError as error:
            return error

    def _condition(self, last: DataFrame, rule: ReselectRule) -> str | None:
        """Return the condition of the rows to re-select; None if there are certainly none."""
        if reads_all(rule, self.lag):
            return f"{quoted(OP)} IN ('c', 'u')"  # rows of a snapshot chunk were read by SELECT already
        return f"{quoted(OP)} <> 'd' AND {MISSING} <> ''" if MISSING in last.columns else None

    def _without(self, rows: DataFrame, routed: RoutedTable, rule: ReselectRule, refused: Refused | ConfigError) -> str:
        """Use the row images of the binlog, as far as they are complete.

        Raises:
            ReselectError: they are incomplete, or must not be used, and a retry may succeed.
            ConfigError: they are incomplete, or must not be used, because of the source file or the environment.
            ValuesNotLogged: they are incomplete, and the source no longer has the table that they are of.
        """
        complete = MISSING not in rows.columns or rows.where(f"{MISSING} <> ''").isEmpty()
        needed = rule.mode == "always" or not complete
        if isinstance(refused, ConfigError):
            if needed:
                raise refused
            refused = Refused(refused.message)
        if refused.again and needed:
            raise ReselectError(
                f"rows cannot be read back from the source: {refused.why}",
                hint=f"cdc doctor {self.config.source} asks the source. With reselect.mode: auto whole rows are taken from the log "
                "meanwhile.",
                table=routed.table,
            )
        if refused.replaced and not complete:
            raise rows_not_logged(routed.table, f"they cannot be read from the source: {refused.why}")
        self.say(f"{routed.table}: goes by the log, because rows cannot be read back: {refused.why}")
        return "" if complete else refused.why
