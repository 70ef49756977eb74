"""Rows of a merge that are read back from the source, where the log does not tell them whole or lies far behind.

The driver reads them, over a few connections, and writes them beside the batches: so Spark reads one and the same rows
however often it computes a stage again, and the log-in to the source stays in one process.
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
from cdc_lib.merge.plan import MergeInput
from cdc_lib.model.lake_table import LakeTable, Reselected
from cdc_lib.model.manifest import OP
from cdc_lib.model.merge_plan import MergePlan
from cdc_lib.model.position import Point
from cdc_lib.model.route import routed_schema
from cdc_lib.model.schema import TableSchema
from cdc_lib.ports import ObjectStore, Replaced
from cdc_lib.reselect.policy import reads_all
from cdc_lib.reselect.rows import Refused, Reread, Reselector
from cdc_lib.store import layout
from spark_jobs.changes.filters import filtered
from spark_jobs.changes.frames import RowMapping, changes
from spark_jobs.sql import belongs, quoted

Say = Callable[[str], None]
Origin = Callable[[], Reselector]
"""Opens the way to the source; asked only when rows are to be read back."""


@dataclass(frozen=True, slots=True)
class ReadBack:
    """Replaces changes of one lake table by the source's current rows; implements :class:`cdc_lib.ports.Reselect`.

    Args:
        session: to read in.
        config: the source.
        store: where rows are put on their way.
        plan: the merge.
        origin: the way to the source.
        lag: of the merge's windows.
        say: takes a line for each table that is looked up.
        evolve: gives the lake table the columns of a schema.
        shares: source tables, each with the newest version of its rows.
        written: keys of what was written, to be removed when the merge is over.
    """

    session: SparkSession
    config: SourceConfig
    store: ObjectStore
    plan: MergePlan
    origin: Origin
    lag: timedelta | None
    say: Say
    evolve: Callable[[TableSchema], LakeTable]
    shares: Sequence[tuple[RoutedTable, TableSchema]]
    written: list[str] = field(default_factory=list)

    def __call__(self, last: DataFrame, table: LakeTable) -> Replaced[DataFrame]:
        """Return the changes with the source's rows in the place of those that are looked up.

        Raises:
            ReselectError: rows that are needed cannot be read for now.
        """
        reached: dict[str, Reselected] = {}
        whys: list[str] = []
        before = table.columns
        for share, schema in self.shares:
            found = self._of(last, table, share, schema)
            if isinstance(found, str):
                whys.append(found)
            elif found is not None:
                last, reached[share.table], table = found
        columns = table.columns if table.columns != before else None
        return Replaced(last, reached, "; ".join(filter(None, whys)), columns)

    def reads_whole(self) -> bool:
        """Whether rows may be read back although the log tells them whole."""
        rules = [self.config.reselect.rule(share.database, share.name) for share, _ in self.shares]
        return any(reads_all(rule, self.lag) for rule in rules)

    def remove(self) -> None:
        """Remove what was written."""
        self.store.delete(self.written)
        self.written.clear()

    def _of(
        self, last: DataFrame, table: LakeTable, share: RoutedTable, schema: TableSchema
    ) -> tuple[DataFrame, Reselected, LakeTable] | str | None:
        """Replace rows of one source table.

        Returns:
            The changes, how far the rows reach, and the lake table with the columns that they have; None when there is
            nothing to do, or a text that says why it cannot be done.
        """
        rule = self.config.reselect.rule(share.database, share.name)
        if rule.mode == "never":
            return None
        wanted = self._wanted(last, rule)
        if wanted is None:
            return None
        constants = share.constants(self.config.source)
        if len(self.shares) > 1 and not constants:
            return "the lake table does not show which source table a row is from"
        mine = " AND ".join((wanted, *belongs(constants)))
        names = [quoted(name) for name in table.primary_key if name not in constants]
        keys = last.where(mine).selectExpr(*names).limit(rule.max_keys + 1).toArrow()
        if keys.num_rows == 0:
            return None
        found = self._read(keys, schema, rule)
        if isinstance(found, Reread):
            folder = found.batch.key
            self.written.extend(layout.beside(folder, file.path) for file in found.batch.manifest.files)
            last, table, found = self._with_added(last, table, share, found)
        if not isinstance(found, Reread):
            return self._without(last.where(mine), share, rule, found)
        self.say(
            f"{share.table}: {keys.num_rows} rows re-selected as of {tuple(found.reach.low)}, {found.missing} of them are gone"
        )
        row = RowMapping(share.target.keeps, constants)
        rows = changes(self.session, self.store, share.table, [MergeInput(found.batch, None)], table.columns, row)
        rows = filtered(rows, share.target.where, table.mode, share.table)
        if MISSING in last.columns:
            rows = rows.selectExpr("*", f"'' AS {MISSING}")
        return last.where(f"NOT ({mine})").unionByName(rows, allowMissingColumns=True), found.reach, table

    def _with_added(
        self, last: DataFrame, table: LakeTable, share: RoutedTable, found: Reread
    ) -> tuple[DataFrame, LakeTable, Reread | Refused]:
        """Give the lake table the columns that were added meanwhile.

        The windows that tell of them will find the rows newer, and bring them nothing.
        """
        [now] = found.batch.manifest.schemas.values()
        schema = routed_schema(now, share.target)
        if {one.name.lower() for one in schema.columns} <= {one.name.lower() for one in table.columns}:
            return last, table, found
        # The plan of the changes may read the lake table, and does not run any more when that has other columns.
        last = last.localCheckpoint()
        try:
            return last, self.evolve(schema), found
        except IncompatibleSchema as error:
            return last, table, Refused(error.message)

    def _read(self, keys: pa.Table, schema: TableSchema, rule: ReselectRule) -> Reread | Refused | ConfigError:
        if keys.num_rows > rule.max_keys:
            return Refused(f"more than {rule.max_keys} keys (reselect.max_keys)")
        try:
            return self.origin().read(schema, keys, Point.at(self.plan.epoch, self.plan.stop))
        except ConfigError as error:
            return error

    def _wanted(self, last: DataFrame, rule: ReselectRule) -> str | None:
        """Return the condition of the rows to look up; None when there is none for certain."""
        if reads_all(rule, self.lag):
            return f"{quoted(OP)} IN ('c', 'u')"  # rows of a snapshot's chunk were read by SELECT as it is
        return f"{quoted(OP)} <> 'd' AND {MISSING} <> ''" if MISSING in last.columns else None

    def _without(self, rows: DataFrame, share: RoutedTable, rule: ReselectRule, refused: Refused | ConfigError) -> str:
        """Go by the log's own images, as far as they are whole.

        Raises:
            ReselectError: they are not, or must not be taken, and trying again may help.
            ConfigError: the same, and the source file or the environment lacks something.
        """
        whole = MISSING not in rows.columns or rows.where(f"{MISSING} <> ''").isEmpty()
        needed = rule.mode == "always" or not whole
        if isinstance(refused, ConfigError):
            if needed:
                raise refused
            refused = Refused(refused.message)
        if refused.again and needed:
            raise ReselectError(
                f"rows cannot be read back from the source: {refused.why}",
                hint=f"cdc doctor {self.config.source} asks the source. With reselect.mode: auto whole rows are taken from the log "
                "meanwhile.",
                table=share.table,
            )
        self.say(f"{share.table}: goes by the log, because rows cannot be read back: {refused.why}")
        return "" if whole else refused.why
