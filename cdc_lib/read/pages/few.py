"""Few rows of a Parquet file, of which only the asked values are decoded.

Arrow decodes all values of a page, and prepares the decompression for each page again: for one value of each of many pages that takes
most of the time. Here the pages of a read are decompressed in one call, and single values are read from them.

A read of many keys has ten thousand pages. So there are few objects for each of them, which Python's garbage collector would visit.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NamedTuple

from cdc_lib.read.cache import RecentlyUsed
from cdc_lib.read.pages.header import DATA, DICTIONARY, PageHeader, parse_header
from cdc_lib.read.pages.index import Chunk, Numbers, PageIndex, ReadAt
from cdc_lib.read.pages.inflate import UnknownCodec, inflate
from cdc_lib.read.pages.page import Kind, UnknownEncoding, Value, ValueAt, page_values, plain_values
from cdc_lib.read.pages.selected import ReadSpans

MOST_KEPT = 16
"""Pages of reads of more rows are not kept: those of single gets would have no room."""
_DICTIONARY = -1
"""The number of a column's dictionary, among its pages."""


@dataclass(frozen=True, slots=True)
class FewRows:
    """Rows of a row group.

    Args:
        group: its number.
        rows: numbers of the rows within it, ascending.
    """

    group: int
    rows: Sequence[int]


class _AskedColumn(NamedTuple):
    """What is asked of a column of a row group.

    Args:
        key: with the number of a page it names that among all that is kept.
        column: number of the column among those that are read.
        chunk: where its pages are.
        kind: of its values.
        pages: number of each page, and the rows within it; columns whose pages begin at the same rows share it.
    """

    key: tuple[str, int, int]
    column: int
    chunk: Chunk
    kind: Kind
    pages: list[tuple[int, list[int]]]


class FewRowsReader:
    """Reads values of a file.

    Args:
        path: its location.
        index: of its pages.
        read_at: reads its bytes.
        gap: most bytes between two pages that are read with them in one request.
        kept: keeps pages.
    """

    def __init__(self, path: str, index: PageIndex, read_at: ReadAt, gap: int, kept: RecentlyUsed) -> None:
        self._path = path
        self._index = index
        self._read_at = read_at
        self._gap = gap
        self._kept = kept

    def read(self, columns: Sequence[tuple[int, Kind]], wanted: Sequence[FewRows]) -> list[list[Value]] | None:
        """Return the values of each column, in the order of the rows; None if Arrow has to read them.

        Args:
            columns: number and kind of each.
            wanted: the rows.

        Raises:
            ValueError: a page is damaged.
        """
        asked = self._asked(columns, wanted)
        if asked is None:
            return None
        keep = sum(len(one.rows) for one in wanted) <= MOST_KEPT
        found: list[list[Value]] = [[] for _ in columns]
        try:
            with _damaged():
                for one, rows, page in self._pages(asked, keep=keep):
                    found[one.column] += map(page, rows)
        except (UnknownEncoding, UnknownCodec):
            return None
        return found

    def _asked(self, columns: Sequence[tuple[int, Kind]], wanted: Sequence[FewRows]) -> list[_AskedColumn] | None:
        """Return what is asked of each column of each row group; None if it is not known where pages are."""
        found = []
        for one in wanted:
            chunks = self._index.chunks[one.group]
            known: dict[int, list[tuple[int, list[int]]]] = {}
            for column, (number, kind) in enumerate(columns):
                chunk = chunks[number]
                if chunk is None:
                    return None
                if (pages := known.get(id(chunk.firsts))) is None:
                    pages = known[id(chunk.firsts)] = _pages_with(chunk.firsts, one.rows)
                found.append(_AskedColumn((self._path, one.group, number), column, chunk, kind, pages))
        return found

    def _pages(self, asked: Sequence[_AskedColumn], *, keep: bool) -> Iterator[tuple[_AskedColumn, list[int], ValueAt]]:
        """Yield what reads the values of each page, and the rows within it."""
        in_memory = iter(self._kept.find([(*one.key, page) for one in asked for page, _ in one.pages]) if keep else ())
        places = [(one, page, rows, next(in_memory, None)) for one in asked for page, rows in one.pages]
        missing = [(one, page) for one, page, _, known in places if known is None]
        loaded = self._load(missing, keep=keep) if missing else iter(())
        for one, _, rows, known in places:
            yield one, rows, next(loaded) if known is None else known

    def _load(self, missing: Sequence[tuple[_AskedColumn, int]], *, keep: bool) -> Iterator[ValueAt]:
        """Read pages and the dictionaries that they need; yields what reads the values of each page."""
        with_dictionary = {one.key: one for one, _ in missing if one.chunk.has_dictionary}
        kept = self._kept.find([(*key, _DICTIONARY) for key in with_dictionary])
        dictionaries = {key: one for key, one in zip(with_dictionary, kept, strict=True) if one is not None}
        absent = [(one, _DICTIONARY) for key, one in with_dictionary.items() if key not in dictionaries]
        for (one, number), (header, data) in zip([*absent, *missing], self._inflated([*absent, *missing]), strict=True):
            # What is kept must not hold the other pages that were decompressed with it.
            if number == _DICTIONARY:
                value = dictionaries[one.key] = plain_values(one.kind, bytes(data))
            else:
                body = bytes(data) if keep else data
                value = page_values(one.kind, header, body, dictionaries.get(one.key), again=keep)
            if keep or number == _DICTIONARY:
                self._kept.keep([((*one.key, number), value, one.kind.bytes_of(header))])
            if number != _DICTIONARY:
                yield value

    def _inflated(self, parts: Sequence[tuple[_AskedColumn, int]]) -> Iterator[tuple[PageHeader, memoryview]]:
        """Read pages and dictionaries; yields each with its header, without compression."""
        begins, ends = [], []
        for one, number in parts:
            begin = one.chunk.start if number == _DICTIONARY else int(one.chunk.offsets[number])
            begins.append(begin)
            ends.append(int(one.chunk.offsets[0]) if number == _DICTIONARY else begin + int(one.chunk.sizes[number]))
        read = ReadSpans(sorted(zip(begins, ends, strict=True)), self._read_at, self._gap)
        codec, headers, bodies = parts[0][0].chunk.codec, [], []
        for (one, number), begin, end in zip(parts, begins, ends, strict=True):
            data = read.of((begin, end))
            header = parse_header(data)
            if header.kind != (DICTIONARY if number == _DICTIONARY else DATA):
                raise UnknownEncoding
            if one.chunk.codec != codec:
                raise UnknownCodec
            if header.inflated > one.chunk.inflated or header.end + header.size > len(data):
                raise ValueError("page that is larger than its column")
            headers.append(header)
            bodies.append(data[header.end : header.end + header.size])
        whole, at = inflate(codec, bodies, [header.inflated for header in headers]), 0
        for header in headers:
            yield header, whole[at : at + header.inflated]
            at += header.inflated


def _pages_with(firsts: Numbers, rows: Sequence[int]) -> list[tuple[int, list[int]]]:
    """Return the pages that have rows, and the rows within each."""
    found: dict[int, list[int]] = {}
    for row, page in zip(rows, (firsts.searchsorted(rows, "right") - 1).tolist(), strict=True):
        found.setdefault(page, []).append(row - int(firsts[page]))
    return list(found.items())


@contextmanager
def _damaged() -> Iterator[None]:
    """Translate what reading beyond the end of a page raises.

    Raises:
        ValueError: a page is damaged.
    """
    try:
        yield
    except (IndexError, OverflowError, struct.error) as error:
        raise ValueError(f"page that is damaged: {error}") from None
