"""Which texts of added values a column of the lake holds that was there under the same name."""

from __future__ import annotations

import pytest

from cdc_lib.errors import IncompatibleSchema
from cdc_lib.lake.evolution import refuse_text
from cdc_lib.model.lake_table import LakeColumn


@pytest.mark.parametrize(
    ("kind", "text"),
    [("int", "-5"), ("int", "2147483647"), ("bigint", "9007199254740993"), ("int", "0"), ("bigint", "1234567890123"), ("decimal(5,2)", "-123.40"), ("decimal(5,2)", "1.5000"), ("float", "0.0"),
     ("double", "-7"), ("boolean", "1"), ("date", "2024-01-02"), ("timestamp", "2024-01-02 03:04:05"), ("timestamp_ntz", "2024-01-02 03:04:05"),
     ("string", "it's"), ("string", "")],
)  # fmt: skip
def test_a_value_of_the_columns_type_is_held(kind, text):
    refuse_text(LakeColumn("c", kind), text, "db.t")


@pytest.mark.parametrize(
    ("kind", "text"),
    [("int", "it's"), ("int", ""), ("int", "1.5"), ("int", "12345678901"), ("int", "3000000000"), ("bigint", "-9999999999999999999"), ("decimal(5,2)", "1234"), ("decimal(5,2)", "1.234"), ("double", "a"),
     ("boolean", "2"), ("date", "2024-01-02 03:04:05"), ("timestamp", "2024-01-02"), ("timestamp_ntz", "1"), ("binary", "0")],
)  # fmt: skip
def test_another_value_is_refused(kind, text):
    with pytest.raises(IncompatibleSchema, match=r"column c is .* in the lake and of another type"):
        refuse_text(LakeColumn("c", kind), text, "db.t")
