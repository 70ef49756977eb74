"""New data files of a lake table: rows in its order, by partition, as the bytes of Parquet files."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from cdc_lib.apply.data_files import in_order, write_rows
from cdc_lib.apply.decide import NeedsSpark
from cdc_lib.apply.partitions import partitions_of
from cdc_lib.lake.layout import lowest_values
from cdc_lib.model.lake_table import ORDER, LakeTable
from cdc_lib.model.layout import SortField

_TAIL = 8
"""Bytes of a Parquet file after its footer: the footer's size, and a mark."""


@dataclass(frozen=True, slots=True)
class NewFile:
    """A data file whose bytes were written.

    Args:
        location: of the file.
        size: in bytes.
        footer: of the Parquet file.
        partition: its values as Iceberg writes a struct in JSON; empty without partitions.
    """

    location: str
    size: int
    footer: bytes
    partition: str

    @classmethod
    def of(cls, location: str, data: bytes, partition: str) -> NewFile:
        """Describe a file."""
        start = -_TAIL - int.from_bytes(data[-_TAIL:-4], "little")
        return cls(location, len(data), data[start:-_TAIL], partition)


@dataclass(frozen=True, slots=True)
class FileFormat:
    """How new data files of a table are written.

    Args:
        lake: the table as this project knows it.
        schema: of the table, as the JSON of its metadata has it.
        spec: its partition spec, likewise.
        properties: of the table, as the session overrides them.
    """

    lake: LakeTable
    schema: Mapping[str, Any]
    spec: Mapping[str, Any]
    properties: Mapping[str, str]

    def refuse(self, rows: pa.Table) -> None:
        """Refuse rows that the table's layout cannot hold.

        Raises:
            NeedsSpark: there are some.
        """
        for column, low in lowest_values(self.lake.layout, self.lake.columns).items():
            least = pc.min(rows.column(column)).as_py()
            if least is not None and least < Decimal(low):
                raise NeedsSpark("a partition cannot hold a value")
        if not {one.column for one in self.lake.layout.sort_by} <= {*rows.column_names}:
            raise NeedsSpark("a column of the sort order has another name")

    def files(self, rows: pa.Table, fields: Sequence[pa.Field]) -> Iterator[tuple[str, bytes]]:
        """Yield the partitions of rows as JSON, and the bytes of each one's file.

        Args:
            rows: at least one.
            fields: of the files.
        """
        order = self.lake.layout.sort_by or [SortField(name) for name in self.lake.primary_key or ORDER]
        names, schema = [field.name for field in fields], pa.schema(fields)
        for partition, part in partitions_of(in_order(rows, order), self.schema["fields"], self.spec):
            data = io.BytesIO()
            write_rows(part.select(names).cast(schema), data, json.dumps(self.schema), self.properties)
            yield partition, data.getvalue()
