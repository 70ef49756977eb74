"""Which chunks of a snapshot may have a key, by the last key of each; pure.

Chunks follow each other in the source's key order: a chunk has the keys after the last key of the one before, up to its own. The
source orders texts by their collation, which only the server knows. So keys are compared up to their first column of such a kind,
and of a key that begins with a text every chunk may have it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from cdc_lib.apply.key_rows import OrderValue
from cdc_lib.lake.arrow_types import arrow_type, is_exact_number, kind_of
from cdc_lib.model.manifest import SnapshotChunk
from cdc_lib.model.row_selection import RowSelection
from cdc_lib.model.schema import TableSchema
from cdc_lib.read.columns import ReadColumn
from cdc_lib.read.keys import NoSuchKey, order_value

LastKey = tuple[OrderValue, ...]
"""The first parts of a chunk's last key, as far as the lake orders them as the source does."""


class KeyNotOrdered(Exception):
    """A last key cannot be compared with the lake's: any chunk may have a key."""


def last_key_of(chunk: SnapshotChunk, schema: TableSchema, key: Sequence[ReadColumn]) -> LastKey:
    """Return the comparable parts of a chunk's last key.

    Args:
        chunk: with rows.
        schema: of its rows.
        key: the lake table's key.

    Raises:
        KeyNotOrdered: it has none, or one that the lake cannot hold, such as a date in no month.
    """
    found = _comparable(chunk.last_key or (), schema, key)
    if not found:
        raise KeyNotOrdered
    return found


def may_be_in(
    part: RowSelection, schema: TableSchema, columns: Sequence[ReadColumn], key: Sequence[OrderValue]
) -> bool:
    """Whether a key may lie in a key range that a snapshot read; only the source can tell it of texts.

    Args:
        part: the range.
        schema: of the table when it was read.
        columns: the lake table's key.
        key: order value of each part of the key.
    """
    if None in key:
        return True
    try:
        lower, upper = (_comparable(bound or (), schema, columns) for bound in (part.lower, part.upper))
    except KeyNotOrdered:
        return True
    return lower <= tuple(key[: len(lower)]) and tuple(key[: len(upper)]) <= upper


def _comparable(texts: Sequence[str], schema: TableSchema, key: Sequence[ReadColumn]) -> LastKey:
    """Return the first parts of a key of the source, as far as the lake orders them as the source does."""
    types = {column.name: column.type for column in schema.columns}
    found: list[OrderValue] = []
    for name, column, text in zip(schema.primary_key, key, texts, strict=False):
        own = arrow_type(types[name].lake_type)
        is_number = is_exact_number(own) and is_exact_number(column.type)
        if not types[name].orders_alike or not (is_number or own == column.type):
            break
        try:
            found.append(order_value(column.type, kind_of(column.type).parse(text)))
        except (ValueError, ArithmeticError, NoSuchKey):
            raise KeyNotOrdered from None
    return tuple(found)


def chunks_with_key(
    count: int, last_key: Callable[[int], LastKey | None], key: Sequence[OrderValue], parts: int
) -> range:
    """Return the numbers of the chunks that may have a key, of chunks in key order; only some last keys are asked for.

    Args:
        count: how many chunks there are.
        last_key: returns the comparable parts of a chunk's last key; None if the chunk has no rows.
        key: order value of each part of the key.
        parts: of the lake table's key.

    Raises:
        KeyNotOrdered: the function raised it, or the key has a null part.
    """
    if None in key:
        raise KeyNotOrdered

    def first(holds: Callable[[LastKey], bool], begin: int) -> int:
        """Return the first chunk from a number on whose last key holds, or the count."""
        low, high, found = begin, count, count
        while low < high:
            at = middle = (low + high) // 2
            while at < high and (asked := last_key(at)) is None:
                at += 1
            if at == high:
                high = middle
            elif holds(_of_known(asked)):
                high, found = middle, at
            else:
                low = at + 1
        return found

    begin = first(lambda last: last >= tuple(key[: len(last)]), 0)
    if begin == count:
        return range(0)
    last = _of_known(last_key(begin))
    if len(last) == parts or last > tuple(key[: len(last)]):
        return range(begin, begin + 1)
    return range(begin, min(first(lambda one: one > tuple(key[: len(one)]), begin) + 1, count))


def _of_known(last: LastKey | None) -> LastKey:
    if last is None:
        raise KeyNotOrdered
    return last
