"""The source's side of a comparison: checksums of a table's ranges, lists of a range's rows, rows by key.

One session reads chunks in key order, with a configured delay between statements.
"""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import Any

from cdc_lib.model.lexer import quoted
from cdc_lib.model.pace import Pace
from cdc_lib.model.projection import can_be_chunked
from cdc_lib.mysql.connection import Session
from cdc_lib.mysql.information_schema import InformationSchema
from cdc_lib.mysql.read_only_session import answer, text_of
from cdc_lib.snapshot import chunks
from cdc_lib.verify.canonical_text import Cell, has_null, literal, settled
from cdc_lib.verify.checksums import ListedRow, Sum, added
from cdc_lib.verify.comparability import Key, Subject
from cdc_lib.verify.judgement import RowState

log = logging.getLogger(__name__)

ROWS_BY_KEY = 200
"""Rows that one statement reads by their keys."""

VALUES_PER_ROW = 2
"""Most values of an integer key per row with which chunks are cut by values: there are so many times as many statements."""


@dataclass(frozen=True)
class SourceSums:
    """Reads one table.

    Args:
        chunk_rows: rows that one statement reads.
        statement_delay: seconds between two statements.
        twice: names of several keys, which SELECT shows alike: the lake can have only one row. What is listed adds to them.
    """

    connection: Session
    subject: Subject
    chunk_rows: int
    statement_delay: float = 0.0
    rest: Callable[[float], None] = field(default=time.sleep)
    twice: set[str] = field(default_factory=set)

    @cached_property
    def ends(self) -> tuple[Key, ...]:
        """The keys at which chunks end, as :func:`cdc_lib.snapshot.chunks.key_text` writes them; the last chunk has no end."""
        schema = self.subject.schema
        if not can_be_chunked(schema):
            return ()
        if (even := self._even_ends()) is not None:
            return even
        ends: list[Key] = []
        while (found := self.chunk_end(ends[-1] if ends else None, None)) is not None:
            ends.append(found[0])
        return tuple(ends)

    def _even_ends(self) -> tuple[Key, ...] | None:
        """Return the ends of chunks of equal width; None if the key is not one integer whose values are close together.

        A chunk of so many values has as many rows at most. So no statement has to walk over the rows to find where a chunk ends.
        """
        subject = self.subject
        if subject.how != "ranges" or len(subject.schema.primary_key) > 1:
            return None
        first = quoted(subject.first)
        ((least, greatest),) = self._answer(self._select(f"MIN({first}), MAX({first})"))
        if least is None:
            return ()
        rows = InformationSchema(self.connection).estimated_rows_of(subject.schema)
        if int(greatest) - int(least) >= VALUES_PER_ROW * rows:
            return None
        ends = range(int(least) + self.chunk_rows - 1, int(greatest) + 1, self.chunk_rows)
        return tuple((str(end),) for end in ends)

    def chunk_end(self, after: Key | None, end: Key | None) -> tuple[Key, Key] | None:
        """Return the key at which the chunk after a key ends, as statements and as canonical texts have it.

        Args:
            after: the key before the chunk; None for the first one.
            end: the last key that it may have; None if there is none.

        Returns:
            None if there are fewer rows up to ``end``.
        """
        schema = self.subject.schema
        order = ", ".join(quoted(name) for name in schema.primary_key)
        columns = [*chunks.key_text_sql(schema), *(_as_text(cell) for cell in self.subject.keys)]
        chosen = f"{self._select(', '.join(columns))}{self._where(after, end)}"
        rows = self._answer(f"{chosen} ORDER BY {order} LIMIT 1 OFFSET {self.chunk_rows - 1}")
        if not rows:
            return None
        texts = tuple(text_of(value) or "" for value in rows[0])
        return texts[: len(schema.primary_key)], texts[len(schema.primary_key) :]

    def sum_between(self, after: Key | None, end: Key | None) -> Sum:
        """Return the checksum of the rows after a key, up to another one; None is no bound."""
        sql = self._select(f"COUNT(*), SUM({self.subject.source_hash})")
        ((rows, total),) = self._answer(f"{sql}{self._where(after, end)}")
        self.rest(self.statement_delay)
        return Sum(int(rows), int(total or 0))

    def listed_between(self, after: Key | None, end: Key | None) -> list[ListedRow]:
        """Return the rows after a key, up to another one; None is no bound."""
        return self._noted(self._listed(self._where(after, end)))

    @cached_property
    def cuts(self) -> tuple[int, ...]:
        """The last value of the key's first column in each range; the last range has no end."""
        return tuple(sorted({int(end[0]) for end in self.ends})) if self.subject.how == "ranges" else ()

    def sums(self) -> dict[int, Sum]:
        """Return the checksum of each range."""
        return added(self._sums())

    def _sums(self) -> Iterator[tuple[int, Sum]]:
        hashed = self.subject.source_hash
        numbers = {cut: number for number, cut in enumerate(self.cuts)}
        schema, began = self.subject.schema, time.monotonic()
        pace = Pace(
            f"comparing {schema.name}", "row", InformationSchema(self.connection).estimated_rows_of(schema), began
        )
        for after, end in self._chunks():
            current = numbers[int(end[0])] if end and numbers else len(numbers)
            previous = numbers[int(after[0])] if after and numbers else current
            # A chunk may begin with rows of the previous range, with the same value in the key's first column.
            split = after is not None and previous != current and len(self.subject.schema.primary_key) > 1
            side = f"{quoted(self.subject.first)} > {after[0]}" if split and after else "1"
            group = " GROUP BY 1" if split else ""
            sql = f"{self._select(f'{side}, COUNT(*), SUM({hashed})')}{self._where(after, end)}{group}"
            for is_current, rows, total in self._answer(sql):
                yield current if int(is_current) else previous, Sum(int(rows), int(total or 0))
                if line := pace.tick(int(rows), time.monotonic()):
                    log.info("%s", line)
            self.rest(self.statement_delay)

    def buckets(self, number: int) -> dict[int, Sum]:
        """Return the checksums of the buckets of one range."""
        subject = self.subject
        sums: list[tuple[int, Sum]] = []
        for where in self._range(number):
            columns = f"{subject.source_bucket}, COUNT(*), SUM({subject.source_hash})"
            rows = answer(self.connection, f"{self._select(columns)}{where} GROUP BY 1")
            sums += [(int(bucket), Sum(int(count), int(total or 0))) for bucket, count, total in rows]
            self.rest(self.statement_delay)
        return added(sums)

    def listed(self, number: int, buckets: Collection[int]) -> list[ListedRow]:
        """Return the rows of some buckets of one range."""
        chosen = f"{self.subject.source_bucket} IN ({', '.join(map(str, sorted(buckets)))})"
        wheres = (f"{where}{' AND' if where else ' WHERE'} {chosen}" for where in self._range(number))
        return self._noted(row for where in wheres for row in self._listed(where))

    def _listed(self, where: str) -> Iterator[ListedRow]:
        """Yield the rows of a condition; without a key, each with its number of copies."""
        subject = self.subject
        columns, group = f"{subject.source_name}, {subject.source_hash}, 1", ""
        if subject.how == "copies":
            columns, group = f"{subject.source_hash}, {subject.source_hash}, COUNT(*)", " GROUP BY 1, 2"
        else:
            columns += "".join(f", {_as_text(cell)}" for cell in subject.keys)
        for name, hashed, copies, *key in self._answer(f"{self._select(columns)}{where}{group}"):
            # A row whose text is longer than max_allowed_packet has no hash: its cells are compared.
            row_hash = -1 if hashed is None else int(hashed)
            yield ListedRow(text_of(name) or "", row_hash, int(copies), tuple(text_of(one) or "" for one in key))
        self.rest(self.statement_delay)

    def _noted(self, rows: Iterable[ListedRow]) -> list[ListedRow]:
        """Return listed rows, and remember which names several of them have."""
        listed = list(rows)
        self.twice.update(name for name, keys in Counter(row.name for row in listed).items() if keys > 1)
        return listed

    def rows(self, keys: Mapping[str, Key]) -> dict[str, RowState]:
        """Read rows by their names, each with the texts of its key."""
        by_hash = self.subject.how == "copies"
        names = [name for name, key in keys.items() if by_hash or not has_null(self.subject.keys, key)]
        states: dict[str, RowState] = {}
        for first in range(0, len(names), ROWS_BY_KEY):
            some = names[first : first + ROWS_BY_KEY]
            requested = set(some)
            for row in self._answer(self._by_name(some, keys)):
                name, copies, *cells = row
                if (text := text_of(name)) is not None and text in requested:
                    settled_cells = self._settled(cells)
                    compared = () if self.subject.how == "copies" else settled_cells
                    before = states[text].copies if text in states else 0
                    states[text] = RowState(compared, before + int(copies), shown=settled_cells)
        return states

    def _by_name(self, names: Sequence[str], keys: Mapping[str, Key]) -> str:
        subject = self.subject
        cells = ", ".join(_as_text(cell) for cell in subject.cells)
        if subject.how == "copies":
            any_value = ", ".join(f"MAX({_as_text(cell)})" for cell in subject.cells)
            chosen = f" WHERE {subject.source_hash} IN ({', '.join(names)}) GROUP BY 1"
            return f"{self._select(f'{subject.source_hash}, COUNT(*), {any_value}')}{chosen}"
        terms = " OR ".join(f"({self._named(name, keys[name])})" for name in names)
        return f"{self._select(f'{subject.source_name}, 1, {cells}')} WHERE {terms}"

    def _named(self, name: str, key: Key) -> str:
        """Return the condition of a name's rows; a literal equals only one of several keys that have it."""
        if name in self.twice:
            return f"CAST({self.subject.source_name} AS BINARY) = X'{name.encode().hex()}'"
        pairs = zip(self.subject.keys, key, strict=True)
        return " AND ".join(f"{quoted(cell.column.name)} = {literal(cell, text)}" for cell, text in pairs)

    def _settled(self, cells: Sequence[object]) -> tuple[str | None, ...]:
        subject = self.subject
        pairs = zip(subject.cells, cells, strict=True)
        return tuple(settled(cell, text_of(value), subject.values) for cell, value in pairs)

    def _chunks(self) -> Iterator[tuple[Key | None, Key | None]]:
        yield from pairwise((None, *self.ends, None))

    def _range(self, number: int) -> Iterator[str]:
        """Yield the conditions of the statements that read one range: one if it has bounds, else one for each chunk."""
        if self.subject.how != "ranges" or not self.cuts:
            yield from (self._where(after, end) for after, end in self._chunks())
            return
        first = quoted(self.subject.first)
        bounds = [f"{first} > {self.cuts[number - 1]}"] if number else []
        bounds += [f"{first} <= {self.cuts[number]}"] if number < len(self.cuts) else []
        yield f" WHERE {' AND '.join(bounds)}"

    def _where(self, after: Key | None, end: Key | None) -> str:
        schema = self.subject.schema
        bounds = [f"({chunks.after_key(schema, after)})"] if after else []
        bounds += [f"({chunks.up_to(schema, end)})"] if end else []
        return f" WHERE {' AND '.join(bounds)}" if bounds else ""

    def _answer(self, sql: str) -> list[tuple[Any, ...]]:
        return answer(self.connection, sql, self.subject.schema.name)

    @cached_property
    def _index(self) -> str:
        return InformationSchema(self.connection).key_name(self.subject.schema)

    def _select(self, columns: str) -> str:
        schema = self.subject.schema
        forced = f" FORCE INDEX ({chunks.index_name(self._index)})" if self._index else ""
        return f"SELECT {columns} FROM {quoted(schema.database)}.{quoted(schema.table)}{forced}"  # noqa: S608 - names are quoted


def _as_text(cell: Cell) -> str:
    """Return the SQL of a cell as text: the driver converts numbers and times otherwise."""
    return f"CONCAT({cell.source})"
