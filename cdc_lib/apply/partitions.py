"""Which rows go into which partition of a lake table."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from pydantic import TypeAdapter
from pyiceberg.conversions import to_json
from pyiceberg.transforms import parse_transform
from pyiceberg.types import IcebergType

from cdc_lib.apply.rows import Numbers

_TYPE: TypeAdapter[Any] = TypeAdapter(IcebergType)


@dataclass(frozen=True, slots=True)
class _PartitionColumn:
    """A field of a partition spec, applied to rows.

    Args:
        id: Iceberg's.
        type: PyIceberg's type of the values.
        values: the different values.
        codes: number of each row's value.
    """

    id: int
    type: Any
    values: Sequence[Any]
    codes: Numbers

    @classmethod
    def of(cls, rows: pa.Table, column: Mapping[str, Any], field: Mapping[str, Any]) -> _PartitionColumn:
        kind, transform = _TYPE.validate_python(column["type"]), parse_transform(field["transform"])
        apply, numbers = transform.transform(kind), dict[Any, int]()
        encoded = _plain(rows.column(column["name"]).combine_chunks()).dictionary_encode(null_encoding="encode")
        codes = [numbers.setdefault(apply(value), len(numbers)) for value in encoded.dictionary.to_pylist()]
        by_row = np.array(codes, np.int64)[encoded.indices.to_numpy()]
        return cls(int(field["field-id"]), transform.result_type(kind), list(numbers), by_row)

    def value(self, row: int) -> Any:
        """Return the value of a row as Iceberg writes it in JSON; None for null."""
        value = self.values[self.codes[row]]
        return None if value is None else to_json(self.type, value)


def partitions_of(
    rows: pa.Table, columns: Sequence[Mapping[str, Any]], spec: Mapping[str, Any]
) -> Iterator[tuple[str, pa.Table]]:
    """Yield the partitions as Iceberg writes a struct in JSON, and the rows of each in their order.

    A table without partitions has one without a text.

    Args:
        rows: at least one.
        columns: of the lake table, as the JSON of its metadata has them.
        spec: the partition spec, likewise.

    Raises:
        ValueError: a value has no partition.
    """
    if not spec["fields"]:
        yield "", rows
        return
    by_id, codes = {one["id"]: one for one in columns}, np.zeros(rows.num_rows, np.int64)
    fields = [_PartitionColumn.of(rows, by_id[one["source-id"]], one) for one in spec["fields"]]
    for field in fields:
        _, codes = np.unique(codes * len(field.values) + field.codes, return_inverse=True)
    by = np.argsort(codes, kind="stable")
    starts = np.flatnonzero(np.diff(codes[by], prepend=-1))
    for start, stop in zip(starts, [*starts[1:], len(by)], strict=True):
        partition = json.dumps({str(field.id): field.value(by[start]) for field in fields})
        yield partition, rows.take(pa.array(by[start:stop]))


def _plain(column: pa.Array) -> pa.Array:
    """Return dates as days and times as microseconds, as Iceberg's transforms take them."""
    if pa.types.is_date32(column.type):
        return column.cast(pa.int32())
    return column.cast(pa.int64()) if pa.types.is_timestamp(column.type) else column
