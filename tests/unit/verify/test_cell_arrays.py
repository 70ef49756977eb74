"""Texts of lake values equal what the source's SQL gives; that they do with every type is held with real servers."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
import pytest

from cdc_lib.model.schema import Column, SourceType
from cdc_lib.model.value_policy import ValuePolicy
from cdc_lib.verify.canonical_text import cell_of
from cdc_lib.verify.cell_arrays import names_of, text_array

DOUBLE, FLOAT = SourceType("double"), SourceType("float")
PRICE = SourceType("decimal", precision=38, scale=30)
MOMENT = SourceType("timestamp", scale=3)
LATIN = SourceType("string", width=40, charset="latin1")
TEXT = SourceType("string", width=40, charset="utf8mb4")


def cell(source_type, name="x"):
    return cell_of(Column(name, source_type), source_type.lake_type, ValuePolicy())


@pytest.mark.parametrize(
    ("source_type", "values", "texts"),
    [
        (SourceType("int", width=8, unsigned=True), pa.array([Decimal(2**64 - 1)], pa.decimal128(20, 0)), [str(2**64 - 1)]),
        (SourceType("int", width=4), pa.array([5.0, 5.5]), ["5", "5.5"]),
        (FLOAT, pa.array([0.1, -0.0, 1e300]), ["3FB99999A0000000", "8000000000000000", "7E37E43C8800759C"]),
        (DOUBLE, pa.array([0.1]), ["3FB999999999999A"]),
        (PRICE, pa.array([Decimal("-1E-30"), Decimal(1)], pa.decimal128(38, 30)), ["-0." + "0" * 29 + "1", "1." + "0" * 30]),
        (SourceType("decimal", precision=5, scale=1), pa.array([Decimal("1.50"), Decimal("1.55")]), ["1.5", "1.55"]),
        (SourceType("date"), pa.array([date(1000, 1, 1)]), ["1000-01-01"]),
        (SourceType("date"), pa.array([-719528], pa.int32()).cast(pa.date32()), ["0000-01-01"]),
        (MOMENT, pa.array([datetime(2024, 3, 1, 2, 3, 4, 50_000, UTC)], pa.timestamp("us", "UTC")), ["2024-03-01 02:03:04.050"]),
        (MOMENT, pa.array([datetime(2024, 3, 1, 2, 3, 4, 50_001, UTC)], pa.timestamp("us", "UTC")), ["2024-03-01 02:03:04.050001"]),
        (SourceType("datetime"), pa.array([0], pa.timestamp("us")), ["1970-01-01 00:00:00"]),
        (SourceType("bytes", width=9), pa.array([b"\x00\xab"]), ["00AB"]),
        (SourceType("bytes"), pa.array([b""]), ["E3B0C44298FC1C149AFBF4C8996FB92427AE41E4649B934CA495991B7852B855"]),
        (TEXT, pa.array(["a#ü"]), ["a#ü"]),
    ],
)  # fmt: skip
def test_a_lake_value_has_the_text_of_the_sources_value(source_type, values, texts):
    """Digits that the source's column cannot have stay, so that such a value is not taken for equal."""
    assert text_array(cell(source_type), values).to_pylist() == texts
    assert text_array(cell(source_type), pa.nulls(2, values.type)).to_pylist() == [None, None]


def test_the_name_of_a_row_has_the_lengths_of_its_texts():
    """In bytes or characters, as the source's SQL says."""
    keys = (cell(TEXT, "a"), cell(SourceType("int", width=4), "b"), cell(LATIN, "c"))
    assert names_of(keys, [("ü#1", "2", "ü"), ("", "3", "a")]) == ["ü#1#2#ü#4#1", "#3#a#0#1"]
    assert "LENGTH(`a`)" in keys[0].source_length
    assert "CHAR_LENGTH(`c`)" in keys[2].source_length
