"""Schema evolution: the column changes that a lake table needs before it can hold rows of a source schema.

Columns are added and widened, never dropped. A change that would lose values is refused.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from cdc_lib.errors import IncompatibleSchema
from cdc_lib.lake.modes import mode_of
from cdc_lib.model.column_types import BOOLEAN
from cdc_lib.model.lake_table import MODE_COLUMNS, LakeColumn, LakeTable, Marker, lake_type, reserved
from cdc_lib.model.lake_types import fits, holds, lake_type_of, widens
from cdc_lib.model.schema import TableSchema
from cdc_lib.model.spark_names import clash
from cdc_lib.model.table_mode import Mode
from cdc_lib.model.table_name import TableName

_BOOLEANS = (
    "If booleans: was changed in the source file, undo that and take a new snapshot of this table. To change it: "
)
_AGAIN = "A new snapshot replaces the rows: cdc snapshot {source} {table}. A table that shares its lake table needs a route of its own."


@dataclass(frozen=True, slots=True)
class AddColumn:
    """A new column of the lake table; ``after`` is None for the first place."""

    name: str
    type: str
    after: str | None


@dataclass(frozen=True, slots=True)
class WidenColumn:
    """A column that gets a wider type."""

    name: str
    type: str


ColumnChange = AddColumn | WidenColumn


def lake_columns(schema: TableSchema, configured: Mode | None = None) -> tuple[LakeColumn, ...]:
    """Return the columns of a new lake table of a mode.

    Raises:
        IncompatibleSchema: a column has a name that is reserved in the lake, or two have names that Spark takes for one.
    """
    mode = mode_of(schema, configured)
    _refuse_names(schema, mode)
    columns = tuple(LakeColumn(column.name, column.type.lake_type) for column in schema.columns)
    metadata = tuple(LakeColumn(name, lake_type(name)) for name in MODE_COLUMNS[mode])
    return columns + metadata


def identifier_fields(schema: TableSchema, mode: Mode) -> tuple[str, ...]:
    """Return the Iceberg identifier fields of a new lake table; empty if it has none.

    They are required. In scd2 and append mode, many rows have the same source key.
    """
    types = {column.name: column.type.lake_type for column in schema.columns}
    identify = all(name in types and lake_type_of(types[name]).identifies for name in schema.primary_key)
    return schema.primary_key if mode in ("mirror", "soft_delete") and identify else ()


def changes_for(table: LakeTable, schema: TableSchema) -> tuple[ColumnChange, ...]:
    """Return the changes needed before rows of the schema are written, in order; empty if they fit already.

    Raises:
        IncompatibleSchema: the rows do not fit without loss, or the primary key is another one.
    """
    _refuse_names(schema, table.mode)
    _refuse_other_key(table, schema)
    have = {column.name.lower(): column for column in table.columns}
    changes: list[ColumnChange] = []
    before: str | None = None
    for column in schema.columns:
        old, needs = have.get(column.name.lower()), column.type.lake_type
        if old is None:
            changes.append(AddColumn(column.name, needs, before))
        elif not holds(old.type, needs):
            if not widens(old.type, needs):
                raise _incompatible(schema, column.name, old.type, needs)
            changes.append(WidenColumn(old.name, needs))
        before = old.name if old is not None else column.name
    _refuse_beside(table, schema, (one.name for one in changes if isinstance(one, AddColumn)))
    return tuple(changes)


def with_changes(table: LakeTable, changes: Iterable[ColumnChange]) -> LakeTable:
    """Return a table after changes of its columns."""
    columns = list(table.columns)
    for one in changes:
        if isinstance(one, AddColumn):
            before = (
                i for i, column in enumerate(columns, 1) if one.after and column.name.lower() == one.after.lower()
            )
            columns.insert(next(before, 0), LakeColumn(one.name, one.type))
        else:
            columns = [replace(it, type=one.type) if it.name == one.name else it for it in columns]
    return replace(table, columns=tuple(columns))


def misfit(
    schemas: Iterable[TableSchema], configured: Mode | None, table: LakeTable | None = None
) -> IncompatibleSchema | None:
    """Return why rows of these schemas cannot all go into one lake table, a new one without ``table``; None if they can."""
    try:
        for schema in schemas:
            if table is None:
                columns, mode = lake_columns(schema, configured), mode_of(schema, configured)
                table = LakeTable(columns, schema.primary_key, mode, Marker(), None, 0)
            else:
                table = with_changes(table, changes_for(table, schema))
    except IncompatibleSchema as error:
        return error
    return None


def refuse_text(column: LakeColumn, text: str, table: str) -> None:
    """Refuse a value of an added column that the lake's column of that name cannot hold: another one had the name before.

    Args:
        column: of the lake.
        text: the value, as SELECT shows it.
        table: ``database.table``.

    Raises:
        IncompatibleSchema: it cannot.
    """
    if not fits(column.type, text):
        raise other_type(column, table)


def other_type(column: LakeColumn, table: str) -> IncompatibleSchema:
    """Return the error of a column of the lake that had another type at the source when it got its values."""
    return _without_loss(column.name, column.type, "of another type", table)


def _refuse_names(schema: TableSchema, mode: Mode) -> None:
    found = clash((column.name for column in schema.columns), reserved(mode))
    if found is not None:
        raise IncompatibleSchema(
            found[1],
            hint="Exclude the column under columns in the source file, or rename it at the source. Then cdc snapshot reads the table "
            "again: batches that are drained have the column.",
            table=schema.name,
            column=found[0],
        )


def _refuse_beside(table: LakeTable, schema: TableSchema, added: Iterable[str]) -> None:
    """Refuse columns whose names Spark takes for those of columns that the lake table keeps: the source may have dropped them."""
    found = clash((*(column.name for column in table.columns), *added))
    if found is not None:
        raise IncompatibleSchema(
            f"{found[1]}, and the lake table keeps the first",
            hint=_AGAIN,
            table=schema.name,
            column=found[0],
        )


def refuse_other_column(table: LakeTable, source_table: TableName, added: Iterable[str]) -> None:
    """Refuse values of added columns that would go into another column of the lake table, whose name Spark takes for theirs.

    Raises:
        IncompatibleSchema: there is such a column. One whose name has other letters in ASCII is the same for servers, too.
    """
    have = {column.name.lower(): column.name for column in table.columns}
    for name in added:
        other = have.get(name.lower(), name)
        if other != name and not (other.isascii() and name.isascii()):
            raise IncompatibleSchema(
                f"columns {other} and {name} have names that Spark takes for one",
                hint=_AGAIN,
                table=source_table,
                column=name,
            )


def _refuse_other_key(table: LakeTable, schema: TableSchema) -> None:
    old, new = ([name.lower() for name in key] for key in (table.primary_key, schema.primary_key))
    if old != new:
        raise IncompatibleSchema(
            f"the primary key changed from ({', '.join(old)}) to ({', '.join(new)}): the rows in the lake are kept by "
            "the old one",
            hint=_AGAIN,
            table=schema.name,
        )


def can_be_rekeyed(table: LakeTable, key: tuple[str, ...]) -> bool:
    """Whether a snapshot that replaces all rows of a lake table may change its key.

    Deleted rows and old versions are kept under the old key.
    """
    return table.mode in ("mirror", "append") and bool(table.primary_key) and bool(key)


def _incompatible(schema: TableSchema, column: str, old: str, new: str) -> IncompatibleSchema:
    return _without_loss(column, old, new, schema.name)


def _without_loss(column: str, old: str, new: str, table: str) -> IncompatibleSchema:
    return IncompatibleSchema(
        f"column {column} is {old} in the lake and {new} at the source: that cannot be changed without loss",
        hint=(_BOOLEANS if BOOLEAN in (old, new) else "") + _AGAIN,
        table=table,
        column=column,
        lake_type=old,
        source_type=new,
    )
