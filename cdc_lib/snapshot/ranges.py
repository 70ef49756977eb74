"""Divides the snapshot of a large table into ranges of its key, which are read side by side.

No row is read and no index is scanned. Between two keys of the table, some values are guessed (:mod:`cdc_lib.snapshot.probes`);
the server returns the first key from each on, and estimates how many rows lie between these. The piece with the most rows is
cut again, until all are small. So any key works whose values the server can compare: numbers, times, bytes, texts in any
collation, and several columns.

Law: the ranges tile all keys, also where guesses and estimates are bad. A bound is the end of one range and the beginning of the next.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, pairwise

from cdc_lib.model.lexer import quoted
from cdc_lib.model.schema import TableSchema
from cdc_lib.model.window import TaskRange
from cdc_lib.mysql.connection import Session
from cdc_lib.mysql.explain import estimated_rows
from cdc_lib.mysql.read_only_session import answer, text_of
from cdc_lib.snapshot import chunks
from cdc_lib.snapshot.probes import between

Key = tuple[str, ...]
"""A key in the text form of :func:`cdc_lib.snapshot.chunks.key_text`."""

_SMALL = 4
"""A piece is small if it has at most one part in so many of the rows of a range."""
_CUTS = 8
"""Pieces that are cut, for each range, at most."""


class KeySpace:
    """The keys of one table, as the server orders them.

    Args:
        connection: a session on the source.
        schema: of the table; it can be read in chunks.
        index: name of the key.
    """

    def __init__(self, connection: Session, schema: TableSchema, index: str) -> None:
        """Send nothing yet."""
        self._connection = connection
        self._schema = schema
        self._types = [next(c.type for c in schema.columns if c.name == name) for name in schema.primary_key]
        name, key = f"{quoted(schema.database)}.{quoted(schema.table)}", chunks.index_name(index)
        self._table, self._estimated = f"{name} FORCE INDEX ({key})", f"{name} USE INDEX ({key})"
        self._order = ", ".join(quoted(name) for name in schema.primary_key)
        self._backward = ", ".join(f"{quoted(name)} DESC" for name in schema.primary_key)
        self._unicode: dict[tuple[int, str], str] = {}

    def divided(self, number: int) -> tuple[TaskRange, ...]:
        """Return at most so many ranges with about the same number of rows; none if the table cannot be divided.

        Raises:
            SourceError: the server refuses a statement or cannot be reached.
        """
        keys = [*self._keys("TRUE", self._order), *self._keys("TRUE", self._backward)]
        if len(keys) != 2 or keys[0] == keys[1]:
            return ()
        rows = [self._rows(*keys)]
        done: set[Key] = set()
        for _ in range(_CUTS * number):
            small = sum(rows) // (_SMALL * number)
            large = [at for at, count in enumerate(rows) if count > small and keys[at] not in done]
            if not large:
                break
            at = max(large, key=lambda one: rows[one])
            found = self._cut(keys[at], keys[at + 1])
            if not found:
                done.add(keys[at])
                continue
            pieces = [keys[at], *found, keys[at + 1]]
            rows[at : at + 1] = [self._rows(*ends) for ends in pairwise(pieces)]
            keys[at : at + 2] = pieces
        return tiles(balanced(keys[1:-1], rows, number))

    def _cut(self, low: Key, high: Key) -> list[Key]:
        """Return some keys of the table between two others, in order; none if there is none, or none was found."""
        last = self._keys(f"{self._after(low)} AND ({chunks.before_key(self._schema, high)})", self._backward)
        if not last:
            return []
        [end] = last
        column = next((i for i, (a, b) in enumerate(zip(low, end, strict=True)) if a != b), None)
        if column is None:
            return []
        texts = self._unicode.get((column, low[column]), ""), self._unicode.get((column, end[column]), "")
        values = between(self._types[column], low[column], end[column], texts)
        name = quoted(self._schema.primary_key[column])
        same = f"({chunks.at_key(self._schema, low[:column])}) AND " if column else ""
        inside = f"{self._after(low)} AND ({chunks.up_to(self._schema, end)})"
        return self._first_of_each([f"{same}{name} >= {value} AND {inside}" for value in dict.fromkeys(values)])

    def _first_of_each(self, conditions: Sequence[str]) -> list[Key]:
        """Return the first key of each condition, in order, each once."""
        selects = [self._select(one, self._order) for one in conditions]
        each = selects[0] if len(selects) == 1 else " UNION ".join(f"({one})" for one in selects)
        return self._read(f"({each}) AS cdc_found ORDER BY {self._order}")

    def _keys(self, condition: str, order: str) -> list[Key]:
        return self._read(f"({self._select(condition, order)}) AS cdc_found")

    def _select(self, condition: str, order: str) -> str:
        return f"SELECT {self._order} FROM {self._table} WHERE {condition} ORDER BY {order} LIMIT 1"  # noqa: S608 - quoted

    def _read(self, table: str) -> list[Key]:
        """Return keys, and remember the Unicode of their texts."""
        named = zip(self._schema.primary_key, self._types, strict=True)
        unicode = [f"CONVERT({quoted(name)} USING utf8mb4)" if one.family.has_charset else "''" for name, one in named]
        columns = ", ".join((*chunks.key_text_sql(self._schema), *unicode))
        found = []
        for row in answer(self._connection, f"SELECT {columns} FROM {table}", self._schema.name):  # noqa: S608 - quoted
            cells = [text_of(cell) or "" for cell in row]
            key = tuple(cells[: len(self._types)])
            self._unicode |= dict(zip(enumerate(key), cells[len(key) :], strict=True))
            found.append(key)
        return found

    def _rows(self, after: Key, last: Key) -> int:
        """Return the server's estimate of the rows after a key up to another."""
        # MySQL does not look at the rows of an index that is forced.
        where = f"{self._after(after)} AND ({chunks.up_to(self._schema, last)})"
        return estimated_rows(self._connection, f"SELECT 1 FROM {self._estimated} WHERE {where}", self._schema.name)  # noqa: S608

    def _after(self, key: Key) -> str:
        return f"({chunks.after_key(self._schema, key)})"


def balanced(keys: Sequence[Key], rows: Sequence[int], number: int) -> list[Key]:
    """Return the keys that divide a table best into so many ranges, in order.

    Args:
        keys: where it can be divided, in order.
        rows: estimated rows before the first of them, between each two, and after the last.
        number: of ranges, at most.
    """
    if not keys:
        return []
    before = list(accumulate(rows))[:-1]
    wanted = [sum(rows) * step / number for step in range(1, number)]
    chosen = {min(range(len(keys)), key=lambda at: abs(before[at] - target)) for target in wanted}
    return [keys[at] for at in sorted(chosen)]


def tiles(bounds: Sequence[Key]) -> tuple[TaskRange, ...]:
    """Return the ranges that bounds make, which are in order: up to each of them, and after the last; none without bounds."""
    if not bounds:
        return ()
    return tuple(TaskRange(after, last) for after, last in pairwise((None, *bounds, None)))
