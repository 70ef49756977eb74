"""Texts and hashes of whole lake columns are those of their values, one by one."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from zlib import crc32

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from cdc_lib.model.schema import Column, SourceType
from cdc_lib.model.value_policy import ValuePolicy
from cdc_lib.verify.canonical_text import cell_of
from cdc_lib.verify.cell_arrays import day_text, row_hashes, text_array, text_of

MICROS = st.integers(-62_167_219_200_000_000, 253_402_300_799_999_999)
TEXTS = st.text(st.characters(codec="utf-8"), max_size=6)


def decimals(scale, digits=18):
    return st.integers(-(10**digits) + 1, 10**digits - 1).map(lambda number: Decimal(number).scaleb(-scale))


COLUMNS = [
    (SourceType("int", width=4), pa.int32(), st.integers(-(2**31), 2**31 - 1)),
    (SourceType("int", width=8, unsigned=True), pa.decimal128(20, 0), st.integers(0, 2**64 - 1).map(Decimal)),
    (SourceType("int", width=4), pa.float64(), st.sampled_from([5.0, 5.5, -0.0])),
    (SourceType("int", width=1, as_boolean="as_true"), pa.bool_(), st.booleans()),
    (SourceType("decimal", precision=18, scale=2), pa.decimal128(18, 2), decimals(2)),
    (SourceType("decimal", precision=18, scale=2), pa.decimal128(20, 4), decimals(4)),
    (SourceType("decimal", precision=18, scale=6), pa.decimal128(18, 6), decimals(6)),
    (SourceType("decimal", precision=18, scale=7), pa.decimal128(18, 7), decimals(7)),
    (SourceType("double"), pa.float64(), st.floats(allow_nan=False, allow_infinity=False)),
    (SourceType("float"), pa.float64(), st.floats(allow_nan=False, allow_infinity=False)),
    (SourceType("float"), pa.float32(), st.floats(width=32, allow_nan=False, allow_infinity=False)),
    (SourceType("datetime"), pa.timestamp("us"), MICROS | MICROS.map(lambda n: n // 10**6 * 10**6)),
    (SourceType("datetime", scale=3), pa.timestamp("us"), MICROS | MICROS.map(lambda n: n // 1000 * 1000)),
    (SourceType("timestamp", scale=6), pa.timestamp("us", "UTC"), MICROS),
    (SourceType("date"), pa.date32(), st.integers(-719_528, 2_932_896)),
    (SourceType("bytes", width=8), pa.binary(), st.binary(max_size=8)),
    (SourceType("bytes"), pa.binary(), st.binary(max_size=8)),
    (SourceType("string", width=40, charset="utf8mb4"), pa.string(), TEXTS),
    (SourceType("string", width=40, charset="latin1"), pa.string(), TEXTS),
    (SourceType("enum", members=("a", "b")), pa.string(), st.sampled_from(["a", "b"])),
    (SourceType("json"), pa.string(), TEXTS),
]  # fmt: skip


@st.composite
def tables(draw):
    """Columns of one length, as slices of longer arrays."""
    chosen = draw(st.lists(st.sampled_from(COLUMNS), min_size=1, max_size=6))
    rows, before = draw(st.integers(0, 5)), draw(st.integers(0, 2))
    columns = []
    for number, (source, held, values) in enumerate(chosen):
        cells = draw(st.lists(st.none() | values, min_size=rows + before, max_size=rows + before))
        if pa.types.is_temporal(held):
            stored = pa.array(cells, pa.int32() if held == pa.date32() else pa.int64()).cast(held)
        else:
            stored = pa.array(cells, held)
        cell = cell_of(Column(f"c{number}", source), source.lake_type, ValuePolicy())
        columns.append((cell, stored.slice(before)))
    return columns


def one_by_one(cell, array):
    """The text of each value. Python has no year 0, so times are texts before."""
    source = cell.column.type
    if not pa.types.is_temporal(array.type):
        return [None if value is None else text_of(source, value) for value in array.to_pylist()]
    if source.kind == "date":
        return [None if days is None else str(np.datetime64(days, "D")) for days in array.cast(pa.int32()).to_pylist()]
    micros = array.cast(pa.int64()).to_pylist()
    texts = [None if one is None else str(np.datetime64(one, "us")).replace("T", " ") for one in micros]
    return [None if text is None else day_text(source, text) for text in texts]


def length_of(cell, text):
    """The length of a text as the source's SQL has it."""
    return str(len(text) if cell.source_length.startswith("CHAR_LENGTH") else len(text.encode()))


@given(tables())
def test_a_column_has_the_texts_of_its_values_and_a_row_the_hash_of_its_texts(columns):
    """The hash is that of CONCAT_WS: a null is left out where its length is at the end."""
    cells = [cell for cell, _ in columns]
    texts = [text_array(cell, array) for cell, array in columns]
    expected = [one_by_one(cell, array) for cell, array in columns]
    assert [one.to_pylist() for one in texts] == expected
    hashes = []
    for row in zip(*expected, strict=True):
        parts = [
            text or "" if text is not None else "~"
            for cell, text in zip(cells, row, strict=True)
            if text is not None or not cell.source_length
        ]
        parts += [
            length_of(cell, text) if text is not None else "~"
            for cell, text in zip(cells, row, strict=True)
            if cell.source_length
        ]
        hashes.append(crc32(str(crc32("#".join(parts).encode())).encode()))
    assert row_hashes(cells, texts).tolist() == hashes


def test_a_time_of_a_zone_is_in_utc():
    """And no zone is in its text."""
    cell = cell_of(Column("x", SourceType("timestamp")), "timestamp", ValuePolicy())
    array = pa.array([datetime(2024, 3, 1, 2, 3, 4, tzinfo=UTC)], pa.timestamp("us", "UTC"))
    assert text_array(cell, array).to_pylist() == ["2024-03-01 02:03:04"]
