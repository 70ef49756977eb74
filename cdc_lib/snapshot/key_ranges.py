"""The statements that ask a server which of some keys lie in a range: pure text.

The order of texts is that of their column's collation, which only the server knows. So keys that the lake holds go there as
constants, and no table is read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pyarrow as pa
import pyarrow.compute as pc

from cdc_lib.model.row_selection import RowSelection
from cdc_lib.model.schema import SourceType, TableSchema
from cdc_lib.snapshot.by_key import literals
from cdc_lib.snapshot.chunks import in_range, quoted

_KEYS = 200
"""Keys of one statement."""


def select_in_range(
    schema: TableSchema, part: RowSelection, keys: pa.Table, collations: Mapping[str, str]
) -> Iterator[tuple[str, int]]:
    """Yield statements whose rows are numbers of keys that lie in the range, each with the number that 0 stands for.

    Args:
        schema: of the table.
        part: the range.
        keys: the key's columns under their names, as the lake holds them, without NULL.
        collations: of the key's columns that hold texts.
    """
    types = {column.name: column.type for column in schema.columns}
    columns = [
        _typed(types[name], literals(types[name], keys.column(name).combine_chunks()), collations.get(name, ""))
        for name in schema.primary_key
    ]
    for begin in range(0, keys.num_rows, _KEYS):
        rows = zip(*(column.slice(begin, _KEYS).to_pylist() for column in columns), strict=True)
        selects = [f"SELECT {n} AS cdc_n, {_named(schema, row)}" for n, row in enumerate(rows)]
        union = " UNION ALL ".join(selects)
        yield f"SELECT cdc_n FROM ({union}) AS cdc_keys WHERE {in_range(schema, part)}", begin  # noqa: S608 - all quoted


def _named(schema: TableSchema, row: tuple[str, ...]) -> str:
    return ", ".join(f"{value} AS {quoted(name)}" for name, value in zip(schema.primary_key, row, strict=True))


def _typed(own: SourceType, values: pa.Array, collation: str) -> pa.Array:
    """Return literals of the column's own type, where a plain one would compare in another way."""
    match own.kind:
        case "string":
            before, behind = "CONVERT(", f" USING {own.charset}) COLLATE {collation}"
        case "date":
            before, behind = "CAST(", " AS DATE)"
        case "datetime" | "timestamp":
            before, behind = "CAST(", " AS DATETIME(6))"
        case "time":
            before, behind = "CAST(", " AS TIME(6))"
        case _:
            return values
    return pc.binary_join_element_wise(before, values, behind, "")
