"""Gives an Iceberg table another definition and other rows, in one commit.

The table keeps its UUID, its place and its history: an earlier snapshot is read with the columns of its time. A column that stays
what it is keeps its field id. Iceberg's own replacing of tables would not notice a commit that came first.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pyspark.sql import SparkSession

from cdc_lib.errors import IncompatibleSchema
from cdc_lib.lake.evolution import identifier_fields, lake_columns
from cdc_lib.lake.modes import mode_of
from cdc_lib.model.column_rename import RENAMES_PROPERTY, ColumnRename, to_json
from cdc_lib.model.lake_table import COMPUTED_PROPERTY, DROPPED_PROPERTY, LakeColumn, LakeTable, refuse_moved
from cdc_lib.model.layout import TIMES, Layout, Partition, SortField
from cdc_lib.model.schema import TableSchema
from cdc_lib.model.table_mode import Mode
from cdc_lib.model.table_name import TableName
from spark_jobs.iceberg.ddl import defining_properties, partitions_of
from spark_jobs.iceberg.loading import identity_of, metadata_of, texts
from spark_jobs.iceberg.row_delta import RowCommit, current_snapshot, each, refuse_other_rows
from spark_jobs.iceberg.table_metadata import TableMetadata
from spark_jobs.runtime.java_classes import JavaClasses, java_classes


@dataclass(frozen=True, slots=True)
class Beginning:
    """The definition that a table is about to get.

    Args:
        table: as it will be; its markers and snapshot are those of now, and it has no rows.
        identity: its identifier fields.
        noted: other properties.
    """

    table: LakeTable
    identity: tuple[str, ...]
    noted: Mapping[str, str]


def begun_again(
    state: LakeTable,
    schema: TableSchema,
    wanted: Mode | None,
    renames: Sequence[ColumnRename],
    layout: Layout,
    partitioned: Collection[str],
) -> Beginning:
    """Return the definition of a table that begins again.

    Args:
        state: the table now.
        schema: of the source table.
        wanted: the mode in the source file.
        renames: all renames that the columns follow.
        layout: of its files; the format version is not lowered.
        partitioned: columns of the partition specs, the current one and those before it.

    Raises:
        IncompatibleSchema: one of these has another type: Iceberg adds no column under the name of a former partition.
    """
    mode, columns = mode_of(schema, wanted), lake_columns(schema, wanted)
    types = {column.name.lower(): column.type for column in columns}
    # Iceberg reads no table without the columns of its former partition specs.
    needed = [old for old in state.columns if old.name in partitioned and types.get(old.name.lower()) != old.type]
    for old in needed:
        if old.name.lower() in types:
            raise IncompatibleSchema(
                f"column {old.name} is {old.type} in the lake and {types[old.name.lower()]} at the source, and the lake table is "
                "partitioned by it, or was before",
                hint="Send the table to a lake table of another name under routes in the source file, and take a new snapshot: "
                f"cdc snapshot {{source}} {TableName.parse(schema.name).in_shell}",
                table=schema.name,
            )
    layout = replace(layout, format_version=max(layout.format_version, state.layout.format_version))
    table = replace(
        state, columns=(*columns, *needed), primary_key=schema.primary_key, mode=mode, records=0, renames=tuple(renames), layout=layout,
        computed={},
    )  # fmt: skip
    return Beginning(table, identifier_fields(schema, mode), {})


def redefined(session: SparkSession, table: Any, to: Beginning) -> Any:
    """Return a transaction in which a table has another definition; nothing is committed.

    Args:
        session: a Spark session.
        table: Iceberg's Java object, newly loaded from the catalog.
        to: the definition.
    """
    classes, change = java_classes(session), table.newTransaction()
    before = metadata_of(session, table)
    wanted = {column.name.lower(): column for column in to.table.columns}
    fields = before.columns() or ()
    kept = {one.id for one in fields if _stays(wanted.get(one.name.lower()), one.type)}
    _without_order(change, kept, to)
    change.updateSchema().setIdentifierFields(texts(session, ())).commit()
    schema = change.updateSchema()
    for one in fields:
        if one.id in kept and (name := wanted[one.name.lower()].name) != one.name:
            schema = schema.renameColumn(one.name, name)
    for name in identity_of(table)[1]:
        schema = schema.makeColumnOptional(name)
    schema.commit()
    schema = change.updateSchema()
    for one in fields:
        if one.id not in kept:
            schema = schema.deleteColumn(one.name)
    schema.commit()
    _add_columns(session, change, to, {one.name.lower() for one in fields if one.id in kept})
    _with_order(change, to.table, classes)
    _set_properties(change, before, to, [one.id for one in fields if one.id not in kept])
    return change


def _stays(column: LakeColumn | None, type_before: str) -> bool:
    return column is not None and column.type == type_before


def _without_order(change: Any, kept: Collection[int], to: Beginning) -> None:
    """Drop the sort order, and the partition fields that the table does not have any more."""
    change.replaceSortOrder().commit()
    spec, table = change.updateSpec(), change.table()
    wanted = {(one.column.lower(), _transform(one)) for one in partitions_of(to.table.mode, to.table.layout)}
    for field in each(table.spec().fields()):
        column = str(table.schema().findColumnName(field.sourceId()))
        if int(field.sourceId()) not in kept or (column.lower(), str(field.transform().toString())) not in wanted:
            spec = spec.removeField(field.name())
    spec.commit()


def _add_columns(session: SparkSession, change: Any, to: Beginning, have: Collection[str]) -> None:
    """Add the missing columns, and give all of them their order."""
    classes = java_classes(session)
    convert = classes.static("org.apache.iceberg.spark.SparkSchemaUtil", "convert")
    parsed = classes.static("org.apache.spark.sql.types.DataType", "fromDDL")
    schema, last = change.updateSchema().allowIncompatibleChanges(), None
    for column in to.table.columns:
        if column.name.lower() not in have:
            comment = to.table.comments.get(column.name.lower()) or None
            schema = schema.addColumn(None, column.name, convert(parsed(column.type)), comment)
        schema = schema.moveFirst(column.name) if last is None else schema.moveAfter(column.name, last)
        last = column.name
    for name in to.identity:
        schema = schema.requireColumn(name)
    schema.setIdentifierFields(texts(session, to.identity)).commit()


def _with_order(change: Any, table: LakeTable, classes: JavaClasses) -> None:
    """Set the partition spec and the sort order."""
    have = {str(field.name()) for field in each(change.table().spec().fields())}
    spec = change.updateSpec()
    for one in partitions_of(table.mode, table.layout):
        if one.field not in have:
            spec = spec.addField(one.field, _term(one, classes))
    spec.commit()
    order = change.replaceSortOrder()
    nulls = classes.static("org.apache.iceberg.NullOrder", "valueOf")
    reference = classes.static("org.apache.iceberg.expressions.Expressions", "ref")
    for field in table.layout.sort_by or map(SortField, table.primary_key):
        add = order.desc if field.descending else order.asc
        order = add(reference(field.column), nulls("NULLS_FIRST" if field.nulls_first else "NULLS_LAST"))
    order.commit()


def _transform(one: Partition) -> str:
    return f"{one.kind}[{one.size}]" if one.size else one.kind


def _term(one: Partition, classes: JavaClasses) -> Any:
    kind = "ref" if one.kind == "identity" else one.kind
    size = () if one.kind in (*TIMES, "identity") else (one.size,)
    return classes.static("org.apache.iceberg.expressions.Expressions", kind)(one.column, *size)


def _set_properties(change: Any, before: TableMetadata, to: Beginning, removed: Sequence[int]) -> None:
    properties = change.updateProperties()
    for name, text in (*_properties(to.table, removed), *to.noted.items()):
        if text:
            properties = properties.set(name, text)
        elif name in before.properties:
            properties = properties.remove(name)
    properties.commit()


def _properties(table: LakeTable, removed: Sequence[int]) -> Iterator[tuple[str, str]]:
    """Yield properties; those with an empty text are removed."""
    yield from defining_properties(table.primary_key, table.mode, table.layout).items()
    yield RENAMES_PROPERTY, to_json(table.renames) if table.renames else ""
    yield COMPUTED_PROPERTY, json.dumps(dict(table.computed)) if table.computed else ""
    yield DROPPED_PROPERTY, json.dumps(sorted({*table.dropped_fields, *removed}))


def publish_beginning(change: Any, commit: RowCommit) -> int:
    """Commit a transaction of :func:`redefined` with new rows in the place of all others; returns the snapshot.

    Args:
        change: the transaction.
        commit: of the new rows, which are all that the table has then.

    Raises:
        MergeConflict: another commit came first.
        MergeError: the snapshot would have another number of rows than the files.
        Py4JJavaError: CommitFailedException if the table's metadata changed since it was loaded.
    """
    refuse_moved(commit.of, commit.parent, current_snapshot(change.table()))
    every = commit.classes.static("org.apache.iceberg.expressions.Expressions", "alwaysTrue")()
    rows = change.newOverwrite().overwriteByRowFilter(every).conflictDetectionFilter(every)
    if commit.parent is not None:
        rows = rows.validateFromSnapshot(commit.parent)
    for file in commit.done.data.values():
        rows = rows.addFile(file)
    for name, text in commit.properties(commit.after).items():
        rows = rows.set(name, text)
    rows.validateNoConflictingData().validateNoConflictingDeletes().commit()
    published = change.table().currentSnapshot()
    refuse_other_rows(commit.after, published.summary(), commit.of)
    change.commitTransaction()
    return int(published.snapshotId())
