"""Lake tables whose files are written here, file by file, so that a reader can be tested over any layout without Spark."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.conversions import to_bytes
from pyiceberg.io.pyarrow import PyArrowFileIO
from pyiceberg.schema import Schema
from pyiceberg.types import BooleanType, IcebergType, NestedField, StringType
from pyroaring import BitMap64

from cdc_lib.model.table_mode import IS_DELETED
from cdc_lib.read.cache import Cache
from cdc_lib.read.columns import Columns
from cdc_lib.read.manifests import Files, LiveFile, PositionFile, VectorFile
from cdc_lib.read.snapshot import PinnedSnapshot, SnapshotParts
from cdc_lib.read.table import TableReader

_PATH_ID, _POSITION_ID = 2147483546, 2147483545


def with_id(name: str, of: pa.DataType, field_id: int) -> pa.Field:
    """Return an Arrow field with Iceberg's field id."""
    return pa.field(name, of, metadata={"PARQUET:field_id": str(field_id)})


def vector_blob(positions: Iterable[int]) -> bytes:
    """Return a deletion vector as Iceberg stores it."""
    body = bytes.fromhex("d1d33964") + BitMap64(positions).serialize()
    return len(body).to_bytes(4, "big") + body + zlib.crc32(body).to_bytes(4, "big")


@dataclass
class HandMadeTable:
    """A table; each call writes files as a commit does.

    Args:
        folder: where its files are written.
        columns: Iceberg types by name; their field ids count from 1.
        key: names of the key's columns.
        mode: how it keeps rows.
    """

    folder: Path
    columns: Mapping[str, IcebergType]
    key: Sequence[str]
    mode: str = "mirror"
    data: list[LiveFile] = field(default_factory=list)
    positions: list[PositionFile] = field(default_factory=list)
    vectors: dict[str, VectorFile] = field(default_factory=dict)
    rows: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    """Rows of each data file, also deleted ones."""
    numbers: Iterable[int] = field(default_factory=lambda: count(1))

    @property
    def schema(self) -> Schema:
        """Its columns."""
        marks = {IS_DELETED: BooleanType()} if self.mode == "soft_delete" else {}
        types = {**self.columns, **marks}
        return Schema(*(NestedField(i, name, of, required=False) for i, (name, of) in enumerate(types.items(), 1)))

    def path(self, ending: str) -> str:
        """Return the path of a new file."""
        return str(self.folder / f"{next(self.numbers):05}.{ending}")  # type: ignore[call-overload]

    def add(self, rows: Sequence[dict[str, Any]], row_group: int, *, bounds: str = "full") -> str:
        """Write a data file.

        Args:
            rows: in the order of the file.
            row_group: rows of a row group.
            bounds: of the manifest: ``full``, ``truncated`` (text, to one character) or ``none``.
        """
        path = self.path("parquet")
        columns = Columns(self.schema, "made")
        fields = [with_id(one.name, one.type, one.field_id) for one in columns.choose(None)]
        table = pa.Table.from_pylist(list(rows), pa.schema(fields))
        pq.write_table(table, path, row_group_size=row_group, write_statistics=bounds != "none")
        lower, upper, nulls = {}, {}, {}
        for one in self.schema.fields if bounds != "none" else ():
            values = [row.get(one.name) for row in rows]
            nulls[one.field_id] = values.count(None)
            known = [value for value in values if value is not None]
            if known:
                least, greatest = min(known), max(known)
                if bounds == "truncated" and isinstance(one.field_type, StringType):
                    least, greatest = least[:1], chr(0x10FFFF)
                lower[one.field_id] = to_bytes(one.field_type, least)
                upper[one.field_id] = to_bytes(one.field_type, greatest)
        self.data.append(LiveFile(path, len(rows), len(self.data), lower, upper, nulls))
        self.rows[path] = list(rows)
        return path

    def delete(self, positions: Mapping[str, set[int]], *, vectors: bool) -> None:
        """Delete rows, by vectors or by one file of positions; a vector also has the file's earlier deletes."""
        if vectors:
            for path, numbers in positions.items():
                puffin, blob = self.path("puffin"), vector_blob(numbers)
                Path(puffin).write_bytes(b"PFA1" + blob + b"more")
                self.vectors[path] = VectorFile(puffin, path, 4, len(blob), len(numbers))
            return
        rows = sorted((path, number) for path, numbers in positions.items() for number in numbers)
        fields = [with_id("file_path", pa.string(), _PATH_ID), with_id("pos", pa.int64(), _POSITION_ID)]
        path = self.path("parquet")
        arrays = [pa.array([one[0] for one in rows], pa.string()), pa.array([one[1] for one in rows], pa.int64())]
        pq.write_table(pa.Table.from_arrays(arrays, schema=pa.schema(fields)), path, row_group_size=3)
        of_file = rows[0][0] if len(positions) == 1 else None
        least, greatest = (rows[0][0], rows[-1][0]) if rows else (None, None)
        self.positions.append(PositionFile(path, len(self.data), of_file, least, greatest, len(rows)))

    def reader(self, cache: Cache | None = None) -> TableReader:
        """Return a reader of the files as they are now."""
        files = Files(tuple(self.data), dict(self.vectors), tuple(self.positions))
        cache = cache or Cache()

        def pin() -> PinnedSnapshot:
            columns = Columns(self.schema, "made")
            return PinnedSnapshot(SnapshotParts("made", 1, self.mode, columns, self.key, files, PyArrowFileIO(), cache))

        return TableReader(pin)
