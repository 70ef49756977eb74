"""The statements that look rows up by primary key: pure text, built from whole Arrow columns.

Every literal is exact. Text and bytes are hex digits; text is in utf8mb4, which the server converts to the column's character
set. Decimals are cast from text, because a literal with an exponent would be a DOUBLE.
The server may still return the row of another key (a collation in which ``a`` equals ``A``, trailing blanks): the caller
compares the returned keys.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cdc_lib.model.column_types import CAST_FORMS
from cdc_lib.model.lexer import quoted
from cdc_lib.model.schema import SourceType, TableSchema
from cdc_lib.snapshot.chunks import select_all

_KEYS, _KEYS_SPELLED = 4000, 250
"""Keys of one statement, fewer with keys of several columns: servers stop using the index if a condition takes too much memory
(MySQL's range_optimizer_max_mem_size, MariaDB's optimizer_max_sel_args). Fewer still with one condition for each key."""
_CONDITIONS = 12_000
_BYTES = 1_000_000
"""Of the keys in one statement. The default of max_allowed_packet is 4 MiB in MySQL 5.7, 64 MiB since 8.0 and 16 MiB in MariaDB
(their manuals, "server system variables"), and servers may be set to less."""

_SAME_BYTES = frozenset(
    {"utf8mb4", "utf8mb3", "utf8", "ascii", "latin1", "binary", "ucs2", "utf16", "utf16le", "utf32"}
)
"""Character sets in which no two texts map to the same Unicode text, so that a key survives the conversion and back."""


def can_be_looked_up(schema: TableSchema) -> bool:
    """Whether the table has a key whose values can be written as literals."""
    types = {column.name: column.type for column in schema.columns}
    return bool(schema.primary_key) and all(types[name].is_supported for name in schema.primary_key)


def converts_exactly(schema: TableSchema) -> bool:
    """Whether a key that is not found does not exist: its text cannot get lost in the conversion."""
    types = {column.name: column.type for column in schema.columns}
    texts = [types[name] for name in schema.primary_key if types[name].family.has_charset]
    return all(one.charset in _SAME_BYTES for one in texts)


def select_by_keys(schema: TableSchema, keys: pa.Table, *, converted: bool = False) -> Iterator[tuple[str, pa.Table]]:
    """Yield statements, each with the keys that it looks up.

    Args:
        schema: the columns to select, and the key.
        keys: the key's columns under their names, as the lake holds them, without NULL.
        converted: compare texts in Unicode instead of the columns' character sets, without an index.
    """
    types = {column.name: column.type for column in schema.columns}
    names = list(schema.primary_key)
    written = [literals(types[name], keys.column(name).combine_chunks()) for name in names]
    columns = [_compared(name, types[name], converted=converted) for name in names]
    # MariaDB converts a text to its column's character set in a plain comparison, but not in a tuple, which then matches nothing.
    tuples = converted or all(types[n].charset == "utf8mb4" for n in names if types[n].family.has_charset)
    condition = _tuples if tuples or len(names) == 1 else _conditions
    for begin, size in _slices(written, _KEYS if condition is _tuples else _KEYS_SPELLED):
        terms = [one.slice(begin, size) for one in written]
        yield f"{select_all(schema)} WHERE {condition(columns, terms)}", keys.slice(begin, size)


def _slices(literals: Sequence[pa.Array], most: int) -> Iterator[tuple[int, int]]:
    """Yield start and size of the keys of each statement, so that none is too long."""
    rows = len(literals[0])
    longest = sum(int(pc.max(pc.binary_length(one)).as_py() or 0) for one in literals) if rows else 0
    size = max(1, min(most, _CONDITIONS // len(literals), _BYTES // max(longest, 1)))
    for begin in range(0, rows, size):
        yield begin, min(size, rows - begin)


def _tuples(columns: Sequence[str], terms: Sequence[pa.Array]) -> str:
    if len(columns) == 1:
        return f"{columns[0]} IN ({_joined(terms[0], ', ')})"
    rows = pc.binary_join_element_wise("(", pc.binary_join_element_wise(*terms, ", "), ")", "")
    return f"({', '.join(columns)}) IN ({_joined(rows, ', ')})"


def _conditions(columns: Sequence[str], terms: Sequence[pa.Array]) -> str:
    equal = [pc.binary_join_element_wise(f"{column} = ", term, "") for column, term in zip(columns, terms, strict=True)]
    return f"({_joined(pc.binary_join_element_wise(*equal, ' AND '), ') OR (')})"


def _joined(texts: pa.Array, between: str) -> str:
    whole = pa.ListArray.from_arrays(pa.array([0, len(texts)], pa.int32()), texts)
    text: str = pc.binary_join(whole, between)[0].as_py()
    return text


def _compared(name: str, source_type: SourceType, *, converted: bool) -> str:
    if converted and source_type.family.has_charset:
        return f"CONVERT({quoted(name)} USING utf8mb4) COLLATE utf8mb4_bin"
    return f"{quoted(name)} * 1e0" if source_type.has_digits else quoted(name)


def literals(source_type: SourceType, values: pa.Array, collation: str | None = None) -> pa.Array:
    """Return each value as an SQL literal.

    Args:
        source_type: of the column.
        values: as the lake holds them.
        collation: of the column, empty if it has none: the literals stand for the column. None: they are compared with it.
    """
    before, after = source_type.signs("utf8mb4")
    typed = source_type.family.typed
    if source_type.form in CAST_FORMS:
        after = f"' AS {source_type.form.upper()})"
        before = f"CAST({before}"
    elif typed and (collation is not None or source_type.precision):  # a decimal's text may have an exponent
        before, after = (one.format(source_type, collation) for one in typed)
    return pc.binary_join_element_wise(before, _texts(source_type, values), after, "")


def _texts(source_type: SourceType, values: pa.Array) -> pa.Array:
    if source_type.family.in_hex:
        return _hex(values)
    if pa.types.is_float32(values.type):  # all digits of the double with which the server compares
        values = values.cast(pa.float64())
    if pa.types.is_timestamp(values.type):
        values = values.cast(pa.timestamp("us"))
    return values.cast(pa.string())


def _hex(values: pa.Array) -> pa.Array:
    """Return the bytes of texts or of binary values as hex digits."""
    plain = pa.concat_arrays([values.cast(pa.binary())])  # copied, so that it has offset 0
    offsets = np.frombuffer(plain.buffers()[1], np.int32)[plain.offset : plain.offset + len(plain) + 1]
    data = plain.buffers()[2]
    digits = bytes(data[int(offsets[0]) : int(offsets[-1])]).hex().encode() if data is not None else b""
    placed = np.ascontiguousarray((offsets - offsets[0]) * 2, np.int32)
    return pa.Array.from_buffers(pa.string(), len(plain), [None, pa.py_buffer(placed), pa.py_buffer(digits)])
