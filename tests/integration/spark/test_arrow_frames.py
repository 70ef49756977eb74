"""Rows in Arrow are the same rows in a frame of Spark and back, on each version of Spark."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
import pytest

from cdc_lib.errors import ConfigError
from cdc_lib.model.lake_table import LakeColumn
from cdc_lib.model.manifest import ABSENT, OP
from spark_jobs.changes.in_spark import filtered_here
from spark_jobs.runtime.arrow import frame_of, rows_of_frame

KINDS = {
    "boolean": (pa.bool_(), [True, False, None]),
    "int": (pa.int32(), [-(2**31), 2**31 - 1, None]),
    "bigint": (pa.int64(), [-(2**63), 2**63 - 1, None]),
    "float": (pa.float32(), [1.5, -0.0, None]),
    "double": (pa.float64(), [1e300, float("inf"), None]),
    "decimal(38, 10)": (pa.decimal128(38, 10), [Decimal("1234567890123456789012345678.0123456789"), Decimal(0), None]),
    "string": (pa.string(), ["", "\N{SNOWMAN} '`${x}\0", None]),
    "binary": (pa.binary(), [b"", bytes(range(256)), None]),
    "date": (pa.date32(), [date(1, 1, 1), date(1582, 10, 10), None]),
    "timestamp": (pa.timestamp("us", "UTC"), [datetime(1, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, 23, 59, 59, 999999, UTC), None]),
    "timestamp_ntz": (pa.timestamp("us"), [datetime(1582, 10, 10), datetime(2026, 3, 29, 2, 30, 0, 1), None]),  # noqa: DTZ001
}  # fmt: skip
ROWS = pa.table({f"a `{kind}`": pa.array(values, of_arrow) for kind, (of_arrow, values) in KINDS.items()})
COLUMNS = ", ".join(f"`a ``{kind}```  {kind}" for kind in KINDS)


@pytest.mark.parametrize("rows", [ROWS, ROWS.slice(0, 0), pa.concat_tables([ROWS] * 7000)], ids=len)
def test_rows_come_back_with_every_value_of_every_type_in_order(lake, rows):
    frame = frame_of(lake.spark, rows, COLUMNS)
    assert [kind for _, kind in frame.dtypes] == [kind.replace(", ", ",") for kind in KINDS]
    assert rows_of_frame(frame).cast(rows.schema).equals(rows)


def test_predicates_choose_among_rows_in_arrow_and_must_follow_from_the_row(lake):
    changes = pa.table({OP: ["c", "c", "d"], "id": [1, 2, 3], ABSENT: pa.nulls(3, pa.string())})
    columns = [LakeColumn("id", "bigint")]
    kept = filtered_here(lake.spark, changes, columns, ["id > 1"], "mirror", "shop.orders")
    assert kept.select([OP, "id"]).to_pylist() == [{OP: "d", "id": 1}, {OP: "c", "id": 2}, {OP: "d", "id": 3}]
    for predicate in ("id > rand()", "id = (SELECT 1)", "id > 1 AND EXISTS (SELECT 1)", "nothing = 1"):
        with pytest.raises(ConfigError, match="cannot be used"):
            filtered_here(lake.spark, changes, columns, [predicate], "mirror", "shop.orders")
