"""Rows of lake tables by their keys, as of the snapshots of a cut: the lake's half of a look, without Spark."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import cast

import pyarrow as pa
from pyiceberg.catalog import Catalog
from pyiceberg.exceptions import NoSuchTableError
from pyiceberg.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IcebergType,
    IntegerType,
    LongType,
    StringType,
    TimestampType,
    TimestamptzType,
)

from cdc_lib.apply.key_rows import RowKey
from cdc_lib.errors import ConfigError, StoreError
from cdc_lib.lake.catalog import translate_errors
from cdc_lib.model.lake_table import COMPUTED_PROPERTY, LakeColumn, LakeName, LakeTable, computed_from
from cdc_lib.model.manifest import BINLOG, EPOCH, OFFSET
from cdc_lib.model.position import Point
from cdc_lib.model.table_mode import Mode
from cdc_lib.model.table_name import TableName
from cdc_lib.read.cache import Cache
from cdc_lib.read.fresh.markers import marker_of
from cdc_lib.read.keys import order_value
from cdc_lib.read.lookup import Many
from cdc_lib.read.pin import pin
from cdc_lib.read.snapshot import PinnedSnapshot
from cdc_lib.verify.canonical_text import settled
from cdc_lib.verify.changed.cell_arrays import text_array
from cdc_lib.verify.changed.cell_text import row_text
from cdc_lib.verify.classify import RowState
from cdc_lib.verify.comparability import Subject
from cdc_lib.verify.key_values import key_columns

CACHE_BYTES = 64 << 20
"""Memory for what is read of files."""

_TYPES: dict[type[IcebergType], str] = {
    BooleanType: "boolean",
    IntegerType: "int",
    LongType: "bigint",
    FloatType: "float",
    DoubleType: "double",
    StringType: "string",
    BinaryType: "binary",
    DateType: "date",
    TimestampType: "timestamp_ntz",
    TimestamptzType: "timestamp",
}
"""Names of types as :attr:`cdc_lib.model.schema.SourceType.lake_type` has them."""


@dataclass(frozen=True, slots=True)
class OpenedTable:
    """A lake table at one snapshot.

    Args:
        state: its columns, its key, and the marker of the source table, as of the snapshot.
        snapshot: reads it.
    """

    state: LakeTable
    snapshot: PinnedSnapshot


@dataclass(frozen=True, slots=True)
class LakeRows:
    """Reads the lake of a source.

    Args:
        catalog: an open catalog.
        source: name of the source.
    """

    catalog: Catalog
    source: str
    cache: Cache = field(default_factory=lambda: Cache(CACHE_BYTES))

    def open(self, lake: LakeName, table: TableName, snapshot_id: int | None, *, routed: bool) -> OpenedTable:
        """Open a lake table.

        Args:
            lake: its name.
            table: ``database.table`` at the source, whose marker is read.
            snapshot_id: the snapshot; None for the current one.
            routed: whether a route sends the table there.

        Raises:
            StoreError: it does not exist, the snapshot was expired, or it needs Spark.
            MergeError: the marker cannot be parsed.
        """
        found = self.find(lake, table, snapshot_id, routed=routed)
        if found is None:
            raise StoreError(f"the catalog has no table {lake}", hint="The next merge makes it.", table=table)
        return found

    def find(
        self, lake: LakeName, table: TableName, snapshot_id: int | None = None, *, routed: bool
    ) -> OpenedTable | None:
        """Open a lake table as :meth:`open` does; None if it does not exist."""
        try:
            with translate_errors(table):
                loaded = self.catalog.load_table((*lake.namespace, lake.name))
        except NoSuchTableError:
            return None
        snapshot = pin(loaded, table, self.cache, snapshot_id)
        marker = marker_of(loaded.metadata, self.source, table, routed=routed, snapshot_id=snapshot_id)
        columns = tuple(LakeColumn(name, lake_type_of(of)) for name, of in snapshot.columns.types.items())
        key = tuple(column.name for column in snapshot.key.columns) if snapshot.has_key else ()
        mode = cast("Mode", snapshot.mode)
        computed = computed_from(loaded.metadata.properties.get(COMPUTED_PROPERTY))
        state = LakeTable(columns, key, mode, marker, snapshot.id, None, {table: marker}, computed=computed)
        return OpenedTable(state, snapshot)


def lake_type_of(of: IcebergType) -> str:
    """Return the name of a column's type."""
    if isinstance(of, DecimalType):
        return f"decimal({of.precision},{of.scale})"
    return _TYPES.get(type(of), str(of))


def rows_of(opened: OpenedTable, subject: Subject, keys: Mapping[str, tuple[str, ...]]) -> dict[str, RowState]:
    """Return the rows that exist in the lake, by name.

    Args:
        opened: the lake table.
        subject: what is compared.
        keys: texts of each row's key, by its name.

    Raises:
        StoreError: a file cannot be read.
    """
    if not keys:
        return {}
    asked = _row_keys(opened.snapshot, subject, keys)
    names = {name.lower(): name for name in opened.snapshot.columns.names}
    wanted = [names[cell.column.name.lower()] for cell in subject.cells]
    with translate_errors(subject.schema.name):
        many = Many(opened.snapshot, asked, everything=False)
        rows, _ = many.read(opened.snapshot.columns.choose([*wanted, EPOCH, BINLOG, OFFSET]))
    texts = [text_array(cell, rows.column(name)).to_pylist() for cell, name in zip(subject.cells, wanted, strict=True)]
    written = [
        Point(*place) for place in zip(*(rows.column(n).to_pylist() for n in (EPOCH, BINLOG, OFFSET)), strict=True)
    ]
    parts = [next(i for i, cell in enumerate(subject.cells) if cell is key) for key in subject.keys]
    states: dict[str, RowState] = {}
    for number, at in enumerate(written):
        if subject.kept_before is not None and at < subject.kept_before:
            continue
        cells = [column[number] for column in texts]
        name = row_text(subject.keys, [cells[i] or "" for i in parts])
        shown = tuple(settled(cell, text, subject.values) for cell, text in zip(subject.cells, cells, strict=True))
        before = states.get(name)
        copies = 1 + (before.copies if before is not None else 0)
        states[name] = RowState(shown, copies, max(at, before.written) if before and before.written else at, shown)
    return states


def _row_keys(snapshot: PinnedSnapshot, subject: Subject, keys: Mapping[str, tuple[str, ...]]) -> list[RowKey]:
    """Return the keys of the lake table: the columns that a route adds come first."""
    added = [pa.repeat(value, len(keys)) for value in subject.constants.values()]
    try:
        own = key_columns(subject.keys, list(keys.values()))
        columns = zip([*added, *own.columns], snapshot.key.columns, strict=True)
        arrays = [array.cast(to.type) for array, to in columns]
    except (pa.ArrowInvalid, ValueError) as error:
        raise ConfigError(
            f"the key of a row has a value that the lake table cannot hold: {error}",
            hint="cdc verify compares the table as a whole.",
            table=subject.schema.name,
        ) from error
    rows = [tuple(array[number] for array in arrays) for number in range(len(keys))]
    return [RowKey(tuple(order_value(one.type, one.as_py()) for one in row), row) for row in rows]
