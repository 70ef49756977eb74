"""Single values of pages equal those that Arrow reads, over random columns, encodings and sizes of pages."""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import given
from hypothesis import strategies as st

from cdc_lib.read.cache import RecentlyUsed
from cdc_lib.read.pages.few import FewRows, FewRowsReader
from cdc_lib.read.pages.index import read_index
from cdc_lib.read.pages.page import Kind
from cdc_lib.read.stored_values import conversion

NUMBERS = st.integers(-(2**31), 2**31 - 1)
VALUES = {
    pa.int32(): NUMBERS,
    pa.int64(): st.integers(-(2**63), 2**63 - 1),
    pa.float32(): st.floats(width=32, allow_nan=False),
    pa.float64(): st.floats(allow_nan=False),
    pa.bool_(): st.booleans(),
    pa.string(): st.text(st.characters(codec="utf-8"), max_size=300),
    pa.binary(): st.binary(max_size=9),
    pa.binary(16): st.binary(min_size=16, max_size=16),
    pa.decimal128(9, 2): st.integers(-(10**9) + 1, 10**9 - 1).map(lambda n: Decimal(f"{n}E-2")),
    pa.decimal128(38, 10): st.integers(-(10**38) + 1, 10**38 - 1).map(lambda n: Decimal(f"{n}E-10")),
    pa.date32(): st.dates(date(1, 1, 1)),
    pa.timestamp("us"): st.datetimes(datetime(1, 1, 1)),  # noqa: DTZ001
    pa.timestamp("us", tz="UTC"): st.datetimes(datetime(1, 1, 1), timezones=st.just(UTC)),  # noqa: DTZ001
}
WIDER = {
    pa.int32(): pa.int64(),
    pa.float32(): pa.float64(),
    pa.decimal128(9, 2): pa.decimal128(18, 2),
}


@st.composite
def columns(draw):
    """Runs of equal values and of different ones, with nulls or without."""
    of = draw(st.sampled_from(list(VALUES)))
    one = st.none() | VALUES[of] if draw(st.booleans()) else VALUES[of]
    runs = draw(st.lists(st.tuples(one, st.integers(1, 30)), min_size=1, max_size=40))
    return pa.array([value for value, count in runs for _ in range(count)], of)


def written(array, options, page):
    """Write a column with small pages; return the file's bytes."""
    sink = pa.BufferOutputStream()
    pq.write_table(
        pa.table([array], schema=pa.schema([options.pop("field")])), sink, row_group_size=400, write_page_index=True,
        data_page_size=500, dictionary_pagesize_limit=300, write_batch_size=page, max_rows_per_page=page, **options,
    )  # fmt: skip
    return sink.getvalue()


def opened(data, index):
    element = index.elements[0]
    kind = Kind(element.physical, element.length, element.repetition == 1)
    return FewRowsReader("file", index, pa.BufferReader(data).read_at, 100, RecentlyUsed(10**7)), kind


def index_of(data):
    file = pa.BufferReader(data)
    return read_index(pq.read_metadata(file), file.read_at)


CODECS = st.sampled_from(["zstd", "snappy", "none"])


@given(columns(), st.data(), CODECS, st.booleans(), st.integers(1, 40), st.booleans())
def test_single_values_equal_those_of_arrow(array, data, codec, dictionaries, page, may_be_null):
    """All types with dictionaries and without, and a dictionary that ends within a column; also from memory."""
    field = pa.field("v", array.type, may_be_null or array.null_count > 0)
    integers = data.draw(st.booleans())
    options = {"compression": codec, "use_dictionary": dictionaries, "store_decimal_as_integer": integers}
    file = written(array, {"field": field, **options}, page)
    index = index_of(file)
    reader, kind = opened(file, index)
    of = data.draw(st.sampled_from([array.type, WIDER.get(array.type, array.type)]))
    converted = conversion(kind.physical, array.type, of)
    for _ in range(3):
        asked = sorted(data.draw(st.sets(st.integers(0, len(array) - 1), min_size=1, max_size=25)))
        groups = sorted({row // 400 for row in asked})
        wanted = [FewRows(group, [row % 400 for row in asked if row // 400 == group]) for group in groups]
        found = reader.read([(0, kind)], wanted)
        if any(index.chunks[group][0] is None for group in groups):
            assert found is None
            continue
        expected = array.take(pa.array(asked)).cast(of)
        assert converted.array(found[0]).equals(expected)
        assert [None if one is None else converted.value(one) for one in found[0]] == expected.to_pylist()


@given(columns(), st.data(), CODECS, st.booleans())
def test_damaged_pages_are_a_value_error_or_values(array, data, codec, dictionaries):
    """Whatever bytes are changed: no other error, and no endless reading."""
    options = {"field": pa.field("v", array.type), "compression": codec, "use_dictionary": dictionaries}
    file = bytearray(written(array, options, 20))
    index = index_of(bytes(file))
    end = max((int(one[0].offsets[-1] + one[0].sizes[-1]) for one in index.chunks if one[0] is not None), default=5)
    for at, byte in data.draw(st.lists(st.tuples(st.integers(4, end - 1), st.integers(0, 255)), min_size=1)):
        file[at] = byte
    reader, kind = opened(bytes(file), index)
    row = data.draw(st.integers(0, min(400, len(array)) - 1))
    with suppress(ValueError):
        found = reader.read([(0, kind)], [FewRows(0, [row])])
        assert found is None or len(found[0]) == 1
