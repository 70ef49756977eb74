"""The statements that let a server decide which keys lie in a range: pure text.

Text is ordered by the column's collation, which only the server knows. So the lake's keys are sent as constants; no table is
read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pyarrow as pa

from cdc_lib.model.lexer import quoted
from cdc_lib.model.row_selection import RowSelection
from cdc_lib.model.schema import TableSchema
from cdc_lib.snapshot.by_key import literals
from cdc_lib.snapshot.chunks import in_range

_KEYS = 200
"""Keys of one statement."""


def select_in_range(
    schema: TableSchema, part: RowSelection, keys: pa.Table, collations: Mapping[str, str]
) -> Iterator[tuple[str, int]]:
    """Yield statements that return the numbers of the keys in the range, each with the index of its first key.

    Args:
        schema: of the table.
        part: the range.
        keys: the key's columns under their names, as the lake holds them, without NULL.
        collations: of the key's text columns.
    """
    types = {column.name: column.type for column in schema.columns}
    columns = [
        literals(types[name], keys.column(name).combine_chunks(), collations.get(name, ""))
        for name in schema.primary_key
    ]
    for begin in range(0, keys.num_rows, _KEYS):
        rows = zip(*(column.slice(begin, _KEYS).to_pylist() for column in columns), strict=True)
        selects = [f"SELECT {n} AS cdc_n, {_named(schema, row)}" for n, row in enumerate(rows)]
        union = " UNION ALL ".join(selects)
        yield f"SELECT cdc_n FROM ({union}) AS cdc_keys WHERE {in_range(schema, part)}", begin  # noqa: S608 - all quoted


def _named(schema: TableSchema, row: tuple[str, ...]) -> str:
    return ", ".join(f"{value} AS {quoted(name)}" for name, value in zip(schema.primary_key, row, strict=True))
