"""Data files of a lake table: Parquet with Iceberg's field ids. Rows are found in them by their keys, and new ones are written."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import IO, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from cdc_lib.apply.decide import NeedsSpark
from cdc_lib.apply.key_rows import AskedKeys, KeyRows, Rows

_FIELD_ID = b"PARQUET:field_id"
_TYPES = {
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us"),
    "timestamptz": pa.timestamp("us", tz="UTC"),
    "string": pa.string(),
    "binary": pa.binary(),
}
"""By Iceberg's names."""
_DEFAULT_CODEC = "zstd"
_GROUP_BYTES, _PAGE_ROWS = 128 << 20, 20_000
"""Iceberg's defaults."""
_BLOOM_FILTERS = "write.parquet.bloom-filter-enabled.column."


def lake_fields(columns: Sequence[Mapping[str, Any]]) -> tuple[pa.Field, ...]:
    """Return the columns of a lake table as Arrow fields with Iceberg's ids.

    Args:
        columns: as the JSON of the table's metadata has them.

    Raises:
        NeedsSpark: a column has a type that is not written here.
    """
    return tuple(
        pa.field(
            str(one["name"]),
            _arrow_type(one["type"]),
            nullable=not one["required"],
            metadata={_FIELD_ID: str(one["id"]).encode()},
        )
        for one in columns
    )


def _arrow_type(kind: Any) -> pa.DataType:
    if isinstance(kind, str) and kind.startswith("decimal("):
        return pa.decimal128(*(int(part) for part in kind[8:-1].split(",")))
    if not isinstance(kind, str) or kind not in _TYPES:
        raise NeedsSpark(f"a column has the type {kind}")
    return _TYPES[kind]


def write_rows(rows: pa.Table, to: IO[bytes], schema_json: str, properties: Mapping[str, str]) -> None:
    """Write rows as a data file, in row groups and pages as the table's properties say.

    Args:
        rows: with the fields of :func:`lake_fields`, at least one.
        to: receives the file.
        schema_json: of the table, as Iceberg's metadata have it.
        properties: of the table.
    """
    level = properties.get("write.parquet.compression-level")
    group_bytes = int(properties.get("write.parquet.row-group-size-bytes", _GROUP_BYTES))
    pq.write_table(
        rows.replace_schema_metadata({"iceberg.schema": schema_json}),
        to,
        row_group_size=max(1, group_bytes * rows.num_rows // max(rows.nbytes, 1)),
        # A page ends with the batch of rows after which it has this size.
        write_batch_size=int(properties.get("write.parquet.page-row-limit", _PAGE_ROWS)),
        data_page_size=1,
        compression=codec_of(properties),
        compression_level=int(level) if level else None,
        write_page_index=True,
        store_decimal_as_integer=True,
        store_schema=False,
    )


def codec_of(properties: Mapping[str, str]) -> str:
    """Return the compression of new data files.

    Raises:
        NeedsSpark: the table wants something else of its files that is not written here.
    """
    codec = properties.get("write.parquet.compression-codec", _DEFAULT_CODEC).lower()
    codec = {"uncompressed": "none"}.get(codec, codec)
    blooms = (text for name, text in properties.items() if name.startswith(_BLOOM_FILTERS))
    if codec not in ("zstd", "gzip", "snappy", "none") or any(text.lower() == "true" for text in blooms):
        raise NeedsSpark("the table asks for another compression or for Bloom filters")
    return codec


def positions_of(file: pa.NativeFile, key: Sequence[pa.Field], asked: AskedKeys) -> Iterator[Rows]:
    """Yield the positions of the rows that have one of the keys, by row group.

    Args:
        file: a data file.
        key: the fields of the key's columns.
        asked: the keys.

    Raises:
        NeedsSpark: the file has other columns.
    """
    start = 0
    for arrays in _keys_of(file, key):
        rows, _ = asked.find(KeyRows.of(arrays, None))
        yield rows + start
        start += len(arrays[0])


def joined_positions(file: pa.NativeFile, key: Sequence[pa.Field], keys: pa.Table) -> Rows:
    """Return what :func:`positions_of` yields, found in another way: by a join.

    Args:
        file: a data file.
        key: the fields of the key's columns.
        keys: the keys, none twice.
    """
    names, groups = [f"key {number}" for number in range(len(key))], [*_keys_of(file, key)]
    columns = [
        pa.chunked_array([chunk for group in groups for chunk in group[number].chunks], one.type)
        for number, one in enumerate(key)
    ]
    rows = pa.Table.from_arrays([*columns, pa.array(np.arange(len(columns[0])))], [*names, "position"])
    found = rows.join(keys.rename_columns(names), names, join_type="left semi", use_threads=False)
    positions: Rows = found.column("position").to_numpy()
    return positions


def _keys_of(file: pa.NativeFile, key: Sequence[pa.Field]) -> Iterator[list[pa.ChunkedArray]]:
    """Yield the columns of the key, by row group."""
    parquet = pq.ParquetFile(file)
    ids = {(one.metadata or {}).get(_FIELD_ID): number for number, one in enumerate(parquet.schema_arrow)}
    numbers = [number for one in key if (number := ids.get(one.metadata[_FIELD_ID])) is not None]
    if len(numbers) < len(key) or parquet.metadata.num_columns != len(parquet.schema_arrow):
        raise NeedsSpark("a file of the lake table has other columns")
    for group in range(parquet.num_row_groups):
        read = parquet.reader.read_row_group(group, column_indices=sorted(numbers), use_threads=False)
        by_number = dict(zip(sorted(numbers), read.columns, strict=True))
        yield [by_number[number].cast(one.type) for number, one in zip(numbers, key, strict=True)]


def in_order(rows: pa.Table, key: Sequence[str]) -> pa.Table:
    """Return rows in the order of a key."""
    return rows.take(pc.sort_indices(rows, sort_keys=[(name, "ascending") for name in key]))
