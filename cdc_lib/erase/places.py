"""Looks into one object or file: Parquet, Avro, Puffin, JSON, compressed events, or other bytes."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import zstandard
from pyiceberg.avro.file import AvroFile
from pyiceberg.io import InputFile
from pyiceberg.table.puffin import PuffinFile
from pyiceberg.typedef import Record
from pyiceberg.types import MapType, NestedField, StructType

from cdc_lib.erase.needles import Needles, equal, in_document, is_long
from cdc_lib.model.pace import counted, listed
from cdc_lib.read.bounds import decode_bound

_ROWS_AT_ONCE = 20_000
_BYTES_AT_ONCE = 16 << 20
_OVERLAP = 256
"""Bytes: more than the longest pattern."""


LAKE = "lake"
"""Kind of files in the folders of a lake table; others begin with it."""

LOST_FILE = f"{LAKE}, lost file"
"""Kind of those that a stopped job left: no metadata names them."""


@dataclass(frozen=True, slots=True)
class Found:
    """Values of the rows in one place.

    Args:
        kind: of the place.
        place: key in the store, or location in the lake.
        what: what is there.
    """

    kind: str
    place: str
    what: str


def in_parquet(data: Any, named: Mapping[str, str], needles: Needles) -> Iterator[str]:
    """Yield what a Parquet file has of the rows: rows, cells, bounds of row groups, and bytes of its footer.

    Args:
        data: the opened file.
        named: columns of the file by the names that ``needles`` has.
        needles: what is looked for.
    """
    file = pq.ParquetFile(data)
    rows = cells = 0
    for batch in file.iter_batches(_ROWS_AT_ONCE, use_threads=False):
        rows += int(np.count_nonzero(rows_of(batch, named, needles)))
        cells += sum(_cells(batch.column(number), needles) for number in range(batch.num_columns))
        for name, values in needles.values.items():
            if name in named and (rest := [value for value in values if not is_long(value)]):
                cells += int(np.count_nonzero(equal(batch.column(named[name]), rest)))
    if rows or cells:
        yield listed((rows, "row"), (cells, "cell"))
    if bounds := sum(_bounds(file.metadata.row_group(number), named, needles) for number in range(file.num_row_groups)):
        yield f"{counted(bounds, 'bound')} of row groups"
    data.seek(_end_of_rows(file.metadata))
    if needles.in_bytes(data.read()):
        yield "bytes of the footer"


def rows_of(batch: pa.RecordBatch, named: Mapping[str, str], needles: Needles) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Return which rows of a batch have one of the keys; none if a column of the key is not there."""
    if not needles.names or any(name not in named for name in needles.names):
        return np.zeros(batch.num_rows, np.bool_)
    return needles.rows_in([batch.column(named[name]) for name in needles.names])


def _cells(column: pa.Array, needles: Needles) -> int:
    """Return how many cells hold one of the texts."""
    if isinstance(column, pa.StructArray):
        return sum(_cells(part, needles) for part in column.flatten())
    text = pa.types.is_string(column.type) or pa.types.is_large_string(column.type)
    if isinstance(column, pa.DictionaryArray):
        return _cells(column.dictionary_decode(), needles)
    if text:
        return sum(map(needles.in_text, pc.unique(column).drop_null().to_pylist()))
    if pa.types.is_binary(column.type) or pa.types.is_fixed_size_binary(column.type):
        return sum(map(needles.in_bytes, pc.unique(column).drop_null().to_pylist()))
    return 0


def _bounds(group: Any, named: Mapping[str, str], needles: Needles) -> int:
    asked = {named[name]: name for name in needles.by_column if name in named}
    found = 0
    for number in range(group.num_columns):
        column = group.column(number)
        statistics = column.statistics if column.path_in_schema in asked else None
        if statistics is not None and statistics.has_min_max:
            name = asked[column.path_in_schema]
            found += sum(needles.at_bound(name, bound) for bound in (statistics.min, statistics.max))
    return found


def _end_of_rows(metadata: Any) -> int:
    """Return where page indexes, filters and the footer begin."""
    ends = [4]
    for number in range(metadata.num_row_groups):
        group = metadata.row_group(number)
        for at in range(group.num_columns):
            column = group.column(at)
            first = column.dictionary_page_offset or column.data_page_offset
            ends.append(min(first, column.data_page_offset) + column.total_compressed_size)
    return max(ends)


def in_avro(data: InputFile, fields: Mapping[int, tuple[str, pa.DataType]], needles: Needles) -> Iterator[str]:
    """Yield what a manifest or a list of manifests has of the rows: bounds, values of partitions, and texts.

    Args:
        data: the file.
        fields: column and type of each field id that ``needles`` has.
        needles: what is looked for.
    """
    bounds = texts = 0
    with AvroFile[Any](data) as entries:
        for entry in entries:
            for field, value in _avro_leaves(entries.schema.as_struct(), entry):
                if isinstance(value, Mapping) and field.name in ("lower_bounds", "upper_bounds"):
                    known = {number: bound for number, bound in value.items() if number in fields}
                    bounds += sum(
                        needles.at_bound(fields[number][0], decode_bound(fields[number][1], bound))
                        for number, bound in known.items()
                    )
                elif isinstance(value, str):
                    texts += needles.in_text(value)
                elif isinstance(value, bytes):
                    texts += needles.in_bytes(value)
                elif field.name in needles.by_column:  # a partition by the value itself
                    bounds += needles.at_bound(field.name, value)
    if bounds or texts:
        yield listed((bounds, "bound"), (texts, "text"))


def _avro_leaves(struct: StructType, record: Record) -> Iterator[tuple[NestedField, Any]]:
    for number, field in enumerate(struct.fields):
        yield from _values(field, field.field_type, record[number])


def _values(field: NestedField, of: Any, value: Any) -> Iterator[tuple[NestedField, Any]]:
    if value is None:
        return
    if isinstance(of, StructType):
        yield from _avro_leaves(of, value)
    elif isinstance(of, MapType) or not isinstance(value, list):
        yield field, value
    else:
        for part in value:
            yield from _values(field, of.element_type, part)


def in_puffin(data: bytes, needles: Needles) -> Iterator[str]:
    """Yield what a Puffin file has of the rows. Deletion vectors have positions alone, and sketches hashes."""
    file = PuffinFile(data)
    parts = [data, *(file.get_blob_payload(blob) for blob in file.footer.blobs if blob.compression_codec != "lz4")]
    if any(map(needles.in_bytes, parts)):
        yield "bytes"


def in_json(data: bytes, tables: Iterable[str], needles: Needles) -> Iterator[str]:
    """Yield what a JSON document has of the rows; also if it is compressed."""
    keys, texts = in_document(needles, json.loads(gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data), tables)
    if keys or texts:
        yield listed((keys, "key"), (texts, "text"))


def in_events(data: BinaryIO, needles: Needles) -> Iterator[str]:
    """Yield whether compressed events hold one of the texts."""
    with zstandard.ZstdDecompressor().stream_reader(data) as reader:
        if _in_stream(reader, needles):
            yield "bytes of events"


def in_other(data: Any, needles: Needles) -> Iterator[str]:
    """Yield whether a file of no known format holds one of the texts."""
    if _in_stream(data, needles):
        yield "bytes"


def _in_stream(data: Any, needles: Needles) -> bool:
    before = b""
    while part := data.read(_BYTES_AT_ONCE):
        if needles.in_bytes(before + part):
            return True
        before = part[-_OVERLAP:]
    return False


def columns_by_id(schema: pa.Schema, ids: Mapping[str, Sequence[int]]) -> dict[str, str]:
    """Return the columns of a lake file by the names that a search has; a file without field ids has the names themselves."""
    by_id = {
        int(field.metadata[b"PARQUET:field_id"]): field.name
        for field in schema
        if field.metadata and b"PARQUET:field_id" in field.metadata
    }
    found = {name: by_id[number] for name, numbers in ids.items() for number in numbers if number in by_id}
    return found or {name: name for name in ids if name in schema.names}
