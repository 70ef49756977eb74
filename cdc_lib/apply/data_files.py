"""Data files of a lake table: Parquet with Iceberg's field ids. Rows are found in them by their keys, and new ones are written."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import IO, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from cdc_lib.apply.decide import NeedsSpark
from cdc_lib.apply.key_rows import AskedKeys, KeyRows, Rows
from cdc_lib.model.layout import SortField

FIELD_ID = b"PARQUET:field_id"
"""Name of the metadata of an Arrow field that has Iceberg's id."""

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
CODEC, LEVEL = "write.parquet.compression-codec", "write.parquet.compression-level"
"""Properties of a table that say how new files are compressed."""
_DEFAULT_CODEC = "zstd"
_GROUP_BYTES, _PAGE_ROWS = 128 << 20, 20_000
"""Iceberg's defaults."""
_BLOOM_FILTERS = "write.parquet.bloom-filter-enabled.column."


def lake_fields(columns: Sequence[Mapping[str, Any]]) -> tuple[pa.Field, ...]:
    """Return the columns of a lake table as Arrow fields with Iceberg's ids.

    Args:
        columns: as the JSON of the table's metadata has them.

    Raises:
        NeedsSpark: a column has a type that is not written here, or a default in files that lack it.
    """
    if any(one.get("initial-default") is not None for one in columns):
        raise NeedsSpark("a column has a default in older files")
    return tuple(
        pa.field(
            str(one["name"]),
            _arrow_type(one["type"]),
            nullable=not one["required"],
            metadata={FIELD_ID: str(one["id"]).encode()},
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
    level = properties.get(LEVEL)
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


def named(fields: Sequence[pa.Field], names: Sequence[str]) -> tuple[pa.Field, ...]:
    """Return the fields of columns."""
    by_name = {field.name: field for field in fields}
    return tuple(by_name[name] for name in names)


def codec_of(properties: Mapping[str, str]) -> str:
    """Return the compression of new data files.

    Raises:
        NeedsSpark: the table wants something else of its files that is not written here.
    """
    codec = properties.get(CODEC, _DEFAULT_CODEC).lower()
    codec = {"uncompressed": "none"}.get(codec, codec)
    blooms = (text for name, text in properties.items() if name.startswith(_BLOOM_FILTERS))
    if codec not in ("zstd", "gzip", "snappy", "none") or any(text.lower() == "true" for text in blooms):
        raise NeedsSpark("the table asks for another compression or for Bloom filters")
    return codec


def positions_of(file: pa.NativeFile, key: Sequence[pa.Field], asked: AskedKeys) -> tuple[Rows, Rows]:
    """Return the positions of the rows that have one of the keys, ascending, and the number of the key of each.

    Args:
        file: a data file.
        key: the fields of the key's columns.
        asked: the keys.

    Raises:
        NeedsSpark: the file has other columns.
    """
    start, positions, numbers = 0, [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    for group in _FileColumns.of(file, key).groups():
        rows, of_keys = asked.find(KeyRows.of(group.columns, None))
        by = np.argsort(rows)
        positions.append(rows[by] + start)
        numbers.append(of_keys[by])
        start += group.num_rows
    return np.concatenate(positions), np.concatenate(numbers)


def joined_positions(file: pa.NativeFile, key: Sequence[pa.Field], keys: pa.Table) -> Rows:
    """Return the positions of :func:`positions_of`, found in another way: by a join.

    Args:
        file: a data file.
        key: the fields of the key's columns.
        keys: the keys, none twice.
    """
    names = [f"key {number}" for number in range(len(key))]
    rows = pa.concat_tables([one.rename_columns(names) for one in _FileColumns.of(file, key).groups()])
    rows = rows.append_column("position", pa.array(np.arange(rows.num_rows)))
    found = rows.join(keys.rename_columns(names), names, join_type="left semi", use_threads=False)
    positions: Rows = found.column("position").to_numpy()
    return positions


def rows_at(file: pa.NativeFile, fields: Sequence[pa.Field], positions: Rows) -> pa.Table:
    """Return columns of rows; one that was added after the file was written is null.

    Args:
        file: a data file.
        fields: of the columns.
        positions: of the rows, ascending.

    Raises:
        NeedsSpark: the file has other columns.
    """
    columns, start = _FileColumns.of(file, fields, may_lack=True), 0
    found = [pa.schema(fields).empty_table()]
    for number in range(columns.parquet.num_row_groups):
        stop = start + columns.parquet.metadata.row_group(number).num_rows
        first, end = positions.searchsorted([start, stop])
        if first < end:
            found.append(columns.group(number).take(pa.array(positions[first:end] - start)))
        start = stop
    return pa.concat_tables(found)


@dataclass(frozen=True, slots=True)
class _FileColumns:
    """Columns of a data file.

    Args:
        parquet: the file.
        fields: of the columns.
        numbers: of the columns in the file; None for one that it lacks.
    """

    parquet: pq.ParquetFile
    fields: tuple[pa.Field, ...]
    numbers: tuple[int | None, ...]

    @classmethod
    def of(cls, file: pa.NativeFile, fields: Sequence[pa.Field], *, may_lack: bool = False) -> _FileColumns:
        """Find columns by their ids.

        Raises:
            NeedsSpark: the file does not have them.
        """
        parquet = pq.ParquetFile(file)
        ids = {(one.metadata or {}).get(FIELD_ID): number for number, one in enumerate(parquet.schema_arrow)}
        numbers = [ids.get(one.metadata[FIELD_ID]) for one in fields]
        lacks = any(
            number is None and not (may_lack and one.nullable) for number, one in zip(numbers, fields, strict=True)
        )
        if lacks or parquet.metadata.num_columns != len(parquet.schema_arrow):
            raise NeedsSpark("a file of the lake table has other columns")
        return cls(parquet, tuple(fields), tuple(numbers))

    def groups(self) -> Iterator[pa.Table]:
        """Yield the columns, by row group."""
        yield from map(self.group, range(self.parquet.num_row_groups))

    def group(self, number: int) -> pa.Table:
        """Return the columns of a row group."""
        wanted = sorted(one for one in self.numbers if one is not None)
        read = self.parquet.reader.read_row_group(number, column_indices=wanted, use_threads=False)
        by_number = dict(zip(wanted, read.columns, strict=True))
        columns = [
            pa.nulls(read.num_rows, field.type) if one is None else by_number[one].cast(field.type)
            for one, field in zip(self.numbers, self.fields, strict=True)
        ]
        return pa.Table.from_arrays(columns, schema=pa.schema(self.fields))


def in_order(rows: pa.Table, by: Sequence[SortField]) -> pa.Table:
    """Return rows in an order, which has at least one field."""
    columns, keys = list[pa.ChunkedArray](), list[tuple[str, str]]()
    for one in by:
        column = rows.column(one.column)
        if column.null_count:  # whose place is another argument in each release of Arrow
            columns.append(pc.is_null(column))
            keys.append((str(len(keys)), "descending" if one.nulls_first else "ascending"))
        columns.append(column)
        keys.append((str(len(keys)), "descending" if one.descending else "ascending"))
    sorted_by = pa.Table.from_arrays(columns, [name for name, _ in keys])
    return rows.take(pc.sort_indices(sorted_by, sort_keys=keys))
