"""How columns of a batch are encoded."""

from __future__ import annotations

import io

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cdc_lib.store.encoding import choose

ROWS = 4096
RANDOM = np.random.default_rng(7)
NUMBERS = np.arange(ROWS, dtype=np.int64)
TEXTS = [f"note {number}" for number in RANDOM.integers(0, 1 << 40, ROWS)]
FULL = np.iinfo(np.int64)

STEPS = {
    "key": pa.array(NUMBERS + 4_000_000_000),
    "unsigned": pa.array(NUMBERS.astype(np.uint64) + np.uint64(1 << 63)),
    "small": pa.array(NUMBERS.astype(np.int32)),
    "down": pa.array(-NUMBERS),
    "time": pa.array(NUMBERS * 1_000_003 + RANDOM.integers(0, 5000, ROWS), pa.timestamp("us")),
    "day": pa.array(NUMBERS.astype(np.int32), pa.date32()),
    "clock": pa.array(NUMBERS * 17, pa.time64("us")),
    "gaps": pa.array([number if number % 3 else None for number in range(ROWS)], pa.int64()),
}
OTHERS = {
    "random": pa.array(RANDOM.integers(FULL.min, FULL.max, ROWS)),
    "extremes": pa.array(np.where(NUMBERS % 2 == 0, FULL.min, FULL.max) + NUMBERS % 1999),
    "text": pa.array(TEXTS),
    "double": pa.array(NUMBERS / 7),
    "narrow": pa.array((NUMBERS % 4096).astype(np.int16)),
    "nulls": pa.nulls(ROWS, pa.int64()),
}


@pytest.mark.parametrize("name", STEPS)
def test_numbers_that_grow_by_even_steps_are_kept_as_differences(name):
    """Generated keys, times and places in the binlog are such."""
    assert choose(pa.table({name: STEPS[name]}), 1).others == {name: "DELTA_BINARY_PACKED"}


@pytest.mark.parametrize("name", OTHERS)
def test_other_columns_are_not_kept_as_differences(name):
    """Differences of random numbers are no smaller than the numbers."""
    assert choose(pa.table({name: OTHERS[name]}), 1).others == {}


def test_a_few_rows_are_written_without_a_choice():
    """It would take longer than it saves."""
    assert choose(pa.table(STEPS).slice(0, 100), 1).others == {}


def test_what_the_choice_wrote_is_read_back(tmp_path):
    """Also where a later row group is not like the first: steps that jump over the whole range."""
    first = pa.table({**STEPS, **OTHERS})
    jumping = first.set_column(0, "key", OTHERS["random"]).set_column(3, "down", OTHERS["extremes"])
    chosen, file = choose(first, 1), io.BytesIO()
    with pq.ParquetWriter(
        file,
        first.schema,
        compression=chosen.compression,
        compression_level=chosen.levels,
        use_dictionary=chosen.dictionary,
        column_encoding=chosen.others,
    ) as writer:
        writer.write_table(first)
        writer.write_table(jumping)
    assert pq.read_table(file) == pa.concat_tables([first, jumping])


def test_a_file_of_a_few_small_rows_is_not_compressed():
    """Zstd makes it no smaller. A few long rows are compressed."""
    small = pa.table({"id": pa.array([1, 2]), "v": pa.array(["a", "b"])})
    assert choose(small, 1).compression == {"id": "none", "v": "none"}
    long = pa.table({"id": pa.array([1, 2]), "v": pa.array(["a" * 5000, "b"])})
    assert choose(long, 3).compression == {"id": "zstd", "v": "zstd"}
    assert choose(long, 3).levels == {"id": 3, "v": 3}


def test_what_is_not_compressed_is_read_back():
    """With the same choice for every column."""
    small = pa.table({"id": pa.array([1, 2]), "v": pa.array(["a", None])})
    encoding = choose(small, 1)
    file = io.BytesIO()
    pq.write_table(small, file, compression=encoding.compression, compression_level=encoding.levels)
    assert pq.read_table(io.BytesIO(file.getvalue())) == small
