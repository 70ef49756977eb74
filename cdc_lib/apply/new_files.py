"""New data files of a lake table: rows in its order, by partition, as the bytes of Parquet files."""

from __future__ import annotations

import io
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import IO, Any

import pyarrow as pa
import pyarrow.compute as pc

from cdc_lib.apply.data_files import in_order, write_rows
from cdc_lib.apply.partitions import partitions_of
from cdc_lib.errors import MergeError
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
        return cls.read(location, io.BytesIO(data), partition)

    @classmethod
    def read(cls, location: str, file: IO[bytes], partition: str = "") -> NewFile:
        """Describe a file that is open."""
        size = file.seek(-_TAIL, io.SEEK_END) + _TAIL
        footer = int.from_bytes(file.read(4), "little")
        file.seek(-_TAIL - footer, io.SEEK_END)
        return cls(location, size, file.read(footer), partition)


@dataclass(frozen=True, slots=True)
class FileFormat:
    """How new data files of a table are written.

    Args:
        lake: the table as this project knows it.
        schema: of the table, as the JSON of its metadata has it.
        spec: its partition spec, likewise.
        sort_order: likewise.
        properties: of the table, as the session overrides them.
        name: of the table, for messages.
    """

    lake: LakeTable
    schema: Mapping[str, Any]
    spec: Mapping[str, Any]
    sort_order: Mapping[str, Any]
    properties: Mapping[str, str]
    name: str

    def refuse(self, rows: pa.Table) -> None:
        """Refuse rows that the table cannot hold, or that Iceberg would not find again by its layout.

        Raises:
            MergeError: there are some.
        """
        for column in (str(one["name"]) for one in self.schema["fields"] if one["required"]):
            if rows.column(column).null_count:
                raise MergeError(
                    f"column {column} of the lake table takes no null, and a row has no value of it",
                    hint=f"Another program made it so: ALTER TABLE … ALTER COLUMN `{column}` DROP NOT NULL in Spark, and merge again.",
                )
        for column, low in lowest_values(self.lake.layout, self.lake.columns).items():
            least = pc.min(rows.column(column)).as_py()
            if least is not None and least < Decimal(low):
                raise MergeError(
                    f"column {column}: {least} is smaller than {low}, the smallest value that its partition by truncate can hold",
                    hint="Take another transform under layouts in the source file, run cdc lake maintain (cdc lake drop if the table has no "
                    "rows yet), and merge again.",
                )

    def files(self, rows: pa.Table, fields: Sequence[pa.Field]) -> Iterator[tuple[str, bytes]]:
        """Yield the partitions of rows as JSON, and the bytes of each one's file.

        Args:
            rows: at least one.
            fields: of the files.
        """
        rows = rows.select([field.name for field in fields]).cast(pa.schema(fields))
        for partition, part in partitions_of(in_order(rows, self._order), self.schema["fields"], self.spec):
            data = io.BytesIO()
            self.write([part], data)
            yield partition, data.getvalue()

    def write(self, tables: Iterable[pa.Table], to: IO[bytes]) -> None:
        """Write rows in their order as a data file; they have the fields of the file, and are at least one."""
        write_rows(tables, to, json.dumps(self.schema), self.properties, self.name)

    @property
    def _order(self) -> Sequence[SortField]:
        """The order of rows in a file: Iceberg's own follows its columns, also those that another program renamed."""
        names = {one["id"]: str(one["name"]) for one in self.schema["fields"]}
        of_table = [
            SortField(names[one["source-id"]], one["direction"] == "desc", one["null-order"] == "nulls-first")
            for one in self.sort_order["fields"]
            if one["transform"] == "identity" and one["source-id"] in names
        ]
        return of_table or [SortField(name) for name in self.lake.primary_key or ORDER]
