"""Rows that a merge reads from the source, if the binlog has them incomplete or the merge leaves out much of it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import SparkSession

from cdc_lib.apply.removals import is_of_source
from cdc_lib.apply.rows import LakeShape, changes_of, last_changes
from cdc_lib.config.reselect import ReselectRule
from cdc_lib.config.source import SourceConfig
from cdc_lib.errors import ConfigError, ReselectError
from cdc_lib.lake.routing import RoutedTable
from cdc_lib.merge.collapse import INSERT
from cdc_lib.merge.plan import MergeInput, rows_not_logged
from cdc_lib.model.lake_table import LakeColumn, Reselected
from cdc_lib.model.manifest import OP
from cdc_lib.model.merge_plan import MergePlan
from cdc_lib.model.pace import counted
from cdc_lib.model.position import Point
from cdc_lib.model.route import routed_schema
from cdc_lib.model.schema import TableSchema
from cdc_lib.model.table_mode import Mode
from cdc_lib.model.table_name import TableName
from cdc_lib.ports import ObjectStore
from cdc_lib.reselect.policy import reads_all
from cdc_lib.reselect.result import Refused, Reread
from cdc_lib.store import layout
from spark_jobs.changes.in_spark import filtered_here

if TYPE_CHECKING:
    # It takes the driver and the decoder along, which few merges need.
    from cdc_lib.reselect.rows import Reselector

Say = Callable[[str], None]
Origin = Callable[[], "Reselector"]
"""Opens the source; called only if rows are re-selected."""


class ColumnsAdded(Exception):
    """The source has columns that the lake table lacks: they are added, and the rows are applied once more.

    Args:
        table: the source table.
        schema: its schema with these columns, by the lake's names.
    """

    def __init__(self, table: TableName, schema: TableSchema) -> None:
        super().__init__(table)
        self.table = table
        self.schema = schema


@dataclass(frozen=True, slots=True)
class SourceRows:
    """Reads the current rows of changed keys of one lake table; parts of the changes may be asked for at the same time.

    Args:
        session: for predicates.
        config: the source.
        store: temporary storage of the rows.
        plan: the merge.
        origin: opens the source.
        lag: of the merge; see :mod:`cdc_lib.reselect.policy`.
        say: receives a line for each look-up.
        columns: of the lake table.
        mode: of the lake table.
        tables: source tables, each with its newest schema.
        refused: source tables whose rows cannot be read, and why.
        reached: source tables with the watermarks of their rows, for each look-up.
        asked: number of looked up keys by source table.
        said: source tables whose rows go by the log.
        turn: of the part that reads, so that no more connections are open than the source file allows.
    """

    session: SparkSession
    config: SourceConfig
    store: ObjectStore
    plan: MergePlan
    origin: Origin
    lag: timedelta | None
    say: Say
    columns: Sequence[LakeColumn]
    mode: Mode
    tables: Sequence[tuple[RoutedTable, TableSchema]]
    refused: dict[TableName, Refused | ConfigError]
    reached: list[tuple[TableName, Reselected]] = field(default_factory=list)
    asked: dict[TableName, int] = field(default_factory=dict)
    said: set[TableName] = field(default_factory=set)
    lock: threading.Lock = field(default_factory=threading.Lock)
    turn: threading.Lock = field(default_factory=threading.Lock)

    def added_to(self, changes: pa.Table, key: Sequence[str]) -> pa.Table:
        """Return changes with the current rows of all changed keys, if the merge lags: they are the last changes of these keys.

        Args:
            changes: with ``_absent``.
            key: names of the key's columns.

        Raises:
            ColumnsAdded: the rows have columns that the lake table lacks.
            ReselectError: rows that are needed cannot be read now.
            ConfigError: rows that are needed cannot be read because of the source file or the environment.
        """
        found = [changes]
        for routed, schema, rule in self._asked_tables():
            if not reads_all(rule, self.lag):
                continue
            # Rows of a snapshot's chunk were read by SELECT already.
            last = last_changes(changes, key, begins=False)
            last = last.filter(pc.is_in(last.column(OP), pa.array([INSERT, "u"])))
            rows = self._read(self._of(routed, last), key, routed, schema, rule)
            if rows is not None:
                found.append(rows)
            elif routed.table in self.refused:
                self._goes_by_the_log(routed, rule, complete=True)
        return pa.concat_tables(found)

    def instead_of(self, lacking: pa.Table, key: Sequence[str]) -> tuple[pa.Table, str]:
        """Return the current rows of incomplete changes, and why there are not all of them.

        Args:
            lacking: last changes of their keys.
            key: names of the key's columns.

        Raises:
            ColumnsAdded: the rows have columns that the lake table lacks.
            ReselectError: the rows cannot be read now.
            ConfigError: the rows cannot be read because of the source file or the environment.
            ValuesNotLogged: the source no longer has the table that they are of.
        """
        found, reasons = [lacking.schema.empty_table()], []
        for routed, schema, rule in self._asked_tables():
            if len(self.tables) > 1 and not routed.constants(self.config.source):
                reasons.append("the lake table does not show which source table a row is from")
                continue
            of_table = self._of(routed, lacking)
            rows = self._read(of_table, key, routed, schema, rule)
            if rows is not None:
                found.append(rows)
            elif of_table.num_rows:
                reasons.append(self._goes_by_the_log(routed, rule, complete=False))
        return pa.concat_tables([rows.select(lacking.column_names) for rows in found]), "; ".join(reasons)

    def _asked_tables(self) -> list[tuple[RoutedTable, TableSchema, ReselectRule]]:
        rules = ((*one, self.config.reselect.rule(one[0].database, one[0].name)) for one in self.tables)
        return [one for one in rules if one[2].mode != "never"]

    def _of(self, routed: RoutedTable, rows: pa.Table) -> pa.Table:
        return rows.filter(pa.array(is_of_source(routed.constants(self.config.source), rows)))

    def _read(
        self, rows: pa.Table, key: Sequence[str], routed: RoutedTable, schema: TableSchema, rule: ReselectRule
    ) -> pa.Table | None:
        """Return the current rows in place of changes, with ``_absent``; None if there are no changes, or if they are refused."""
        table, constants = routed.table, routed.constants(self.config.source)
        if not rows.num_rows or table in self.refused or (len(self.tables) > 1 and not constants):
            return None
        with self.lock:
            self.asked[table] = self.asked.get(table, 0) + rows.num_rows
            if self.asked[table] > rule.max_keys:
                self.refused[table] = Refused(f"more than {rule.max_keys} keys (reselect.max_keys)")
                return None
        keys = rows.select([name for name in key if name not in constants])
        try:
            with self.turn:
                found = self.origin().read(schema, keys, Point.at(self.plan.epoch, self.plan.stop))
        except ConfigError as error:
            self.refused[table] = error
            return None
        if isinstance(found, Refused):
            self.refused[table] = found
            return None
        return self._in_shape(found, routed, rows)

    def _in_shape(self, found: Reread, routed: RoutedTable, instead: pa.Table) -> pa.Table:
        """Return rows in the columns of the lake table.

        The windows that add further columns will find the rows newer, and not change them.
        """
        [now] = found.batch.manifest.schemas.values()
        lake = routed_schema(now, routed.target)
        try:
            if not {one.name.lower() for one in lake.columns} <= {one.name.lower() for one in self.columns}:
                raise ColumnsAdded(routed.table, lake)
            fields = tuple(field for field in instead.schema if field.name in {one.name for one in self.columns})
            constants = routed.constants(self.config.source)
            shape = LakeShape(routed.table, fields, constants, routed.target.keeps)
            rows = pa.concat_tables(changes_of(self.store, [MergeInput(found.batch, None)], shape))
        finally:
            self.store.delete([layout.beside(found.batch.key, file.path) for file in found.batch.manifest.files])
        with self.lock:
            self.reached.append((routed.table, found.reach))
            low = found.reach.low
            self.say(
                f"{routed.table}: {counted(instead.num_rows, 'row')} re-selected as of {low.file:06d}:{low.offset}, "
                f"{found.missing} of them deleted"
            )
        return filtered_here(self.session, rows, self.columns, routed.target.where, self.mode, routed.table)

    def _goes_by_the_log(self, routed: RoutedTable, rule: ReselectRule, *, complete: bool) -> str:
        """Use the row images of the binlog, as far as they are complete; returns why.

        Raises:
            ReselectError: they are incomplete, or must not be used, and a retry may succeed.
            ConfigError: they are incomplete, or must not be used, because of the source file or the environment.
            ValuesNotLogged: they are incomplete, and the source no longer has the table that they are of.
        """
        refused, needed = self.refused[routed.table], rule.mode == "always" or not complete
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
        with self.lock:
            if routed.table not in self.said:
                self.said.add(routed.table)
                self.say(f"{routed.table}: goes by the log, because rows cannot be read back: {refused.why}")
        return refused.why
