"""The definition of a lake table in Iceberg: columns, key, mode, layout, names and comments, and the state that a job read first."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlsplit

from py4j.protocol import Py4JJavaError
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession

from cdc_lib.errors import CorruptBatch, MergeError
from cdc_lib.lake.comments import COMMENTS_PROPERTY, carried_comments, comment_change
from cdc_lib.lake.computed import computed_changes
from cdc_lib.lake.evolution import changes_for, with_changes
from cdc_lib.lake.layout import change_of_layout, refuse_dropped
from cdc_lib.lake.modes import MODES, mode_of
from cdc_lib.model.column_rename import RENAMES_PROPERTY, ColumnRename, from_json, to_json
from cdc_lib.model.comments import TableComments
from cdc_lib.model.foreign import Past
from cdc_lib.model.lake_table import (
    COMPUTED_PROPERTY,
    DROPPED_PROPERTY,
    KEY_PROPERTY,
    MODE_PROPERTY,
    SOURCE_PROPERTY,
    TABLE_PROPERTY,
    TRIED_PROPERTY,
    TYPES_PROPERTY,
    LakeColumn,
    LakeName,
    LakeTable,
    computed_from,
    refuse_moved,
)
from cdc_lib.model.layout import DEFAULT_LAYOUT, LAYOUT_PROPERTY, Layout
from cdc_lib.model.schema import TableSchema
from cdc_lib.model.table_mode import Mode
from cdc_lib.model.table_name import TableName
from spark_jobs.errors import is_missing, lacks_metadata, said, translate_errors
from spark_jobs.iceberg.beginning import Beginning, begun_again
from spark_jobs.iceberg.comments import COMMENT_PROPERTY, change_comments
from spark_jobs.iceberg.commits_since import past_of
from spark_jobs.iceberg.ddl import (
    COPIES,
    WRITE_MODES,
    become_sql,
    column_sql,
    create_sql,
    forget_identity_sql,
    key_clauses,
    key_sql,
    order_sql,
    set_sql,
)
from spark_jobs.iceberg.dropped_columns import drop_columns, dropped_fields, partition_columns
from spark_jobs.iceberg.layout_change import change_sql
from spark_jobs.iceberg.loading import drop_table, identity_of, load_metadata, load_table, metadata_of
from spark_jobs.iceberg.locations import location_of
from spark_jobs.iceberg.markers import markers_of
from spark_jobs.iceberg.renames import refuse_redefined, rename_columns
from spark_jobs.iceberg.row_delta import current_snapshot, rows_of
from spark_jobs.iceberg.table_metadata import TableMetadata


@dataclass(frozen=True, slots=True)
class Read:
    """The snapshot that a job read first; None for a table without snapshots."""

    snapshot: int | None


@dataclass(frozen=True, slots=True)
class LoadedTable:
    """A table as a job loaded it last.

    Args:
        java: Iceberg's object.
        metadata: of the table.
        state: what they say.
    """

    java: Any
    metadata: TableMetadata
    state: LakeTable


class DefinedTable:
    """One Iceberg table without its rows: what its metadata say of it, and how that is changed.

    Args:
        session: a Spark session that no other thread uses, because the marker is a session setting.
        name: the lake table.
        source: name of the source.
        tables: its source tables, and whether each is routed; messages and table properties name the first one.
    """

    def __init__(self, session: SparkSession, name: LakeName, source: str, tables: Mapping[TableName, bool]) -> None:
        self._session = session
        self._name = name
        self._source = source
        self._tables = tables
        self._table = next(iter(tables))
        self._followed: tuple[ColumnRename, ...] | None = None  # the renames that the names of new rows follow
        self._read: Read | None = None  # the snapshot on which markers and rows were decided
        self._newest: LoadedTable | None = None  # None once this job may have changed the table
        self._rekeyed = False
        self._beginning: Beginning | None = None  # the definition that the next commit of rows gives the table

    def load(self) -> LakeTable | None:
        """Return the current state of the table; None if it is missing."""
        with translate_errors("read the lake table", self._table):
            self._newest = None
            try:
                java = self._java()
                table = metadata_of(self._session, java)
            except (AnalysisException, Py4JJavaError) as error:
                if not is_missing(error):
                    raise
                return None
            renames = from_json(table.properties.get(RENAMES_PROPERTY), self._table)
            self._followed = renames if self._followed is None else self._followed
            self._read = self._read or Read(table.current.id if table.current is not None else None)
            self._newest = LoadedTable(java, table, self._state(table, renames))
            return self._newest.state

    def _state(self, table: TableMetadata, renames: tuple[ColumnRename, ...]) -> LakeTable:
        snapshot, properties = table.current, table.properties
        counted = snapshot.summary.get("total-records") if snapshot is not None else "0"
        owner = (properties.get(SOURCE_PROPERTY), properties.get(TABLE_PROPERTY))
        markers, carried, sequences, unpublished = markers_of(table, self._source, self._tables, owner)
        return LakeTable(
            columns=tuple(LakeColumn(one.name, one.type) for one in table.columns() or ()),
            primary_key=tuple(json.loads(properties.get(KEY_PROPERTY) or "[]")),
            mode=_mode(properties.get(MODE_PROPERTY), self._table),
            marker=markers[self._table],
            snapshot_id=snapshot.id if snapshot is not None else None,
            records=int(counted) if counted is not None else None,
            markers=markers,
            carried=carried,
            renames=renames,
            dropped_fields=dropped_fields(properties.get(DROPPED_PROPERTY)),
            uuid=table.uuid,
            schema_id=table.schema_id,
            sequences=sequences,
            last_sequence=table.last_sequence,
            layout=_layout(properties.get(LAYOUT_PROPERTY), self._table),
            copies_on_write=any(properties.get(one, COPIES) == COPIES for one in WRITE_MODES),
            computed=computed_from(properties.get(COMPUTED_PROPERTY)),
            comments=carried_comments(properties.get(COMMENTS_PROPERTY)),
            unpublished=unpublished,
            updated=table.updated,
            source_types=properties.get(self._types_property, ""),
            rows=rows_of(snapshot.summary) if snapshot is not None else 0,
        )

    def lacks(self, error: CorruptBatch) -> bool:
        """Whether an error says that a file of this table is lost.

        Raises:
            MergeConflict: the table is another one by now: another merge has made it again.
        """
        try:
            java = self._java()
        except Py4JJavaError as another:
            return lacks_metadata(another)
        self._refuse_moved(java)
        text = said(error.__cause__) if isinstance(error.__cause__, Exception) else ""
        return f"{urlsplit(str(java.location())).path.rstrip('/')}/" in f"{error.context.get('file')} {text}"

    def discard(self) -> None:
        """Remove the table from the catalog; its files stay where they are."""
        with translate_errors("remove the lake table from its catalog", self._table):
            drop_table(self._session, self._name)
        self._read = self._followed = self._newest = None

    def past(self, snapshot_id: int, schema_id: int) -> Past:
        """Return the history of the table since a snapshot and a schema."""
        with translate_errors("read the history of the lake table", self._table):
            return past_of(load_metadata(self._session, self._name), snapshot_id, schema_id)

    def create(
        self,
        schema: TableSchema,
        wanted: Mode | None = None,
        renames: Sequence[ColumnRename] = (),
        layout: Layout = DEFAULT_LAYOUT,
        source_types: str = "",
    ) -> LakeTable:
        """Create the empty table; the source's columns come first."""
        mode = mode_of(schema, wanted)
        properties = {
            SOURCE_PROPERTY: self._source,
            TABLE_PROPERTY: self._table,
            **({RENAMES_PROPERTY: to_json(renames)} if renames else {}),
            **({self._types_property: source_types} if source_types else {}),
        }
        with translate_errors("create the lake table", self._table):
            location = location_of(self._session, self._name)
            self._session.sql(create_sql(self._name, schema, mode, properties, location, layout))
            for statement in key_clauses(self._name, schema, mode, layout):
                self._session.sql(statement)
        return self._loaded()

    def begin_again(
        self,
        schema: TableSchema,
        wanted: Mode | None = None,
        renames: Sequence[ColumnRename] = (),
        layout: Layout = DEFAULT_LAYOUT,
    ) -> LakeTable:
        """Return the table as if it were created with the schema; the commit of its rows makes it so."""
        state = self._loaded()
        with translate_errors("read the partitions of the lake table", self._table):
            partitioned = partition_columns(self._java())
        self._beginning = begun_again(state, schema, wanted, renames, layout, partitioned)
        return self._beginning.table

    def become(self, mode: Mode) -> LakeTable:
        """Change the mode: every step may be repeated, and the mode is written last."""
        have = {column.name for column in self._loaded().columns}
        with translate_errors(f"give the lake table the mode {mode}", self._table):
            self._to_change()  # once: the statements commit rows themselves
            for statement in become_sql(self._name, mode, have):
                self._session.sql(statement)
        return self._loaded()

    def rename(self, state: LakeTable, names: Mapping[str, str], renames: Sequence[ColumnRename]) -> LakeTable:
        """Rename columns, all at once, and record the renames in the same commit."""
        with translate_errors("rename columns of the lake table", self._table):
            rename_columns(self._session, self._to_change(), state, names, renames, self._table)
        self._followed = tuple(renames)
        return self._loaded()

    def drop(self, state: LakeTable, columns: Sequence[str]) -> LakeTable:
        """Drop columns, and record that in the same commit."""
        refuse_dropped([*state.layout.columns, *partition_columns(self._java())], columns, self._table)
        with translate_errors("drop columns of the lake table", self._table):
            drop_columns(self._to_change(), state, columns, self._table)
        return self._loaded()

    def comment(self, wanted: Sequence[TableComments], *, shared: bool) -> bool:
        """Give the table and its columns the source's comments, in one commit; nothing is committed if they have them."""
        state = self.load()
        if state is None:
            return False
        with translate_errors("change comments of the lake table", self._table):
            table = self._as_loaded().metadata
            comment = table.properties.get(COMMENT_PROPERTY, "")
            change = comment_change(state, table.docs(), comment, wanted, shared=shared)
            if change is not None:
                change_comments(self._to_change(), state, change, self._table)
        return change is not None

    def try_commit(self) -> None:
        """Commit a property that nothing reads."""
        with translate_errors("write the lake table", self._table):
            now = datetime.now(UTC).isoformat()
            self._java().updateProperties().set(TRIED_PROPERTY, now).commit()

    def compute(self, computed: Mapping[str, str], types: Mapping[str, str]) -> LakeTable:
        """Add and widen computed columns, and record their expressions last; every step may be repeated."""
        table = self._loaded()
        changes = computed_changes(table, types, self._table)
        if self._beginning is not None:
            return self._begin_with(replace(with_changes(table, changes), computed=dict(computed)))
        for change in changes:
            with translate_errors(f"change the computed column {change.name} of the lake table", self._table):
                self._sql(column_sql(self._name, change))
        if dict(table.computed) != dict(computed):
            with translate_errors("record the computed columns of the lake table", self._table):
                self._sql(set_sql(self._name, {COMPUTED_PROPERTY: json.dumps(dict(computed))}))
        return self._loaded()

    def lay_out(self, layout: Layout) -> LakeTable:
        """Give a table without rows another layout, recorded last; every step may be repeated."""
        table = self._loaded()
        layout = replace(layout, format_version=max(layout.format_version, table.layout.format_version))
        if self._beginning is not None:
            return self._begin_with(replace(table, layout=layout))
        if (change := change_of_layout(table.layout, layout, str(self._name))) is not None:
            with translate_errors("change the layout of the lake table", self._table):
                scd2 = table.mode == "scd2"
                for statement in change_sql(self._session, self._name, change, table.primary_key, scd2=scd2):
                    self._sql(statement)
                self._sql(set_sql(self._name, {LAYOUT_PROPERTY: layout.to_json()}))
        return self._loaded()

    def note_types(self, source_types: str) -> LakeTable:
        """Record the source's types of the newest rows, of a table that begins again with these."""
        if self._beginning is not None:
            self._beginning = replace(self._beginning, noted={self._types_property: source_types})
            return self._begin_with(replace(self._loaded(), source_types=source_types))
        with translate_errors("record the source's types in the lake table", self._table):
            self._to_change().updateProperties().set(self._types_property, source_types).commit()
        return self._loaded()

    @property
    def _types_property(self) -> str:
        return f"{TYPES_PROPERTY}.{self._source}"

    def evolve(self, schema: TableSchema) -> LakeTable:
        """Add and widen columns until rows of the schema fit; raises IncompatibleSchema if they cannot."""
        return self._grown(self._loaded(), schema)

    def rekey(self, schema: TableSchema) -> LakeTable:
        """Add and widen columns, and change the key to the schema's; every step may be repeated."""
        self._grown(replace(self._loaded(), primary_key=schema.primary_key), schema)
        self._rekeyed = True
        with translate_errors("give the lake table another key", self._table):
            # Columns that may hold nulls cannot become required.
            for statement in forget_identity_sql(self._name, *identity_of(self._java())):
                self._sql(statement)
            self._sql(order_sql(self._name, schema.primary_key, self._loaded().layout))
            self._sql(key_sql(self._name, schema.primary_key))
        return self._loaded()

    def _grown(self, table: LakeTable, schema: TableSchema) -> LakeTable:
        changes = changes_for(table, schema)
        if self._beginning is not None:
            return self._begin_with(with_changes(table, changes))
        try:
            for change in changes:
                with translate_errors(f"change column {change.name} of the lake table", self._table):
                    self._sql(column_sql(self._name, change, table.comments.get(change.name.lower(), "")))
        except MergeError:
            refuse_redefined(self._java(), table, self._table)  # another merge may have added the column meanwhile
            raise
        return self._loaded() if changes else table

    def _begin_with(self, table: LakeTable) -> LakeTable:
        assert self._beginning is not None
        self._beginning = replace(self._beginning, table=table)
        return table

    def _loaded(self) -> LakeTable:
        """Return the table that this job begins, or else as it loaded it last, unless it has changed it since."""
        return self._beginning.table if self._beginning is not None else self._as_loaded().state

    def _as_loaded(self) -> LoadedTable:
        if self._newest is None:
            self.load()
        if self._newest is None:
            raise AssertionError(f"{self._name} is loaded before it is created")
        return self._newest

    def _java(self) -> Any:
        """Return Iceberg's Java object of the table, newly loaded from the catalog."""
        return load_table(self._session, self._name)

    def _to_change(self) -> Any:
        """Return Iceberg's Java object of the table, newly loaded to be changed.

        Raises:
            MergeConflict: another job has committed rows since this one read the table.
        """
        self._newest = None
        java = self._java()
        self._refuse_moved(java)
        return java

    def _sql(self, statement: str) -> DataFrame:
        self._to_change()
        return self._session.sql(statement)

    def _refuse_moved(self, java: Any) -> None:
        refuse_moved(self._table, self._read.snapshot if self._read is not None else None, current_snapshot(java))


def _mode(text: str | None, table: str) -> Mode:
    """Parse the mode of a lake table."""
    for mode in MODES:
        if (text or "append") == mode:
            return mode
    raise MergeError(
        f"the lake table's property {MODE_PROPERTY} is {text}, which this release does not know",
        hint="A newer release made the table: merge with that one. Or it is another tool's: drop or rename it.",
        table=table,
    )


def _layout(text: str | None, table: str) -> Layout:
    """Parse the layout of a lake table."""
    try:
        return Layout.from_json(text)
    except ValueError as error:
        raise MergeError(
            f"the lake table's property {LAYOUT_PROPERTY} is {text}, which this release does not know",
            hint="A newer release made the table: merge with that one. Or remove the property, and run cdc lake maintain.",
            table=table,
        ) from error
