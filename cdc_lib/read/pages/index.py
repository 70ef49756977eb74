"""Where the pages of a Parquet file are: from its footer and its offset indexes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from cdc_lib.read.pages.compact import LIST, STRUCT, Reader

Numbers = NDArray[np.int64]
_Located = tuple[Numbers, Numbers, Numbers]
"""Offsets, sizes and first rows of pages."""
ReadAt = Callable[[int, int], bytes]
"""Returns a number of bytes from a position of a file."""

_MAGIC_BYTES = 4
_LOCATION = (0x16, 0x15, 0x16, 0x00)
"""What precedes each number of a page's location, and at its end."""
_CHUNK_BYTES = 300
"""About what one column of a row group takes in memory, without its pages."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """One column of one row group.

    Args:
        about: its type, encodings, path and codec, as the footer has them.
        codec: number of its compression in Parquet.
        inflated: bytes of its pages without compression.
        start: where its dictionary is, or its first page.
        offsets: where each page is.
        sizes: bytes of each page, with its header.
        firsts: number of the first row of each page; columns of a row group whose pages begin at the same rows share the array.
    """

    about: bytes
    codec: int
    inflated: int
    start: int
    offsets: Numbers
    sizes: Numbers
    firsts: Numbers

    @property
    def has_dictionary(self) -> bool:
        """Whether a dictionary precedes its pages."""
        return bool(self.start < self.offsets[0])


@dataclass(frozen=True, slots=True)
class Element:
    """The schema's entry of a column.

    Args:
        data: the entry, as the footer has it.
        physical: number of its type in Parquet.
        length: bytes of each value, if all have as many.
        repetition: 0 if no value is null, 1 if some may be, 2 for lists.
    """

    data: bytes
    physical: int
    length: int
    repetition: int


@dataclass(frozen=True, slots=True)
class PageIndex:
    """The pages of a file.

    Args:
        elements: the schema's entry of each column.
        chunks: by row group, the columns; None for one without an offset index.
    """

    elements: tuple[Element, ...]
    chunks: tuple[tuple[Chunk | None, ...], ...]

    def has_dictionary(self, group: int, column: int) -> bool:
        """Whether a column of a row group has a dictionary."""
        chunk = self.chunks[group][column]
        return chunk is not None and chunk.has_dictionary

    @property
    def bytes(self) -> int:
        """Memory that it takes."""
        pages = sum(24 * len(one.offsets) + _CHUNK_BYTES for group in self.chunks for one in group if one is not None)
        return pages + sum(len(one.data) for one in self.elements)


@dataclass(frozen=True, slots=True)
class _ColumnEntry:
    """What the footer says of a column of a row group; positions are 0 where it names none."""

    about: bytes
    codec: int
    inflated: int
    dictionary: int
    data: int
    index_at: int
    index_size: int


def read_index(metadata: pq.FileMetaData, read_at: ReadAt) -> PageIndex:
    """Return where the pages of a file are; its offset indexes are read at once.

    Args:
        metadata: its footer.
        read_at: reads its bytes.

    Raises:
        ValueError: an offset index is damaged.
    """
    sink = pa.BufferOutputStream()
    metadata.write_metadata_file(sink)
    elements, groups = _footer(Reader(sink.getvalue().to_pybytes(), _MAGIC_BYTES))
    indexed = [one for group in groups for one in group if one.index_size]
    if not indexed:
        return PageIndex(elements, tuple((None,) * len(group) for group in groups))
    begin = min(one.index_at for one in indexed)
    block = read_at(max(one.index_at + one.index_size for one in indexed) - begin, begin)
    try:
        locations = _locations(block, [one.index_at - begin for one in indexed])
    except IndexError:
        raise ValueError("offset index without its end") from None
    located = dict(zip(map(id, indexed), locations, strict=True))
    return PageIndex(elements, tuple(_chunks(group, located) for group in groups))


def _chunks(group: Sequence[_ColumnEntry], located: Mapping[int, _Located]) -> tuple[Chunk | None, ...]:
    shared: dict[bytes, Numbers] = {}
    chunks = tuple(_chunk(one, located.get(id(one)), shared) for one in group)
    # Columns of one page each are read as a whole: nothing is gained by knowing where their pages are.
    has_more = any(one is not None and len(one.offsets) > 1 for one in chunks)
    return chunks if has_more else (None,) * len(group)


def _chunk(entry: _ColumnEntry, pages: _Located | None, shared: dict[bytes, Numbers]) -> Chunk | None:
    if pages is None or not len(pages[0]):
        return None
    start = entry.dictionary or entry.data
    # A writer that does not name its dictionary has it before the first page: such a column is read as a whole.
    if start > pages[0][0] or (not entry.dictionary and entry.data != pages[0][0]):
        return None
    offsets, sizes, firsts = pages
    firsts = shared.setdefault(firsts.tobytes(), firsts)
    return Chunk(entry.about, entry.codec, entry.inflated, start, offsets, sizes, firsts)


def _footer(reader: Reader) -> tuple[tuple[Element, ...], list[list[_ColumnEntry]]]:
    """Return the schema's entries of the columns, and the row groups."""
    elements: tuple[Element, ...] = ()
    groups: list[list[_ColumnEntry]] = []
    for field_id, of in reader.fields():
        if field_id == 2:
            elements = _elements(reader)
        elif field_id == 4:
            count, _ = reader.items()
            groups = [_group(reader) for _ in range(count)]
        else:
            reader.skip(of)
    return elements, groups


def _elements(reader: Reader) -> tuple[Element, ...]:
    found = []
    count, _ = reader.items()
    for _ in range(count):
        begin, children, numbers = reader.at, False, dict[int, int]()
        for field_id, of in reader.fields():
            children |= field_id == 5
            if field_id in (1, 2, 3):
                numbers[field_id] = reader.number()
            else:
                reader.skip(of)
        if not children:
            named = (numbers.get(field_id, 0) for field_id in (1, 2, 3))
            found.append(Element(bytes(reader.data[begin : reader.at]), *named))
    return tuple(found)


def _group(reader: Reader) -> list[_ColumnEntry]:
    found: list[_ColumnEntry] = []
    for field_id, of in reader.fields():
        if field_id == 1:
            count, _ = reader.items()
            found = [_entry(reader) for _ in range(count)]
        else:
            reader.skip(of)
    return found


def _entry(reader: Reader) -> _ColumnEntry:
    about, index = b"", {4: 0, 5: 0}
    numbers: dict[int, int] = {}
    for field_id, of in reader.fields():
        if field_id == 3:
            about, numbers = _column(reader)
        elif field_id in index:
            index[field_id] = reader.number()
        else:
            reader.skip(of)
    codec, inflated, dictionary, data = (numbers.get(field_id, 0) for field_id in (4, 6, 11, 9))
    return _ColumnEntry(about, codec, inflated, dictionary, data, index[4], index[5])


def _column(reader: Reader) -> tuple[bytes, dict[int, int]]:
    """Return the fields of a column's metadata up to the codec, and its numbers by the ids of their fields."""
    begin, about = reader.at, b""
    numbers: dict[int, int] = {}
    for field_id, of in reader.fields():
        if field_id in (4, 6, 9, 11):
            numbers[field_id] = reader.number()
        else:
            reader.skip(of)
        if field_id == 4:
            about = bytes(reader.data[begin : reader.at])
    return about, numbers


def _locations(block: bytes, starts: Sequence[int]) -> list[_Located]:
    """Return offsets, sizes and first rows of the pages of each offset index.

    Everything in the list of an index is a number of variable length, or a byte that reads as one. So all are decoded at once.

    Args:
        block: has the indexes.
        starts: where each begins.

    Raises:
        ValueError: an index is not as writers write it.
    """
    reader, bodies, counts = Reader(block), [], []
    for start in starts:
        reader.at = start
        if next(reader.fields(), None) != (1, LIST):
            raise ValueError("offset index without pages")
        count, of = reader.items()
        if of != STRUCT:
            raise ValueError("offset index without pages")
        bodies.append(reader.at)
        counts.append(count)
    data = np.frombuffer(block, np.uint8).astype(np.int64)
    data[np.array(bodies) - 1] = 0  # the size of a list would read as the begin of a number
    values, begins = _unsigned_numbers(data)
    found = []
    for at, count in zip(np.searchsorted(begins, bodies).tolist(), counts, strict=True):
        pages = values[at : at + 7 * count].reshape(-1, 7)
        if len(pages) != count or not np.array_equal(pages[:, ::2], np.tile(_LOCATION, (count, 1))):
            raise ValueError("offset index of an unknown form")
        offsets, sizes, firsts = (np.ascontiguousarray(pages[:, column] >> 1) for column in (1, 3, 5))
        found.append((offsets, sizes, firsts))
    return found


def _unsigned_numbers(data: Numbers) -> tuple[Numbers, Numbers]:
    """Return the numbers of variable length that bytes consist of, and where each begins."""
    ends = np.flatnonzero(data < 128)
    begins = np.append(0, ends[:-1] + 1)
    shifts = np.arange(len(data)) - np.repeat(begins, np.diff(np.append(begins, len(data))))
    parts = np.where(shifts < 9, (data & 127) << np.minimum(7 * shifts, 56), 0)
    values: Numbers = np.add.reduceat(parts, begins) if len(begins) else begins
    return values, begins
