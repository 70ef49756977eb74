"""Rows of a Parquet file, decoded from the pages that have them.

Arrow reads whole columns of row groups. So the bytes of the pages are put together as a small Parquet file, with a footer of its own, and
Arrow decodes that one.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from cdc_lib.read.pages.compact import BINARY, INT32, INT64, LIST, STRUCT, items, number, struct, unsigned
from cdc_lib.read.pages.index import Chunk, Numbers, PageIndex, ReadAt

_MAGIC = b"PAR1"
MOST = 0.7
"""If the pages with the rows have a larger part of the rows than this, the whole columns are read as fast."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """Rows of a row group.

    Args:
        group: its number.
        rows: numbers of the rows within it, ascending.
        count: number of all its rows.
    """

    group: int
    rows: Numbers
    count: int


@dataclass(frozen=True, slots=True)
class _Pages:
    """Pages of a row group that columns have in common, because their pages begin at the same rows.

    Args:
        wanted: the rows.
        numbers: of the pages that have them.
        rows: number of rows of these pages.
        taken: where the wanted rows are within them.
    """

    wanted: Wanted
    numbers: Numbers
    rows: int
    taken: Numbers


@dataclass(frozen=True, slots=True)
class _Together:
    """Columns whose pages begin at the same rows, and the pages in each row group."""

    columns: Sequence[int]
    pages: Sequence[_Pages]


def read_pages(
    index: PageIndex, columns: Sequence[int], wanted: Sequence[Wanted], read_at: ReadAt, gap: int
) -> dict[int, pa.ChunkedArray] | None:
    """Return columns of rows, in the order of the rows; None if it is better to read the row groups.

    Args:
        index: of the file.
        columns: their numbers.
        wanted: the rows.
        read_at: reads the file.
        gap: most bytes between two pages that are read with them in one request.

    Raises:
        ArrowInvalid: a page is damaged.
    """
    chosen = _chosen(index, columns, wanted)
    if chosen is None:
        return None
    spans = [_spans(index, chosen, number) for number in range(len(wanted))]
    parts = [ReadSpans(one, read_at, gap) for one in spans]
    found: dict[int, pa.ChunkedArray] = {}
    for one in chosen:
        small = pq.ParquetFile(pa.BufferReader(_small_file(index, one, parts)))
        table = small.reader.read_all(use_threads=False)
        starts = np.cumsum([0, *(each.rows for each in one.pages)])[:-1].tolist()
        taken = pa.array(np.concatenate([each.taken + start for each, start in zip(one.pages, starts, strict=True)]))
        found |= {column: array.take(taken) for column, array in zip(one.columns, table.columns, strict=True)}
    return found


def _chosen(index: PageIndex, columns: Sequence[int], wanted: Sequence[Wanted]) -> list[_Together] | None:
    """Return the pages with the rows; None if they are not known, or too many."""
    by_firsts: dict[tuple[bytes, ...], list[int]] = {}
    for column in columns:
        chunks = [index.chunks[one.group][column] for one in wanted]
        known = tuple(one.firsts.tobytes() for one in chunks if one is not None)
        if len(known) < len(wanted):
            return None
        by_firsts.setdefault(known, []).append(column)
    chosen = [
        _Together(together, [_pages(*one) for one in zip(wanted, firsts, strict=True)])
        for firsts, together in by_firsts.items()
    ]
    decoded = sum(len(one.columns) * sum(each.rows for each in one.pages) for one in chosen)
    return chosen if decoded <= MOST * len(columns) * sum(one.count for one in wanted) else None


def _pages(wanted: Wanted, first_rows: bytes) -> _Pages:
    firsts = np.frombuffer(first_rows, np.int64)
    of_row = np.searchsorted(firsts, wanted.rows, "right") - 1
    numbers, of_row_in_chosen = np.unique(of_row, return_inverse=True)
    counts = np.diff(np.append(firsts, wanted.count))[numbers]
    before = np.cumsum(counts) - counts
    taken = wanted.rows - firsts[of_row] + before[of_row_in_chosen]
    return _Pages(wanted, numbers, int(counts.sum()), taken)


Span = tuple[int, int]
"""Begin and end of bytes in a file."""


def _chunk(index: PageIndex, group: int, column: int) -> Chunk:
    chunk = index.chunks[group][column]
    if chunk is None:
        raise ValueError("column without an offset index")
    return chunk


def _spans(index: PageIndex, chosen: Sequence[_Together], number: int) -> list[Span]:
    """Return the bytes that are needed of a row group: of each column its dictionary and its pages."""
    found: list[Span] = []
    for one in chosen:
        pages = one.pages[number]
        for column in one.columns:
            found += _column_spans(_chunk(index, pages.wanted.group, column), pages.numbers)
    return sorted(found)


def _column_spans(chunk: Chunk, numbers: Numbers) -> list[Span]:
    begins = chunk.offsets[numbers]
    pages = zip(begins.tolist(), (begins + chunk.sizes[numbers]).tolist(), strict=True)
    first = int(chunk.offsets[0])
    return [*([(chunk.start, first)] if chunk.start < first else ()), *pages]


class ReadSpans:
    """Parts of a file, read with as few requests as the gaps between them allow.

    Args:
        spans: the parts, in the order of the file.
        read_at: reads the file.
        gap: most bytes between two parts that are read in one request.
    """

    def __init__(self, spans: Sequence[Span], read_at: ReadAt, gap: int) -> None:
        merged: list[list[int]] = []
        for begin, end in spans:
            if merged and begin - merged[-1][1] <= gap:
                merged[-1][1] = max(end, merged[-1][1])
            else:
                merged.append([begin, end])
        self._begins = [begin for begin, _ in merged]
        self._read = [memoryview(read_at(end - begin, begin)) for begin, end in merged]

    def of(self, span: Span) -> memoryview:
        """Return a part."""
        number = bisect_right(self._begins, span[0]) - 1
        begin = self._begins[number]
        return self._read[number][span[0] - begin : span[1] - begin]


def _small_file(index: PageIndex, one: _Together, parts: Sequence[ReadSpans]) -> bytes:
    """Return a Parquet file with the pages of columns."""
    body: list[bytes | memoryview] = [_MAGIC]
    at, groups = len(_MAGIC), list[bytes]()
    for pages, read in zip(one.pages, parts, strict=True):
        columns = []
        for column in one.columns:
            chunk = _chunk(index, pages.wanted.group, column)
            spans = _column_spans(chunk, pages.numbers)
            found = [read.of(span) for span in spans]
            sizes = [len(each) for each in found]
            body += found
            columns.append(_column(chunk, pages, at, sizes))
            at += sum(sizes)
        groups.append(struct((1, LIST, items(STRUCT, columns)), (2, INT64, number(at)), (3, INT64, number(pages.rows))))
    footer = _footer(
        [index.elements[column].data for column in one.columns], groups, sum(each.rows for each in one.pages)
    )
    return b"".join([*body, footer, len(footer).to_bytes(4, "little"), _MAGIC])


def _column(chunk: Chunk, pages: _Pages, at: int, sizes: Sequence[int]) -> bytes:
    """Return the footer's entry of a column."""
    with_dictionary = len(sizes) > len(pages.numbers)
    fields = [
        (5, INT64, number(pages.rows)),
        (6, INT64, number(chunk.inflated)),
        (7, INT64, number(sum(sizes))),
        (9, INT64, number(at + sizes[0] if with_dictionary else at)),
    ]
    if with_dictionary:
        fields.append((11, INT64, number(at)))
    metadata = chunk.about + struct(*fields, after=4)
    return struct((2, INT64, number(at)), (3, STRUCT, metadata))


def _footer(elements: Sequence[bytes], groups: list[bytes], rows: int) -> bytes:
    root = struct((4, BINARY, unsigned(6) + b"schema"), (5, INT32, number(len(elements))))
    return struct(
        (1, INT32, number(1)),
        (2, LIST, items(STRUCT, [root, *elements])),
        (3, INT64, number(rows)),
        (4, LIST, items(STRUCT, groups)),
    )
