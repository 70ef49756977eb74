"""Checks the source file's columns, masks and routes against the captured tables, before a run and in ``cdc doctor``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from cdc_lib.binlog.rows.captured_tables import as_fault
from cdc_lib.binlog.rows.hidden_columns import VERSIONED
from cdc_lib.binlog.rows.masking import Masker, Shape
from cdc_lib.config import Credentials, SourceConfig
from cdc_lib.config.patterns import matches
from cdc_lib.config.shape import is_hidden, is_mapped, projection_of, targets_of
from cdc_lib.errors import CdcError, ConfigError, IncompatibleSchema, TableUnreadable
from cdc_lib.lake.routing import collisions
from cdc_lib.lake.union import Shard, union
from cdc_lib.model.cascades import Cascades
from cdc_lib.model.finding import Finding
from cdc_lib.model.lexer import words
from cdc_lib.model.projection import Projection, refuse_masked_keys
from cdc_lib.model.route import routed_schema
from cdc_lib.model.schema import TableSchema
from cdc_lib.model.table_name import TableName
from cdc_lib.ports import SchemaReader

_SHOWN = 5
"""Tables that a message names before it counts the others."""


def shape_of(config: SourceConfig, credentials: Credentials) -> Shape:
    """Return which columns of a source's tables are stored, and with which masks."""

    def project(schema: TableSchema) -> Projection:
        return projection_of(config, schema)

    return Shape(project, Masker(credentials.mask_key.encode()), masks=bool(config.masks))


def check_tables(config: SourceConfig, shape: Shape, reader: SchemaReader, tables: Iterable[tuple[str, str]]) -> None:
    """Check that columns and masks fit captured tables.

    Raises:
        ConfigError: one does not fit and ``on_error`` is ``stop``; it names table and column.
        TableUnreadable: the server refuses to read a table, and ``on_error`` is ``stop``.
    """
    for database, table in tables:
        if not is_mapped(config, database, table):
            continue
        try:
            schema = reader.schema(database, table)
        except TableUnreadable:
            if config.on_error != "quarantine":
                raise
            continue  # its snapshot, or the first window with rows of it, quarantines it
        if schema is None:
            continue
        try:
            _settled(config, shape, schema)
        except ConfigError as error:
            if as_fault(error, quarantines=config.on_error == "quarantine") is None:
                raise  # else as above


def _settled(config: SourceConfig, shape: Shape, schema: TableSchema) -> Projection:
    projection = shape.of(schema)
    if config.start == "snapshot":
        refuse_masked_keys(projection)
    return projection


@dataclass(frozen=True, slots=True)
class _RoutedColumns:
    """The columns of one source table in a lake table, and the constants that distinguish its rows."""

    routed: bool
    constants: tuple[tuple[str, str], ...]
    shard: Shard


def left_to_tools(config: SourceConfig, tables: Iterable[tuple[str, str]]) -> Iterator[Finding]:
    """Yield the tables that are left out because they are named like those of an online schema change tool."""
    if names := [TableName(*table) for table in tables if config.tables.leaves_to_tools(*table)]:
        yield Finding(
            "warning",
            f"left out, as gh-ost and pt-online-schema-change name their tables so: {', '.join(names)}",
            "Name those that are tables of your own under tables.include in full, or set tables.online_schema_change: false.",
        )


def versioned(config: SourceConfig, tables: Sequence[tuple[str, str]]) -> Iterator[Finding]:
    """Yield the captured tables WITH SYSTEM VERSIONING: an error, or quarantined by the plan with that ``on_error``."""
    if tables:
        yield Finding(
            "warning" if config.on_error == "quarantine" else "error",
            f"tables that cannot be captured: {', '.join(TableName(*table) for table in tables)}: {VERSIONED}",
            "Exclude them under tables in the source file.",
        )


def cascade_findings(config: SourceConfig, cascades: Cascades) -> Iterator[Finding]:
    """Yield the captured tables whose foreign key actions are not in the binlog, and what happens to them."""
    if cascades.logged:
        return
    if hidden := [TableName(*table) for table in cascades.unseen]:
        what = f"it is unknown which foreign keys change tables, because SHOW CREATE TABLE is refused for {', '.join(hidden)}"
        yield Finding("warning", what, "GRANT SELECT on them, or repair them.")
    parents_of: dict[TableName, set[TableName]] = {}
    for key in cascades.keys:
        for table in sorted(cascades.reached([key.child])):
            if config.tables.captures(*table):
                parents_of.setdefault(TableName(*table), set()).add(TableName(*key.parent))
    if not parents_of:
        return
    names = ", ".join(f"{table} (with {', '.join(sorted(parents))})" for table, parents in sorted(parents_of.items()))
    becomes = {
        "snapshot": "each such table is read again when rows of the other are deleted or get another key",
        "stop": "the window stops when rows of the other are deleted or get another key (cascades: stop)",
        "ignore": "rows of theirs stay wrong in the lake (cascades: ignore)",
    }[config.cascades]
    yield Finding(
        "warning",
        f"foreign keys with CASCADE, SET NULL or SET DEFAULT change tables, and this server's binlog does not show it: "
        f"{names}; {becomes}",
        "Delete the rows of these tables by statements of their own before those that they refer to.",
    )


def shared_names(config: SourceConfig, tables: Iterable[tuple[str, str]]) -> Iterator[Finding]:
    """Yield the source tables that would become one lake table without a route: an error, or quarantined with that ``on_error``."""
    for one in collisions(config, (TableName(*table) for table in tables)):
        error = one.error(config.source)
        yield Finding("warning" if config.on_error == "quarantine" else "error", error.message, error.hint)


def findings(
    config: SourceConfig, shape: Shape, reader: SchemaReader, tables: Sequence[tuple[str, str]]
) -> Iterator[Finding]:
    """Yield the effect of columns, masks and routes on the captured tables, and their errors."""
    if not (config.columns or config.masks or config.routes or config.filters or config.booleans):
        return
    by_lake_table: dict[str, list[_RoutedColumns]] = {}
    names: list[tuple[TableSchema, tuple[str, str]]] = []
    for database, table in tables:
        try:
            schema = reader.schema(database, table)
            if schema is None:
                continue
            names.append((schema, (database, table)))
            projection = _settled(config, shape, schema)
            for target in targets_of(config, database, table):
                constants = tuple(target.constants(config.source, database, table).items())
                shard = (schema.name, routed_schema(projection.schema, target))
                by_lake_table.setdefault(target.name, []).append(_RoutedColumns(target.routed, constants, shard))
        except CdcError as error:
            yield _wrong(error)
            continue
        if projection.masked:
            yield Finding("ok", f"{schema.name}: masks on {', '.join(sorted(projection.masked))}")
    yield from _without_effect(config, names)
    yield from _shown_elsewhere(config, [schema for schema, _ in names])
    yield from _generated(config, reader, [schema for schema, _ in names])
    for name, sources in by_lake_table.items():
        yield from _judge_lake_table(name, sources)


def _judge_lake_table(name: str, sources: Sequence[_RoutedColumns]) -> Iterator[Finding]:
    """Yield which tables one lake table merges."""
    if len(sources) == 1 and not sources[0].routed:
        return
    tables = [source.shard[0] for source in sources]
    shown = ", ".join(tables[:_SHOWN]) + (f" and {len(tables) - _SHOWN} more" if len(tables) > _SHOWN else "")
    try:
        made = union(name, [source.shard for source in sources])
    except IncompatibleSchema as error:
        yield _wrong(error)
        return
    key = ", ".join(made.primary_key)
    yield Finding("ok", f"{shown} → {name}, {f'by {key}' if key else 'every change a row'}")
    if len({source.constants for source in sources}) < len(sources):
        yield Finding(
            "warning",
            f"{len(tables)} tables share {name} without a column that tells them apart: rows of one {key or 'table'} "
            "overwrite those of another unless no two tables have the same key",
            "Add keys: [schema] or keys: [table] to the route, or make sure that their keys are disjoint.",
        )


def _without_effect(config: SourceConfig, names: Sequence[tuple[TableSchema, tuple[str, str]]]) -> Iterator[Finding]:
    """Yield the rules that match no captured table or column: such a mask hides nothing."""
    for rule in config.masks:
        for pattern in rule.columns:
            one = rule.model_copy(update={"columns": (pattern,)})
            if not any(one.covers(*t) and any(one.masks(c.name) for c in schema.columns) for schema, t in names):
                yield Finding(
                    "warning",
                    f"the mask {rule.mask} of {rule.tables} names the column {pattern}, which no captured table has",
                    "Correct the pattern, or leave it for a table that is still to come.",
                )
    for boolean in config.booleans:
        for pattern in boolean.columns:
            alone = boolean.model_copy(update={"columns": (pattern,)})
            if not any(alone.covers(*t) and any(map(alone.takes, schema.columns)) for schema, t in names):
                yield Finding(
                    "warning",
                    f"{pattern} under booleans of {boolean.tables} names no TINYINT column of a captured table",
                    "Correct the pattern, or leave it for a table that is still to come.",
                )
    others = [
        *(("columns", rule.tables) for rule in config.columns),
        *(("routes", rule.tables) for rule in config.routes),
        *(("filters", rule.tables) for rule in config.filters),
    ]
    for kind, pattern in others:
        if not any(matches(pattern, *table) for _, table in names):
            what = f"{pattern} under {kind} names no captured table"
            yield Finding("warning", what, "Correct the pattern, or leave it for a table that is still to come.")


def _shown_elsewhere(config: SourceConfig, schemas: Sequence[TableSchema]) -> Iterator[Finding]:
    """Yield the tables that store a column as it is whose name is hidden in other tables: they may be copies of these."""
    hidden: dict[str, list[TableName]] = {}
    for schema in schemas:
        for column in schema.columns:
            if is_hidden(config, schema.database, schema.table, column.name):
                hidden.setdefault(column.name.lower(), []).append(schema.name)
    for schema in schemas:
        names = [c.name for c in schema.columns if not is_hidden(config, schema.database, schema.table, c.name)]
        shown = {name: hidden[name.lower()] for name in names if name.lower() in hidden}
        if shown:
            others = list(dict.fromkeys(table for tables in shown.values() for table in tables))
            of = ", ".join(others[:_SHOWN]) + (f" and {len(others) - _SHOWN} more" if len(others) > _SHOWN else "")
            yield Finding(
                "warning",
                f"{schema.name} stores {', '.join(shown)} as it is, which is masked or left out in {of}",
                f"If it holds the same values, name {schema.name} under masks or columns as well, or exclude it under tables.",
            )


def _generated(config: SourceConfig, reader: SchemaReader, schemas: Sequence[TableSchema]) -> Iterator[Finding]:
    """Yield the generated columns that are stored as they are, and are made of hidden columns."""
    for schema in schemas:
        table = schema.database, schema.table
        hidden = {one.name.lower() for one in schema.columns if is_hidden(config, *table, one.name)}
        for column, expression in reader.generated_from(*table).items() if hidden else ():
            of = sorted({word.text for word in words(expression) if word.text.lower() in hidden})
            if of and column.lower() not in hidden:
                yield Finding(
                    "warning",
                    f"column {column} of {schema.name} is generated from {', '.join(of)}, masked or left out, and is stored as it is",
                    "Name it under masks or columns in the source file as well.",
                )


def _wrong(error: CdcError) -> Finding:
    table = error.context.get("table")
    return Finding("error", f"{table}: {error.message}" if table else error.message, error.hint)
