"""Data files of a lake table: Parquet with Iceberg's field ids. Rows are found in them by their keys, and new ones are written."""

from __future__ import annotations

import inspect
import json
import logging
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import time
from functools import cache
from itertools import chain
from typing import IO, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from cdc_lib.apply.key_rows import AskedKeys, KeyRows, Rows, comparable
from cdc_lib.errors import MergeError
from cdc_lib.lake.arrow_types import arrow_of
from cdc_lib.model.layout import SortField

log = logging.getLogger(__name__)

FIELD_ID = b"PARQUET:field_id"
"""Name of the metadata of an Arrow field that has Iceberg's id."""

DEFAULT, NAMES = b"lakecdc:default", b"lakecdc:names"
"""Names of the metadata that have, as JSON, the value of a column in files that lack it, and its names in files without ids."""

_NANOSECONDS = {"timestamp_ns": pa.timestamp("ns"), "timestamptz_ns": pa.timestamp("ns", tz="UTC")}
"""Columns that no merge makes, by Iceberg's names of their types."""
CODEC, LEVEL = "write.parquet.compression-codec", "write.parquet.compression-level"
"""Properties of a table that say how new files are compressed."""
_DEFAULT_CODEC = "zstd"
_CODECS = {"uncompressed": "none", **{name: name for name in ("zstd", "gzip", "snappy", "lz4", "lz4_raw", "none")}}
"""What pyarrow calls them. It also writes Brotli, which Spark does not read."""
_GROUP_BYTES, _PAGE_ROWS = 128 << 20, 20_000
"""Iceberg's defaults."""
_BLOOM = "write.parquet.bloom-filter-"
"""Begins the names of properties that a column follows, and of ``max-bytes``."""
_BLOOM_BYTES, _BLOOM_ERRORS = "1048576", "0.01"
"""Iceberg's defaults."""
_WRITES_BLOOM_FILTERS = "bloom_filter_options" in inspect.signature(pq.ParquetWriter.__init__).parameters


class DamagedFile(Exception):
    """A file of the lake table is lost, or its bytes are not what they should be; the text says how."""


def lake_fields(columns: Sequence[Mapping[str, Any]], mapping: str | None = None) -> tuple[pa.Field, ...]:
    """Return the columns of a lake table as Arrow fields with Iceberg's ids.

    Args:
        columns: as the JSON of the table's metadata has them.
        mapping: the table's ``schema.name-mapping.default``, by which files that have no ids are read.

    Raises:
        MergeError: a column has a type that is not written here.
    """
    names = {one.get("field-id"): one["names"] for one in json.loads(mapping or "[]")}
    found = []
    for one in columns:
        field = _field(one["name"], one["type"], one["id"], required=one["required"])
        more = {DEFAULT: one.get("initial-default"), NAMES: names.get(one["id"])}
        more = {key: json.dumps(value) for key, value in more.items() if value is not None}
        found.append(field.with_metadata({**field.metadata, **more}))
    return tuple(found)


def _field(name: str, kind: Any, number: int, *, required: bool) -> pa.Field:
    metadata = {FIELD_ID: str(number).encode()}
    try:
        return pa.field(name, _arrow_type(kind), nullable=not required, metadata=metadata)
    except KeyError:
        raise MergeError(
            f"column {name} of the lake table has the type {kind}, which a merge does not write",
            hint="Another program added it. Drop the column, and merge again.",
        ) from None


def _arrow_type(kind: Any) -> pa.DataType:
    """Return the Arrow type of Iceberg's.

    Raises:
        KeyError: there is none.
    """
    if isinstance(kind, str):
        return _NANOSECONDS[kind] if kind in _NANOSECONDS else arrow_of(kind)
    if kind["type"] == "struct":
        return pa.struct(
            [_field(one["name"], one["type"], one["id"], required=one["required"]) for one in kind["fields"]]
        )

    def part(name: str) -> pa.Field:
        return _field(name, kind[name], kind[f"{name}-id"], required=kind.get(f"{name}-required", True))

    return pa.map_(part("key"), part("value")) if kind["type"] == "map" else pa.list_(part("element"))


def write_rows(
    tables: Iterable[pa.Table], to: IO[bytes], schema_json: str, properties: Mapping[str, str], table: str
) -> None:
    """Write rows as a data file, in row groups and pages as the table's properties say.

    Args:
        tables: the rows, with the fields of :func:`lake_fields`; at least one table.
        to: receives the file.
        schema_json: of the table, as Iceberg's metadata have it.
        properties: of the table.
        table: its name, for messages.
    """
    level, rest = properties.get(LEVEL), iter(tables)
    first = next(rest)
    group_bytes = int(properties.get("write.parquet.row-group-size-bytes", _GROUP_BYTES))
    with pq.ParquetWriter(
        to,
        first.schema.with_metadata({"iceberg.schema": schema_json}),
        # A page ends with the batch of rows after which it has this size.
        write_batch_size=int(properties.get("write.parquet.page-row-limit", _PAGE_ROWS)),
        data_page_size=1,
        compression=codec_of(properties),
        compression_level=int(level) if level else None,
        write_page_index=True,
        store_decimal_as_integer=True,
        store_schema=False,
        **_bloom_filters(first, properties, table),
    ) as writer:
        for rows in chain([first], rest):
            group = max(1, group_bytes * rows.num_rows // max(rows.nbytes, 1))
            writer.write_table(rows.replace_schema_metadata({"iceberg.schema": schema_json}), group)


def _bloom_filters(rows: pa.Table, properties: Mapping[str, str], table: str) -> dict[str, Any]:
    """Return the option of the columns that have Bloom filters: a filter that is not written costs time, and no rows."""
    enabled = f"{_BLOOM}enabled.column."
    wanted = [
        field.name
        for field in rows.schema
        if properties.get(enabled + field.name, "").lower() == "true"
        # Parquet has no filters of booleans, and a point in a name would be read as a path.
        and not (pa.types.is_boolean(field.type) or pa.types.is_nested(field.type) or "." in field.name)
    ]
    if not wanted:
        return {}
    if not _WRITES_BLOOM_FILTERS:
        _say_without_filters(table)
        return {}
    most, options = int(properties.get(f"{_BLOOM}max-bytes", _BLOOM_BYTES)), {}
    for name in wanted:
        errors = float(properties.get(f"{_BLOOM}fpp.column.{name}", _BLOOM_ERRORS))
        values = int(properties.get(f"{_BLOOM}ndv.column.{name}", rows.num_rows))
        # Of a split block filter, by the specification of Parquet.
        held = int(-most * math.log1p(-(errors ** (1 / 8))))
        options[name] = {"ndv": max(1, min(values, held)), "fpp": errors}
    return {"bloom_filter_options": options}


@cache
def _say_without_filters(table: str) -> None:
    log.warning(
        "%s: its files get no Bloom filters: the installed pyarrow %s does not write them", table, pa.__version__
    )


def named(fields: Sequence[pa.Field], names: Sequence[str]) -> tuple[pa.Field, ...]:
    """Return the fields of columns."""
    by_name = {field.name: field for field in fields}
    return tuple(by_name[name] for name in names)


def codec_of(properties: Mapping[str, str]) -> str:
    """Return the compression of new data files.

    Raises:
        MergeError: pyarrow does not write it, or Spark does not read it.
    """
    codec = properties.get(CODEC, _DEFAULT_CODEC).lower()
    if codec not in _CODECS:
        raise MergeError(
            f"the lake table asks for files with the compression {codec}",
            hint=f"Set {CODEC} to one of {', '.join(_CODECS)}, and merge again.",
        )
    return _CODECS[codec]


def positions_of(file: pa.NativeFile, key: Sequence[pa.Field], asked: AskedKeys) -> tuple[Rows, Rows]:
    """Return the positions of the rows that have one of the keys, ascending, and the number of the key of each.

    Args:
        file: a data file.
        key: the fields of the key's columns.
        asked: the keys.

    Raises:
        DamagedFile: the file is not what it should be.
    """
    start, positions, numbers = 0, [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    for group in _FileColumns.of(file, key, may_lack=True).groups():
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
    rows = columns_of(file, key, may_lack=True)
    rows = pa.table([*map(comparable, rows.columns), pa.array(np.arange(rows.num_rows))], [*names, "position"])
    keys = pa.table([*map(comparable, keys.columns)], names)
    found = rows.join(keys, names, join_type="left semi", use_threads=False)
    positions: Rows = found.column("position").to_numpy()
    return positions


def rows_at(file: pa.NativeFile, fields: Sequence[pa.Field], positions: Rows) -> pa.Table:
    """Return columns of rows; one that was added after the file was written is null, or has its default.

    Args:
        file: a data file.
        fields: of the columns.
        positions: of the rows, ascending.

    Raises:
        DamagedFile: the file is not what it should be.
    """
    found = (rows for rows, _ in groups_at(file, fields, positions))
    return pa.concat_tables([pa.schema(fields).empty_table(), *found])


def columns_of(file: pa.NativeFile, fields: Sequence[pa.Field], *, may_lack: bool = False) -> pa.Table:
    """Return columns of all rows of a file.

    Args:
        file: a data file, or one of deletes.
        fields: of the columns.
        may_lack: whether the file may have been written before they were added.

    Raises:
        DamagedFile: the file is not what it should be.
    """
    groups = _FileColumns.of(file, fields, may_lack=may_lack).groups()
    return pa.concat_tables([pa.schema(fields).empty_table(), *groups])


def groups_at(file: pa.NativeFile, fields: Sequence[pa.Field], positions: Rows) -> Iterator[tuple[pa.Table, Rows]]:
    """Yield the rows of :func:`rows_at` by row group, and their positions."""
    columns, start = _FileColumns.of(file, fields, may_lack=True), 0
    for number in range(columns.parquet.num_row_groups):
        stop = start + columns.parquet.metadata.row_group(number).num_rows
        first, end = positions.searchsorted([start, stop])
        if first < end:
            chosen = positions[first:end]
            yield columns.group(number).take(pa.array(chosen - start)), chosen
        start = stop


@contextmanager
def _reading() -> Iterator[None]:
    """Translate the errors of pyarrow about a file."""
    try:
        yield
    except (pa.ArrowException, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None:  # of the storage, not of the bytes
            raise
        raise DamagedFile(str(error)) from error


@dataclass(frozen=True, slots=True)
class _FileColumns:
    """Columns of a data file.

    Args:
        parquet: the file.
        fields: of the columns.
        numbers: of the columns in the file; None for one that it lacks.
        leaves: for each column of the file the numbers of its parts, as Parquet counts them.
    """

    parquet: pq.ParquetFile
    fields: tuple[pa.Field, ...]
    numbers: tuple[int | None, ...]
    leaves: tuple[range, ...]

    @classmethod
    def of(cls, file: pa.NativeFile, fields: Sequence[pa.Field], *, may_lack: bool = False) -> _FileColumns:
        """Find columns by their ids, or by their names in a file that has no ids.

        Raises:
            DamagedFile: the file does not have them.
        """
        with _reading():
            parquet = pq.ParquetFile(file)
            schema = parquet.schema_arrow
        ids = {(one.metadata or {}).get(FIELD_ID): number for number, one in enumerate(schema)}
        if ids.keys() <= {None}:
            by_name = {name: number for number, name in enumerate(schema.names)}
            known = {one.metadata[FIELD_ID]: json.loads(one.metadata.get(NAMES, "[]")) for one in fields}
            ids = {key: by_name[name] for key, names in known.items() for name in names if name in by_name}
        numbers = [ids.get(one.metadata[FIELD_ID]) for one in fields]
        for number, one in zip(numbers, fields, strict=True):
            if number is None and not (may_lack and (one.nullable or DEFAULT in one.metadata)):
                raise DamagedFile(f"it has no column {one.name}")
        counts = np.cumsum([0, *(_leaves(one.type) for one in schema)]).tolist()
        return cls(parquet, tuple(fields), tuple(numbers), tuple(map(range, counts, counts[1:])))

    def groups(self) -> Iterator[pa.Table]:
        """Yield the columns, by row group."""
        yield from map(self.group, range(self.parquet.num_row_groups))

    def group(self, number: int) -> pa.Table:
        """Return the columns of a row group.

        Raises:
            DamagedFile: they cannot be read, or have other types.
        """
        wanted = sorted(one for one in self.numbers if one is not None)
        leaves = [leaf for one in wanted for leaf in self.leaves[one]]
        with _reading():
            read = self.parquet.reader.read_row_group(number, column_indices=leaves, use_threads=False)
            columns = dict(zip(wanted, read.columns, strict=True))
            has = {
                field.name: columns[one].cast(field.type)
                for one, field in zip(self.numbers, self.fields, strict=True)
                if one is not None
            }
        arrays = [has[field.name] if field.name in has else _absent(field, read.num_rows) for field in self.fields]
        return pa.Table.from_arrays(arrays, schema=pa.schema(self.fields))


def _leaves(kind: pa.DataType) -> int:
    """Return how many columns of Parquet a type has."""
    if not pa.types.is_nested(kind):
        return 1
    return sum(_leaves(kind.field(number).type) for number in range(kind.num_fields))


def _absent(field: pa.Field, rows: int) -> pa.Array:
    """Return a column that a file lacks: its default, or nulls."""
    value, kind = json.loads(field.metadata.get(DEFAULT, "null")), field.type
    if value is None:
        return pa.nulls(rows, kind)
    if pa.types.is_binary(kind) or pa.types.is_fixed_size_binary(kind):
        value = bytes.fromhex(value.replace("-", ""))
    elif pa.types.is_time(kind):
        value = time.fromisoformat(value)
    return pa.repeat(pa.scalar(value).cast(kind), rows)


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
