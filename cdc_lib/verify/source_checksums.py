"""The source's half of a comparison: checksums of a table's ranges, lists of a range's rows, rows by key.

One session reads in the order of the key, so many rows at a time; between two statements it rests as long as it is told to.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import Any

from cdc_lib.model.pace import Pace
from cdc_lib.model.projection import can_be_chunked
from cdc_lib.mysql.connection import Session
from cdc_lib.mysql.information_schema import InformationSchema
from cdc_lib.mysql.read_only_session import answer, text_of
from cdc_lib.snapshot import chunks
from cdc_lib.verify.canonical_text import Cell, literal, quoted, settled
from cdc_lib.verify.checksums import Listed, Sum, added
from cdc_lib.verify.classify import Seen
from cdc_lib.verify.comparability import Subject

log = logging.getLogger(__name__)

Key = tuple[str, ...]

ROWS_BY_KEY = 200
"""Rows that one statement reads by their keys."""


@dataclass(frozen=True)
class SourceSums:
    """Reads one table.

    Args:
        connection: a session that only reads.
        subject: what is compared.
        chunk_rows: rows that one statement goes through.
        statement_delay: seconds between two statements.
        rest: how it waits.
    """

    connection: Session
    subject: Subject
    chunk_rows: int
    statement_delay: float = 0.0
    rest: Callable[[float], None] = field(default=time.sleep)

    @cached_property
    def ends(self) -> tuple[Key, ...]:
        """The keys at which chunks end, as :func:`cdc_lib.snapshot.chunks.key_text` writes them; the last chunk has no end."""
        schema = self.subject.schema
        if not can_be_chunked(schema):
            return ()
        found: list[Key] = []
        while True:
            where = f" WHERE {chunks.beyond(schema, found[-1])}" if found else ""
            order = ", ".join(quoted(name) for name in schema.primary_key)
            sql = f"{self._select(', '.join(map(self._key_text, schema.primary_key)))}{where} ORDER BY {order} LIMIT 1 OFFSET {self.chunk_rows - 1}"
            rows = self._answer(sql)
            if not rows:
                return tuple(found)
            found.append(tuple(text_of(value) or "" for value in rows[0]))

    @cached_property
    def cuts(self) -> tuple[int, ...]:
        """Where ranges end: values of the key's first column, each of them in the range that it ends."""
        return tuple(sorted({int(end[0]) for end in self.ends})) if self.subject.how == "ranges" else ()

    def sums(self) -> dict[int, Sum]:
        """Return the checksum of each range."""
        return added(self._sums())

    def _sums(self) -> Iterator[tuple[int, Sum]]:
        hashed = self.subject.source_hash
        numbers = {cut: number for number, cut in enumerate(self.cuts)}
        schema, began = self.subject.schema, time.monotonic()
        pace = Pace(
            f"comparing {schema.name}", "rows", InformationSchema(self.connection).estimated_rows_of(schema), began
        )
        for after, end in self._chunks():
            own = numbers[int(end[0])] if end and numbers else len(numbers)
            before = numbers[int(after[0])] if after and numbers else own
            # A chunk may begin with rows that belong to the range before: their first column is the same.
            split = after is not None and before != own and len(self.subject.schema.primary_key) > 1
            side = f"{quoted(self.subject.first)} > {after[0]}" if split and after else "1"
            group = " GROUP BY 1" if split else ""
            sql = f"{self._select(f'{side}, COUNT(*), SUM({hashed})')}{self._where(after, end)}{group}"
            for side_found, rows, total in self._answer(sql):
                yield own if int(side_found) else before, Sum(int(rows), int(total or 0))
                if line := pace.tick(int(rows), time.monotonic()):
                    log.info("%s", line)
            self.rest(self.statement_delay)

    def shares(self, number: int) -> dict[int, Sum]:
        """Return the checksums of the shares of one range."""
        subject = self.subject
        found: list[tuple[int, Sum]] = []
        for where in self._range(number):
            columns = f"{subject.source_share}, COUNT(*), SUM({subject.source_hash})"
            rows = answer(self.connection, f"{self._select(columns)}{where} GROUP BY 1")
            found += [(int(share), Sum(int(count), int(total or 0))) for share, count, total in rows]
            self.rest(self.statement_delay)
        return added(found)

    def listed(self, number: int, shares: Collection[int]) -> list[Listed]:
        """Return the rows of some shares of one range."""
        subject = self.subject
        wanted = ", ".join(map(str, sorted(shares)))
        found = []
        for where in self._range(number):
            word = "AND" if where else " WHERE"
            filtered = f"{where} {word} {subject.source_share} IN ({wanted})"
            columns, group = f"{subject.source_name}, {subject.source_hash}, 1", ""
            if subject.how == "copies":
                columns, group = f"{subject.source_hash}, {subject.source_hash}, COUNT(*)", " GROUP BY 1, 2"
            else:
                columns += "".join(f", {_as_text(cell)}" for cell in subject.keys)
            for name, hashed, copies, *key in self._answer(f"{self._select(columns)}{filtered}{group}"):
                # A row whose text is longer than the server's packets has no hash: it is looked at by its cells.
                own = -1 if hashed is None else int(hashed)
                found.append(Listed(text_of(name) or "", own, int(copies), tuple(text_of(one) or "" for one in key)))
            self.rest(self.statement_delay)
        return found

    def rows(self, keys: Mapping[str, Key]) -> dict[str, Seen]:
        """Read rows by their names, each with the texts of its key."""
        names = list(keys)
        found: dict[str, Seen] = {}
        for first in range(0, len(names), ROWS_BY_KEY):
            some = names[first : first + ROWS_BY_KEY]
            wanted = set(some)
            for row in self._answer(self._by_name(some, keys)):
                name, copies, *cells = row
                if (text := text_of(name)) is not None and text in wanted:
                    settled_cells = self._settled(cells)
                    compared = () if self.subject.how == "copies" else settled_cells
                    found[text] = Seen(compared, int(copies), shown=settled_cells)
        return found

    def _by_name(self, names: Sequence[str], keys: Mapping[str, Key]) -> str:
        subject = self.subject
        cells = ", ".join(_as_text(cell) for cell in subject.cells)
        if subject.how == "copies":
            any_value = ", ".join(f"MAX({_as_text(cell)})" for cell in subject.cells)
            chosen = f" WHERE {subject.source_hash} IN ({', '.join(names)}) GROUP BY 1"
            return f"{self._select(f'{subject.source_hash}, COUNT(*), {any_value}')}{chosen}"
        terms = (
            " AND ".join(
                f"{quoted(cell.column.name)} = {literal(cell, text)}"
                for cell, text in zip(subject.keys, keys[name], strict=True)
            )
            for name in names
        )
        return (
            f"{self._select(f'{subject.source_name}, 1, {cells}')} WHERE {' OR '.join(f'({term})' for term in terms)}"
        )

    def _settled(self, cells: Sequence[object]) -> tuple[str | None, ...]:
        subject = self.subject
        pairs = zip(subject.cells, cells, strict=True)
        return tuple(settled(cell, text_of(value), subject.values) for cell, value in pairs)

    def _chunks(self) -> Iterator[tuple[Key | None, Key | None]]:
        yield from pairwise((None, *self.ends, None))

    def _range(self, number: int) -> Iterator[str]:
        """Yield the conditions under which one range is read: at once when it has bounds, else chunk by chunk."""
        if self.subject.how != "ranges" or not self.cuts:
            yield from (self._where(after, end) for after, end in self._chunks())
            return
        first = quoted(self.subject.first)
        bounds = [f"{first} > {self.cuts[number - 1]}"] if number else []
        bounds += [f"{first} <= {self.cuts[number]}"] if number < len(self.cuts) else []
        yield f" WHERE {' AND '.join(bounds)}"

    def _where(self, after: Key | None, end: Key | None) -> str:
        schema = self.subject.schema
        bounds = [f"({chunks.beyond(schema, after)})"] if after else []
        bounds += [f"({chunks.up_to(schema, end)})"] if end else []
        return f" WHERE {' AND '.join(bounds)}" if bounds else ""

    def _answer(self, sql: str) -> list[tuple[Any, ...]]:
        return answer(self.connection, sql, self.subject.schema.name)

    def _key_text(self, name: str) -> str:
        """Return the SQL of a key's column as :func:`cdc_lib.snapshot.chunks.key_text` writes it."""
        kinds = {column.name: column.type.kind for column in self.subject.schema.columns}
        return f"HEX({quoted(name)})" if kinds[name] in ("bytes", "string") else f"CAST({quoted(name)} AS CHAR)"

    @cached_property
    def _index(self) -> str:
        return InformationSchema(self.connection).key_name(self.subject.schema)

    def _select(self, columns: str) -> str:
        schema = self.subject.schema
        forced = (
            f" FORCE INDEX ({'PRIMARY' if self._index == 'PRIMARY' else quoted(self._index)})" if self._index else ""
        )
        return f"SELECT {columns} FROM {quoted(schema.database)}.{quoted(schema.table)}{forced}"  # noqa: S608 - names are quoted


def _as_text(cell: Cell) -> str:
    """Return the SQL of a cell as the text that is in a row's: the driver makes other things of numbers and times."""
    return f"CONCAT({cell.source})"
