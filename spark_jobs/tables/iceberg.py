"""A lake table in Apache Iceberg, merge-on-read with deletion vectors.

An upsert is two steps, which were measured to cost half of one MERGE: a MERGE that only deletes, against the broadcast key
and order columns (or a DELETE that names few keys), then an append of the new rows. Both go to a branch that becomes the table in one commit. A single step
takes this way too: Iceberg lets two appends to a table pass beside each other, and only the branch tells that another merge
of the same batches, perhaps one that was given up and still runs, came first.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from cdc_lib.errors import MergeError
from cdc_lib.merge.collapse import DELETE, RANK, last_change_sql
from cdc_lib.merge.evolve import changes_for
from cdc_lib.merge.modes import MODES, mode_of
from cdc_lib.model.batch import ABSENT, EPOCH, OFFSET, OP
from cdc_lib.model.lake import (
    KEY_PROPERTY,
    LAKE_FILE,
    MODE_PROPERTY,
    ORDER,
    SOURCE_PROPERTY,
    TABLE_PROPERTY,
    LakeColumn,
    LakeName,
    LakeTable,
    Marker,
    Reselected,
    marker_property,
)
from cdc_lib.model.mode import IS_CURRENT, Mode
from cdc_lib.model.renamed import RENAMES_PROPERTY, Renamed, from_json, to_json
from cdc_lib.model.schema import TableSchema
from cdc_lib.ports import Filled, Replaced, Reselect, Superseded
from spark_jobs.session import set_for
from spark_jobs.sql import belongs, full_name, point, quoted, struct
from spark_jobs.tables.branches import drop_left_over, new_branch, publish, refuse_moved, start_branch
from spark_jobs.tables.complete import Completion, refuse_absent
from spark_jobs.tables.definition import become_sql, column_sql, create_sql, key_sql
from spark_jobs.tables.faults import is_missing, told
from spark_jobs.tables.fill import column_of, filled_columns, update_sql
from spark_jobs.tables.history import cut_sql, cuts_of, ended_before, spliced
from spark_jobs.tables.keys import FEW_KEYS, KeyRange, key_range, same_key
from spark_jobs.tables.renames import refuse_renamed, rename_columns
from spark_jobs.tables.snapshots import markers_of
from spark_jobs.tables.soft_delete import mark_sql, marked
from spark_jobs.tables.views import view_of

ROWS_PER_FILE = 250_000
"""An append of up to so many rows becomes one file, sorted by key."""

SOURCE_VIEW, LAST_VIEW, NEWER_VIEW, LEFT_VIEW = "cdc_changes", "cdc_last", "cdc_newer", "cdc_left"
SUMMARY_SETTING = "spark.sql.iceberg.snapshot-property."
"""Settings of this prefix put properties into the summary of every commit."""


class IcebergTable:
    """One Iceberg table; implements :class:`cdc_lib.ports.MergeTarget`.

    Args:
        session: a Spark session that no other thread uses meanwhile: the marker is a setting of it.
        name: the lake table.
        source: name of the source.
        tables: ``database.table`` at the source of each table whose rows go into it, and whether a route sends them; the
            first stands for all in messages and in the table's properties.
    """

    def __init__(self, session: SparkSession, name: LakeName, source: str, tables: Mapping[str, bool]) -> None:
        self._session = session
        self._name = name
        self._source = source
        self._tables = tables
        self._table = next(iter(tables))
        self._followed: tuple[Renamed, ...] | None = None  # the renames under whose names rows are put together

    def load(self) -> LakeTable | None:
        """Return the table as it stands now, or None when there is none."""
        with told("read the lake table", self._table):
            try:
                java = self._java()
            except (AnalysisException, Py4JJavaError) as error:
                if not is_missing(error):
                    raise
                return None
            snapshot = java.currentSnapshot()
            counted = snapshot.summary().get("total-records") if snapshot is not None else "0"
            properties = java.properties()  # a Java map: each look into it is a call
            owner = (properties.get(SOURCE_PROPERTY), properties.get(TABLE_PROPERTY))
            renames = from_json(properties.get(RENAMES_PROPERTY), self._table)
            self._followed = renames if self._followed is None else self._followed
            markers, carried = markers_of(self._session._jvm, java, self._source, self._tables, owner)  # noqa: SLF001
            return LakeTable(
                columns=self._columns(java),
                primary_key=tuple(json.loads(properties.get(KEY_PROPERTY) or "[]")),
                mode=_mode(properties.get(MODE_PROPERTY), self._table),
                marker=markers[self._table],
                snapshot_id=snapshot.snapshotId() if snapshot is not None else None,
                records=int(counted) if counted is not None else None,
                markers=markers,
                carried=carried,
                renames=renames,
            )

    def create(self, schema: TableSchema, wanted: Mode | None = None, renames: Sequence[Renamed] = ()) -> LakeTable:
        """Create the table without rows; the row's own columns come first."""
        mode = mode_of(schema, wanted)
        properties = {
            SOURCE_PROPERTY: self._source,
            TABLE_PROPERTY: self._table,
            **({RENAMES_PROPERTY: to_json(renames)} if renames else {}),
        }
        with told("create the lake table", self._table):
            self._sql(create_sql(self._name, schema, mode, properties))
        return self._loaded()

    def become(self, mode: Mode) -> LakeTable:
        """Go on in another mode: every step may be done again, and the mode is written last."""
        have = {column.name for column in self._loaded().columns}
        with told(f"give the lake table the mode {mode}", self._table):
            for statement in become_sql(self._name, mode, have):
                self._sql(statement)
        return self._loaded()

    def rename(self, stands: LakeTable, names: Mapping[str, str], renames: Sequence[Renamed]) -> LakeTable:
        """Give columns new names, all at once, and remember the renames that they follow, in the same commit."""
        with told("rename columns of the lake table", self._table):
            rename_columns(self._java(), stands, names, renames, self._table)
        self._followed = tuple(renames)
        return self._loaded()

    def evolve(self, schema: TableSchema) -> LakeTable:
        """Add and widen columns until rows of the schema fit; raises IncompatibleSchema where they cannot."""
        return self._grown(self._loaded(), schema)

    def rekey(self, schema: TableSchema) -> LakeTable:
        """Add and widen columns, and keep rows by the key of the schema; every step may be done again."""
        self._grown(replace(self._loaded(), primary_key=schema.primary_key), schema)
        with told("give the lake table another key", self._table):
            self._sql(key_sql(self._name, schema.primary_key))
        return self._loaded()

    def _grown(self, table: LakeTable, schema: TableSchema) -> LakeTable:
        changes = changes_for(table, schema)
        for change in changes:
            with told(f"change column {change.name} of the lake table", self._table):
                self._sql(column_sql(self._name, change))
        return self._loaded() if changes else table

    def upsert(
        self,
        changes: DataFrame,
        *,
        markers: Mapping[str, Marker],
        guard: bool,
        snapshot_to_come: bool = False,
        supersedes: Sequence[Superseded] = (),
        fills: Sequence[Filled] = (),
        reselect: Reselect[DataFrame] | None = None,
        most: int = 0,
    ) -> int:
        """Apply the last change of each key, or all where versions are kept, and return how many there were."""
        table = self._loaded()
        if table.mode == "history":
            changes = self._whole(table, changes, supersedes, fills, snapshot_to_come=snapshot_to_come)
            return self._splice(table, changes, markers, supersedes, fills, guard=guard)
        final = ABSENT not in changes.columns and not (reselect is not None and reselect.reads_whole())
        with told("merge", self._table):
            if table.empty and most > ROWS_PER_FILE and final:
                return self._load_first(table, changes, markers, supersedes, most)
            stays = table.mode == "soft_delete"
            gone = () if stays else tuple(_superseded(rule, "t") for rule in supersedes)
            completion = Completion(self._session, table, full_name(self._name), self._table, gone, fills, stays)
            last = self._last(table, changes, completion, snapshot_to_come=snapshot_to_come)
            # Few whole rows are read twice for less than it takes to keep them.
            few = final and 0 < most <= FEW_KEYS
            if not few:
                last.persist()
            try:
                # Computed from the frame that is kept; the rows that are read back for it lie in files.
                found = reselect(last, table) if reselect is not None else Replaced(last, {})
                if ABSENT in changes.columns:
                    completion.check(found.last, found.why)
                if found.columns is not None:
                    table = replace(table, columns=found.columns)
                with self._marked(table, {name: _reaching(m, found.reached.get(name)) for name, m in markers.items()}):
                    found.last.createOrReplaceTempView(self._view(LAST_VIEW))
                    keys = key_range(self._session, self._view(LAST_VIEW), table)
                    self._write(table, found.last, keys, guard=guard, supersedes=supersedes, fills=fills)
                return keys.rows
            finally:
                if not few:
                    last.unpersist()

    def _load_first(
        self,
        table: LakeTable,
        changes: DataFrame,
        markers: Mapping[str, Marker],
        supersedes: Sequence[Superseded],
        most: int,
    ) -> int:
        """Bring many changes into a table without rows, and return how many rows it has then.

        They are put into files by their keys before the last of each is taken: so they are shuffled and sorted once, and
        nothing of them is kept.
        """
        keys, stays = [quoted(name) for name in table.primary_key], table.mode == "soft_delete"
        last = self._last_change(table, changes.repartitionByRange(-(-most // ROWS_PER_FILE), *keys))
        rows = marked(last, cuts_of(supersedes)) if stays else last.where(f"{quoted(OP)} <> '{DELETE}'")
        with self._marked(table, markers), self._branch(table) as branch:
            self._write_sorted(table, rows, keys, branch)
        return self._loaded().records or 0

    def _last(
        self, table: LakeTable, changes: DataFrame, completion: Completion, *, snapshot_to_come: bool
    ) -> DataFrame:
        """Return the last change of each key, completed where changes lack cells."""
        if ABSENT in changes.columns:
            return completion.last(changes, snapshot_to_come=snapshot_to_come)
        return self._last_change(table, changes)

    def _last_change(self, table: LakeTable, changes: DataFrame) -> DataFrame:
        changes.createOrReplaceTempView(self._view(SOURCE_VIEW))
        return self._sql(last_change_sql(self._view(SOURCE_VIEW), table.primary_key, quoted)).drop(RANK)

    def _whole(
        self,
        table: LakeTable,
        changes: DataFrame,
        supersedes: Sequence[Superseded],
        fills: Sequence[Filled],
        *,
        snapshot_to_come: bool,
    ) -> DataFrame:
        """Complete all changes from the ones before them, and from the versions that stood then."""
        if ABSENT not in changes.columns:
            return changes
        with told("merge", self._table):
            ended = (ended_before(supersedes),)
            completion = Completion(self._session, table, full_name(self._name), self._table, ended, fills)
            whole = completion.every(changes, snapshot_to_come=snapshot_to_come)
            completion.check(whole, "every version is kept as it was (mode history)")
            return whole

    def _splice(
        self,
        table: LakeTable,
        changes: DataFrame,
        markers: Mapping[str, Marker],
        supersedes: Sequence[Superseded],
        fills: Sequence[Filled],
        *,
        guard: bool,
    ) -> int:
        """Make versions of all changes."""
        name, cuts = full_name(self._name), cuts_of(supersedes)
        with told("merge", self._table):
            with (
                self._marked(table, markers),
                spliced(self._session, table, name, changes, supersedes, guard=guard) as found,
                self._branch(table) as branch,
            ):
                lake = full_name(self._name, branch)
                if found.take_out:
                    self._sql(f"MERGE INTO {lake}{found.take_out}")
                for cut in () if table.empty else cuts:
                    self._sql(cut_sql(lake, cut))
                self._fill(table, fills, branch)
                new = found.new.withColumns(filled_columns(fills, table.columns)) if fills else found.new
                self._add(table, new, branch, found.rows)
            return found.changes

    def append(self, changes: DataFrame, *, markers: Mapping[str, Marker], supersedes: Sequence[Superseded]) -> int:
        """Add every change as a row and return how many there were."""
        table = self._loaded()
        with told("append", self._table), self._marked(table, markers):
            refuse_absent(changes, self._table)
            rows = changes.persist()
            try:
                count = rows.count()
                with self._branch(table) as branch:
                    for rule in () if table.empty else supersedes:
                        self._sql(f"DELETE FROM {full_name(self._name, branch)} WHERE {_superseded(rule)}")
                    self._add(table, rows, branch, count)
                return count
            finally:
                rows.unpersist()

    def _write(
        self,
        table: LakeTable,
        last: DataFrame,
        keys: KeyRange,
        *,
        guard: bool,
        supersedes: Sequence[Superseded],
        fills: Sequence[Filled],
    ) -> None:
        stays = table.mode == "soft_delete"
        rows = last if stays else last.where(f"{quoted(OP)} <> '{DELETE}'")
        stale = keys.rows > 0 and not table.empty
        if guard and stale:
            rows = self._without_outdated(table, rows, keys)
        cuts = cuts_of(supersedes) if stays else []
        with self._branch(table) as branch:
            for rule in () if table.empty or stays else supersedes:
                self._sql(f"DELETE FROM {full_name(self._name, branch)} WHERE {_superseded(rule)}")
            count = keys.rows if stays else keys.upserts
            if stale:
                # The marker stands in the commit of the rows, where there are some: Iceberg may delete without it.
                self._take_out(table, keys, branch, newest=not guard and count > 0)
            for cut in () if table.empty else cuts:
                self._sql(mark_sql(full_name(self._name, branch), cut))
            self._fill(table, fills, branch)
            if count or not stale:
                self._add(table, marked(rows, cuts) if stays else rows, branch, count)

    def _fill(self, table: LakeTable, fills: Sequence[Filled], branch: str) -> None:
        """Give standing rows what they have in columns that were added."""
        for one in () if table.empty else fills:
            if (column := column_of(one, table.columns)) is not None:
                self._sql(update_sql(full_name(self._name, branch), one, column))

    def _take_out(self, table: LakeTable, keys: KeyRange, branch: str, *, newest: bool) -> None:
        """Delete what the table has of these keys, unless it is newer; it is not where the changes are the newest."""
        if newest and keys.named is not None:
            # Takes an eighth less of a small merge than a join: whole files may go, and no order is compared.
            self._sql(f"DELETE FROM {full_name(self._name, branch)} WHERE {keys.named}")
            return
        self._sql(
            f"MERGE INTO {full_name(self._name, branch)} AS t USING {keys.relation} AS s"
            f" ON {same_key(table.primary_key)}{keys.within('t')}"
            f" WHEN MATCHED AND {struct(ORDER, 's')} >= {struct(ORDER, 't')} THEN DELETE"
        )

    def _without_outdated(self, table: LakeTable, rows: DataFrame, keys: KeyRange) -> DataFrame:
        """Leave out rows that the table has in a newer version."""
        names = ", ".join(f"s.{quoted(name)}" for name in table.primary_key)
        newer = self._sql(
            f"SELECT {names} FROM {full_name(self._name)} AS t JOIN {keys.relation} AS s"
            f" ON {same_key(table.primary_key)}{keys.within('t')} WHERE {struct(ORDER, 't')} > {struct(ORDER, 's')}"
        )
        newer.createOrReplaceTempView(self._view(NEWER_VIEW))
        rows.createOrReplaceTempView(self._view(LEFT_VIEW))  # the changes' own view is under what is kept of them
        condition = same_key(table.primary_key)
        return self._sql(
            f"SELECT s.* FROM {self._view(LEFT_VIEW)} AS s LEFT ANTI JOIN {self._view(NEWER_VIEW)} AS t ON {condition}"
        )

    def _add(self, table: LakeTable, rows: DataFrame, branch: str, count: int) -> None:
        """Append rows, in key order; an append of none commits as well, and carries the marker."""
        parted = (IS_CURRENT,) if table.mode == "history" else ()
        order = [quoted(name) for name in (*parted, *(table.primary_key or ORDER))]
        files = -(-count // ROWS_PER_FILE)
        self._write_sorted(
            table, rows.coalesce(1) if files <= 1 else rows.repartitionByRange(files, *order), order, branch
        )

    def _write_sorted(self, table: LakeTable, rows: DataFrame, order: Sequence[str], branch: str) -> None:
        """Append rows as they are parted, each part in order."""
        kept = rows.select(*(quoted(column.name) for column in table.columns))
        kept.sortWithinPartitions(*order).writeTo(full_name(self._name, branch)).append()

    @contextmanager
    def _branch(self, table: LakeTable) -> Iterator[str]:
        """Work on a branch that becomes the table when the block ends well.

        Its name is nobody else's, so that two merges of a table at once cannot write into one branch. When the block
        raises, the branch stays: the next merge clears it away.
        """
        java = self._java()
        drop_left_over(java, self._source)
        branch = new_branch(self._source)
        start_branch(java, branch, table.snapshot_id)
        yield branch
        java = self._java()
        refuse_moved(java, table.snapshot_id, self._table)
        refuse_renamed(java, table.renames if self._followed is None else self._followed, self._table)
        publish(java, branch)

    @contextmanager
    def _marked(self, table: LakeTable, markers: Mapping[str, Marker]) -> Iterator[None]:
        """Put the markers into every commit of the block, with those that other source tables have in the table."""
        own = {
            marker_property(self._source, name, routed=self._tables[name]): marker.to_json()
            for name, marker in markers.items()
        }
        settings = {f"{SUMMARY_SETTING}{name}": text for name, text in {**table.carried, **own}.items()}
        with set_for(self._session, settings):
            yield

    def _loaded(self) -> LakeTable:
        table = self.load()
        if table is None:
            raise AssertionError(f"{self._name} is loaded before it is created")
        return table

    def _java(self) -> Any:
        """Return Iceberg's own object of the table, fresh from the catalog."""
        session: Any = self._session
        # Branches have no SQL that publishes in one commit, and pyspark no public way to Iceberg's objects.
        load = session._jvm.org.apache.iceberg.spark.Spark3Util.loadIcebergTable  # noqa: SLF001
        return load(session._jsparkSession, full_name(self._name))  # noqa: SLF001

    def _columns(self, java: Any) -> tuple[LakeColumn, ...]:
        """Return the columns; by one call to Java, where Spark would analyse a query for them."""
        jvm: Any = self._session._jvm  # noqa: SLF001 - as above
        schema = jvm.org.apache.iceberg.spark.SparkSchemaUtil.convert(java.schema())
        fields = StructType.fromJson(json.loads(schema.json())).fields
        return tuple(LakeColumn(field.name, field.dataType.simpleString()) for field in fields)

    def _view(self, name: str) -> str:
        return view_of(self._session, name)

    def _sql(self, statement: str) -> DataFrame:
        return self._session.sql(statement)


def _mode(text: str | None, table: str) -> Mode:
    """Read the mode that a lake table was made in."""
    for mode in MODES:
        if (text or "append") == mode:
            return mode
    raise MergeError(
        f"the lake table's property {MODE_PROPERTY} is {text}, which this release does not know",
        hint="A newer release made the table: merge with that one. Or it is another tool's: drop or rename it.",
        table=table,
    )


def _reaching(marker: Marker, reached: Reselected | None) -> Marker:
    return marker if reached is None else marker.with_reselected(reached)


def _superseded(rule: Superseded, alias: str = "") -> str:
    """Return the condition of the rows that are taken out."""
    of = f"{alias}." if alias else ""
    older = [f"{struct((EPOCH, LAKE_FILE, OFFSET), alias)} < {point(rule.before)}"]
    older += [] if rule.since is None else [f"{struct((EPOCH, LAKE_FILE, OFFSET), alias)} >= {point(rule.since)}"]
    older += [] if rule.reads else [f"{of}{quoted(OP)} <> 'r'"]
    whose = belongs(rule.columns, alias)
    return " AND ".join((*older, *whose))


def ensure_namespaces(spark: SparkSession, names: Iterable[LakeName]) -> None:
    """Create the namespaces of tables, once and before the tables' threads race for it."""
    for catalog, namespace in sorted({(name.catalog, name.namespace) for name in names}):
        parts = ".".join(map(quoted, (catalog, *namespace)))
        with told("create the namespace", parts):
            if not spark.catalog.databaseExists(parts):
                spark.sql(f"CREATE NAMESPACE IF NOT EXISTS {parts}")
