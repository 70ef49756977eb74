"""Many keys are found in a row group as each alone is, whether its first column is in order or not."""

from __future__ import annotations

import random
from datetime import date, timedelta

import pyarrow as pa
import pytest

from cdc_lib.apply.key_rows import AskedKeys, KeyRows
from cdc_lib.read.columns import ReadColumn
from cdc_lib.read.keys import KeyColumns

DAY = date(1969, 12, 1)
FIRST = {
    "int": (pa.int32(), lambda n: n - 20),
    "bigint": (pa.int64(), lambda n: (n - 20) << 40),
    "date": (pa.date32(), lambda n: DAY + timedelta(days=n)),
    "text": (pa.string(), lambda n: f"{n:03}"),
}


@pytest.mark.parametrize("is_sorted", [True, False], ids=["in order", "in no order"])
@pytest.mark.parametrize("kind", FIRST)
def test_many_keys_are_found_as_each_alone(kind, is_sorted):
    """Keys below, within, between and above those of the row group, several rows of one key, nulls, and a row group without rows."""
    of, value = FIRST[kind]
    columns = KeyColumns((ReadColumn("a", 1, of), ReadColumn("b", 2, pa.string())), "shop.orders")
    chosen = random.Random(kind)
    for size in (0, 1, 40, 200):
        firsts = [value(chosen.randrange(10, 40)) for _ in range(size)]
        seconds = [chosen.choice(["x", "y", None]) for _ in range(size)]
        if is_sorted:
            firsts.sort()
        rows = KeyRows.of(
            [pa.chunked_array([firsts], of), pa.chunked_array([seconds], pa.string())],
            None,
        )
        for count in (1, 3, 80):
            given = {
                (chosen.choice([None, *map(value, range(50))]), chosen.choice(["x", "y", "z", None]))
                for _ in range(count)
            }
            keys = [columns.parse(one) for one in given]
            found, numbers = AskedKeys.of(keys).find(rows)
            expected = {(row, number) for number, key in enumerate(keys) for row in rows.with_key(key).tolist()}
            assert set(zip(found.tolist(), numbers.tolist(), strict=True)) == expected
            assert len(found) == len(expected)
