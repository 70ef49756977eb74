"""The statements that read a table in chunks by primary key: pure text."""

from __future__ import annotations

from collections.abc import Mapping

from cdc_lib.errors import ConfigError
from cdc_lib.model.column_types import CAST_FORMS, PLAIN_BYTES
from cdc_lib.model.lexer import quoted
from cdc_lib.model.members import shared_texts
from cdc_lib.model.row_selection import RowSelection
from cdc_lib.model.schema import Column, TableSchema
from cdc_lib.model.window import TaskRange


def select_chunk(
    schema: TableSchema,
    after: tuple[str, ...] | None,
    upper: tuple[str, ...] | None,
    rows: int,
    index: str = "PRIMARY",
    part: RowSelection | None = None,
    keys: TaskRange | None = None,
) -> str:
    """Return the SELECT of one chunk.

    Args:
        schema: of the table.
        after: key (as from :func:`key_text`) after which the chunk starts; None for the first chunk.
        upper: last key of the whole snapshot, or of the range; None to read the rest of it as one chunk.
        rows: maximum rows of the chunk.
        index: name of the key.
        part: the rows to select; None for all.
        keys: the range of a divided snapshot; None for all.

    Raises:
        ConfigError: the table's primary key has changed since the part was requested.
    """
    text = select_all(schema)
    part_condition = of_part(schema, part)
    if upper is None:
        return f"{text}{_where(part_condition, of_range(schema, keys))}"
    conditions = [up_to(schema, upper), *([part_condition] if part_condition else [])]
    begin = after if after is not None else keys.after if keys is not None else None
    if begin is not None:  # the last key of a range is not asked for: the upper one does not lie after it
        conditions.append(after_key(schema, begin))
    order = ", ".join(quoted(name) for name in schema.primary_key)
    where = " AND ".join(f"({condition})" for condition in conditions)
    return f"{text}{_forced(index)} WHERE {where} ORDER BY {order} LIMIT {rows}"


def select_all(schema: TableSchema) -> str:
    """Return the SELECT of all rows, with columns in the form that the binlog has."""
    columns = ", ".join(_selected(schema, column) for column in schema.columns)
    return f"SELECT {columns} FROM {quoted(schema.database)}.{quoted(schema.table)}"  # noqa: S608 - names are quoted


def after_key(schema: TableSchema, key: tuple[str, ...]) -> str:
    """Return the condition of rows after a key, given as from :func:`key_text`."""
    return _compared(schema, key, ">", ">")


def before_key(schema: TableSchema, key: tuple[str, ...]) -> str:
    """Return the condition of rows before a key."""
    return _compared(schema, key, "<", "<")


def at_key(schema: TableSchema, key: tuple[str, ...]) -> str:
    """Return the condition of rows with a key, or with the first columns of one."""
    by_name = {column.name: column.type for column in schema.columns}
    pairs = zip(schema.primary_key, key, strict=False)
    return " AND ".join(f"{quoted(name)} = {by_name[name].literal(value)}" for name, value in pairs)


def up_to(schema: TableSchema, key: tuple[str, ...]) -> str:
    """Return the condition of rows up to a key, inclusive."""
    return _compared(schema, key, "<", "<=")


def of_part(schema: TableSchema, part: RowSelection | None) -> str:
    """Return the condition of the rows of a part; empty for all rows.

    Raises:
        ConfigError: the table's primary key has changed since the part was requested.
    """
    if part is None:
        return ""
    if part.key != schema.primary_key:
        raise ConfigError(
            f"the snapshot of {part.text} was requested under another primary key: {', '.join(part.key)}",
            hint="cdc snapshot {source} --cancel {table} cancels it; request it again.",
            table=schema.name,
        )
    conditions = [in_range(schema, part)] if part.is_range else [part.where]
    return " AND ".join(f"({condition})" for condition in conditions if condition)


def in_range(schema: TableSchema, part: RowSelection) -> str:
    """Return the condition of keys in a range, both ends inclusive."""
    low = [_compared(schema, part.lower, ">", ">=")] if part.lower is not None else []
    high = [_compared(schema, part.upper, "<", "<=")] if part.upper is not None else []
    return " AND ".join(f"({condition})" for condition in (*low, *high))


def of_range(schema: TableSchema, keys: TaskRange | None) -> str:
    """Return the condition of the keys of a range of a divided snapshot; empty for all keys."""
    if keys is None:
        return ""
    low = [after_key(schema, keys.after)] if keys.after is not None else []
    high = [up_to(schema, keys.last)] if keys.last is not None else []
    return " AND ".join(f"({condition})" for condition in (*low, *high))


def select_upper(
    schema: TableSchema, part: RowSelection | None = None, keys: TaskRange | None = None, index: str = ""
) -> str:
    """Return the SELECT of the greatest key, of a part, of a range or of all rows.

    Args:
        schema: of the table.
        part: the rows; None for all.
        keys: the range of a divided snapshot; None for all.
        index: name of the key, to be used in any case; empty to let the server choose.
    """
    where = _where(of_part(schema, part), of_range(schema, keys))
    columns = ", ".join(quoted(name) for name in schema.primary_key)
    order = ", ".join(f"{quoted(name)} DESC" for name in schema.primary_key)
    table = f"{quoted(schema.database)}.{quoted(schema.table)}{_forced(index)}"
    return f"SELECT {columns} FROM {table}{where} ORDER BY {order} LIMIT 1"  # noqa: S608 - names are quoted


def key_schema(schema: TableSchema) -> TableSchema:
    """Return the schema of only the key's columns, as bytes: no value of them can be a fault."""
    columns = tuple(Column(name, PLAIN_BYTES) for name in schema.primary_key)
    return TableSchema(schema.database, schema.table, columns, schema.primary_key)


def key_definition(schema: TableSchema, collations: Mapping[str, str]) -> tuple[str, ...]:
    """Return the columns of the key with what decides the order of their values, for :attr:`SnapshotTask.range_key`.

    Args:
        schema: of the table.
        collations: of its text columns.
    """
    by_name = {column.name: column.type for column in schema.columns}
    return tuple(f"{name} {by_name[name].kind} {collations.get(name, '')}".strip() for name in schema.primary_key)


def key_text(schema: TableSchema, key: tuple[bytes, ...]) -> tuple[str, ...]:
    """Return a key from the server as text for manifests and statements.

    Text columns keep the bytes of their character set, as hex digits.
    """
    by_name = {column.name: column.type for column in schema.columns}
    return tuple(
        value.hex() if by_name[name].family.in_hex else value.decode()
        for name, value in zip(schema.primary_key, key, strict=True)
    )


def key_text_sql(schema: TableSchema) -> list[str]:
    """Return the SQL of each column of the key as :func:`key_text` writes it."""
    by_name = {column.name: column.type for column in schema.columns}
    return [
        f"LOWER(HEX({quoted(name)}))" if by_name[name].family.in_hex else f"CAST({quoted(name)} AS CHAR)"
        for name in schema.primary_key
    ]


def index_name(index: str) -> str:
    """Return the name of an index as statements have it."""
    return index if index == "PRIMARY" else quoted(index)


def _forced(index: str) -> str:
    """Return the FORCE INDEX of a key; empty without a name, as of a key over the beginnings of columns, in whose order no row is."""
    return f" FORCE INDEX ({index_name(index)})" if index else ""


def _where(*conditions: str) -> str:
    """Return the WHERE of the conditions that are not empty; empty without one."""
    chosen = " AND ".join(filter(None, conditions))
    return f" WHERE {chosen}" if chosen else ""


def _selected(schema: TableSchema, column: Column) -> str:
    # As text a FLOAT has six digits, and DOUBLE(m,d) d digits after the point; a product has all digits, and keeps -0.
    if column.type.family.is_float:
        return f"{quoted(column.name)} * 1e0"
    if column.type.is_short_year:
        return column.type.whole_year(quoted(column.name))
    # The binlog has MariaDB's INET4, INET6 and UUID as BINARY.
    if column.type.form in CAST_FORMS:
        return f"CAST({quoted(column.name)} AS BINARY({column.type.width}))"
    # Some values of ENUM and SET look like others. The lake has the text that SELECT shows, except in a key, which they do not get into.
    if column.name in schema.primary_key and (shared := shared_texts(column.type)):
        return shared.select(column)
    return quoted(column.name)


def _compared(schema: TableSchema, key: tuple[str, ...], strict: str, last: str) -> str:
    """Compare the key with a literal, column by column so that every server uses the index."""
    by_name = {column.name: column.type for column in schema.columns}
    names = schema.primary_key[: len(key)]
    literals = [by_name[n].literal(value) for n, value in zip(names, key, strict=True)]
    terms = []
    for i, (name, literal) in enumerate(zip(names, literals, strict=True)):
        equal = [f"{quoted(n)} = {v}" for n, v in zip(names[:i], literals[:i], strict=True)]
        sign = last if i == len(literals) - 1 else strict
        terms.append(" AND ".join([*equal, f"{quoted(name)} {sign} {literal}"]))
    return " OR ".join(f"({term})" for term in terms)
