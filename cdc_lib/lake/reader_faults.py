"""What engines read wrongly from partitioned tables: a condition on the partition column leaves out rows. Pure.

Full reads are right. ``tests/integration/spark/test_partitions.py`` compares each transform of each lake type and expects exactly
these faults. The page ``docs/reference/readers.md`` is generated from them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from cdc_lib.model.lake_table import LakeColumn
from cdc_lib.model.lake_types import decimal_of
from cdc_lib.model.layout import Layout, Partition, TransformKind

DATE, TIMESTAMP, TIMESTAMP_NTZ = "date", "timestamp", "timestamp_ntz"
DECIMAL, LONG_DECIMAL = "decimal(1 to 18)", "decimal(19 to 38)"
_LONGEST = 18
"""Most digits of a decimal that engines keep in 64 bits."""


@dataclass(frozen=True, slots=True)
class ReaderFault:
    """A fault of one version of an engine.

    Args:
        reader: the engine and its version.
        transform: of the partition.
        types: lake types of its column, see :func:`kind_of`.
        what: which rows it does not return, or what it does in their place.
    """

    reader: str
    transform: TransformKind
    types: tuple[str, ...]
    what: str


_RANGES = "< and > leave out all rows"
_SOME = "conditions leave out rows"
_BEFORE_1970 = "=, >= and IN leave out rows before 1970"
READER_FAULTS = (
    ReaderFault("DuckDB 1.4.4", "identity", (DATE, TIMESTAMP, TIMESTAMP_NTZ, DECIMAL), _RANGES),
    ReaderFault("DuckDB 1.4.4", "identity", (LONG_DECIMAL,), _SOME),
    ReaderFault("DuckDB 1.4.4", "bucket", (LONG_DECIMAL,), _SOME),
    ReaderFault("DuckDB 1.4.4", "truncate", (LONG_DECIMAL,), _SOME),
    ReaderFault("DuckDB 1.4.4", "month", (DATE,), _SOME),
    ReaderFault("DuckDB 1.4.4", "month", (TIMESTAMP, TIMESTAMP_NTZ), _BEFORE_1970),
    ReaderFault("DuckDB 1.4.4", "day", (TIMESTAMP, TIMESTAMP_NTZ), _BEFORE_1970),
    ReaderFault("DuckDB 1.4.4", "hour", (TIMESTAMP, TIMESTAMP_NTZ), _BEFORE_1970),
    ReaderFault("DuckDB 1.5.5", "truncate", (DECIMAL,), "conditions with a negative value end in an internal error"),
    ReaderFault("DuckDB 1.5.5", "truncate", (LONG_DECIMAL,), _SOME),
    ReaderFault("DuckDB 1.5.5", "month", (TIMESTAMP, TIMESTAMP_NTZ), _BEFORE_1970),
    ReaderFault("DuckDB 1.5.5", "day", (TIMESTAMP, TIMESTAMP_NTZ), _BEFORE_1970),
    ReaderFault("PyIceberg 0.12.0", "year", (DATE,), "conditions with a date in the year 9999 end in an error"),
    ReaderFault("PyIceberg 0.12.0", "month", (DATE,), "conditions with a date in December 9999 end in an error"),
)
"""All known faults. Of a table without partitions there are none."""


def kind_of(lake_type: str) -> str:
    """Return a lake type as :data:`READER_FAULTS` names it: decimals by whether their digits fit into 64 bits."""
    digits = decimal_of(lake_type)
    return lake_type if digits is None else LONG_DECIMAL if digits[0] > _LONGEST else DECIMAL


def faults_of(partition: Partition, lake_type: str) -> list[ReaderFault]:
    """Return the faults that concern a partition whose column has this lake type."""
    kind = kind_of(lake_type)
    return [one for one in READER_FAULTS if one.transform == partition.kind and kind in one.types]


def reader_warnings(layout: Layout, columns: Sequence[LakeColumn]) -> Iterator[str]:
    """Yield, for each partition that a reader gets wrong, which readers do so and how.

    Args:
        layout: with the names of the columns; see :func:`cdc_lib.lake.layout.fitted`.
        columns: of the lake table.
    """
    types = {column.name: column.type for column in columns}
    for one in layout.partition_by:
        if faults := faults_of(one, types[one.column]):
            readers = "; ".join(f"in {fault.reader} {fault.what}" for fault in faults)
            yield f"partition_by {one}: where a query has a condition on {one.column}, {readers}"
