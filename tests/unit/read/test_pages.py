"""Few rows are read from the pages that have them, and are those of the whole file."""

from __future__ import annotations

import random
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.types import (
    BinaryType,
    BooleanType,
    DecimalType,
    DoubleType,
    IntegerType,
    LongType,
    StringType,
    TimestamptzType,
)

from cdc_lib.errors import StoreError
from cdc_lib.read.cache import Cache, RecentlyUsed
from cdc_lib.read.pages.few import MOST_KEPT
from cdc_lib.read.pages.index import read_index
from tests.harness.lake.hand_made_table import HandMadeTable

COLUMNS = {
    "id": LongType(),
    "few": StringType(),  # a dictionary in all pages
    "many": StringType(),  # a dictionary in the first pages only
    "long": StringType(),  # more pages than other columns have
    "number": IntegerType(),
    "price": DecimalType(20, 2),
    "at": TimestamptzType(),
    "flag": BooleanType(),
    "weight": DoubleType(),
    "bytes": BinaryType(),
    "never": StringType(),
}
COUNT, GROUP, PAGE = 6_000, 2_000, 100


def rows():
    chosen = random.Random(7)

    def or_null(value):
        return None if chosen.random() < 0.2 else value

    return [
        {
            "id": 2 * i,
            "few": or_null(f"state {i % 3}"),
            "many": f"text {i if i % GROUP > 300 else i % 5}",
            "long": "x" * (i % 700),
            "number": or_null(i % 50),
            "price": or_null(Decimal(i).scaleb(-2)),
            "at": or_null(datetime.fromtimestamp(i, UTC)),
            "flag": or_null(i % 2 == 0),
            "weight": or_null(i / 7),
            "bytes": or_null(bytes([i % 256]) * (i % 5)),
            "never": None,
        }
        for i in range(COUNT)
    ]


def paged(folder, version="1.0", codec="zstd", dictionaries=True):
    """Write a file of small pages with dictionaries, of which some get too large."""
    made = HandMadeTable(folder, COLUMNS, ("id",))
    written = rows()
    path = made.add(written, GROUP)
    whole = pq.read_table(path)
    options = {
        "data_page_version": version,
        "compression": codec,
        "write_page_index": True,
        "write_batch_size": PAGE // 2,
        "use_dictionary": dictionaries,
    }
    pq.write_table(
        whole, path, row_group_size=GROUP, data_page_size=4_000, dictionary_pagesize_limit=2_000,
        max_rows_per_page=PAGE, **options,
    )  # fmt: skip
    return made, path, written


def index_of(path):
    with pa.OSFile(path) as file:
        return read_index(pq.read_metadata(path), file.read_at)


@pytest.mark.parametrize(("version", "codec"), [("1.0", "zstd"), ("2.0", "snappy"), ("1.0", "none")])
def test_rows_of_pages_are_those_of_the_file(tmp_path, version, codec):
    """All types with nulls, dictionaries that end within a column, and columns whose pages begin at different rows."""
    made, path, written = paged(tmp_path, version, codec)
    firsts = [chunk.firsts.tolist() for chunk in index_of(path).chunks[0]]
    assert len(firsts[0]) >= GROUP // PAGE
    assert firsts[list(COLUMNS).index("long")] != firsts[0]
    made.delete({path: {10, 11, 4_000}}, vectors=True)
    reader = made.reader()
    keys = [0, 20, 22, 24, 198, 200, 3_998, 4_000, 7_999, 8_000, 9_876, 2 * COUNT - 2, 20, 2 * COUNT]
    expected = [None if key in (20, 22, 8_000) or key % 2 or key >= 2 * COUNT else written[key // 2] for key in keys]
    assert [reader.get(key) for key in keys] == expected
    for columns in (None, ["weight", "id"], ["never"], ["many", "few"]):
        found = reader.multi_get(keys, columns).to_pylist()
        assert [row.pop("_found") for row in found] == [row is not None for row in expected]
        for row, one in zip(found, expected, strict=True):
            assert row == {name: None if one is None else one[name] for name in columns or COLUMNS}


def test_no_other_page_is_decoded(tmp_path):
    """All pages without the rows are overwritten; the pages of the keys are not."""
    made, path, written = paged(tmp_path)
    damaged, index, kept = bytearray(Path(path).read_bytes()), index_of(path), {3, 17}
    for group, chunks in enumerate(index.chunks):
        for chunk in chunks[1:]:
            for number, (offset, size) in enumerate(zip(chunk.offsets.tolist(), chunk.sizes.tolist(), strict=True)):
                last = np.append(chunk.firsts, GROUP)[number + 1] - 1
                if group or not any(chunk.firsts[number] <= row <= last for row in kept):
                    damaged[offset : offset + size] = b"\xff" * size
    Path(path).write_bytes(damaged)
    assert made.reader().multi_get([6, 34], ["id", *list(COLUMNS)[1:]]).to_pylist() == [
        written[3] | {"_found": True},
        written[17] | {"_found": True},
    ]
    with pytest.raises(StoreError, match=r"damaged|cannot be read"):
        made.reader().get(2 * 500)


def test_only_the_asked_value_is_decoded_and_stays_in_memory(tmp_path):
    """All that follows the asked value in its page is overwritten; then all of the page is."""
    made, path, written = paged(tmp_path, codec="none")
    damaged, chunk = bytearray(Path(path).read_bytes()), index_of(path).chunks[0][list(COLUMNS).index("long")]
    begin, end = int(chunk.offsets[2]), int(chunk.offsets[2] + chunk.sizes[2])
    row = int(chunk.firsts[2])
    value = damaged.index(written[row]["long"].encode(), begin)
    damaged[value + len(written[row]["long"]) : end] = b"\xff" * (end - value - len(written[row]["long"]))
    Path(path).write_bytes(damaged)
    table, without_memory = made.reader(), made.reader(Cache(0))
    assert table.get(2 * row) == written[row]
    damaged[begin:end] = b"\xff" * (end - begin)
    Path(path).write_bytes(damaged)
    assert table.get(2 * row) == written[row]
    with pytest.raises(StoreError, match="damaged"):
        without_memory.get(2 * row)


def test_pages_of_a_read_of_many_rows_take_no_room_from_those_of_gets(tmp_path):
    made, _, _ = paged(tmp_path)
    cache = Cache()
    table = made.reader(cache)
    table.multi_get([2 * 500 * number for number in range(12)])
    kept = cache.pages.bytes
    assert kept > 0
    # Six rows of each row group are few enough that single values are read, and 18 are too many to keep their pages.
    keys = [2 * (GROUP * group + 300 * number) + 2 for group in range(3) for number in range(6)]
    assert table.multi_get(keys).column("_found").to_pylist() == [True] * 18
    assert cache.pages.bytes == kept
    table.get(keys[1])
    assert cache.pages.bytes > kept


@pytest.mark.parametrize("dictionaries", [["few", "many"], ["many", "long"], False])
def test_many_keys_have_the_rows_of_the_file_where_texts_are_read_by_pages(tmp_path, dictionaries):
    """Texts and bytes without a dictionary are decoded by Arrow, the other columns value by value: in one result, in the order asked."""
    made, path, written = paged(tmp_path, dictionaries=dictionaries)
    made.delete({path: {301}}, vectors=True)
    keys = [2 * (GROUP * group + 300 * number) + 2 for group in (2, 0, 1) for number in range(6)]
    assert len(keys) > MOST_KEPT
    expected = [None if key == 2 * 301 else written[key // 2] for key in keys]
    for columns in (None, ["long"], ["bytes", "number", "id"], ["price", "many", "never", "long"]):
        found = made.reader().multi_get(keys, columns).to_pylist()
        assert [row.pop("_found") for row in found] == [row is not None for row in expected]
        for row, one in zip(found, expected, strict=True):
            assert row == {name: None if one is None else one[name] for name in columns or COLUMNS}


def test_the_oldest_pages_leave_the_memory():
    kept = RecentlyUsed(100)
    kept.keep([("a", 1, 40), ("b", 2, 40), ("too large", 3, 101)])
    assert kept.find(["a"]) == [1]
    kept.keep([("c", 4, 40)])
    assert kept.find(["a", "b", "c", "too large"]) == [1, None, 4, None]
    assert kept.bytes == 80


def test_a_damaged_offset_index_is_an_error(tmp_path):
    made, path, _ = paged(tmp_path)
    metadata, whole = pq.read_metadata(path), bytearray(Path(path).read_bytes())
    last = index_of(path).chunks[-1][-1]
    end_of_pages = int(last.offsets[-1] + last.sizes[-1])
    footer = len(whole) - 8 - metadata.serialized_size
    whole[end_of_pages:footer] = b"\xff" * (footer - end_of_pages)
    Path(path).write_bytes(whole)
    with pytest.raises(StoreError, match="damaged: offset index"):
        made.reader().get(0)


def test_a_file_without_offset_indexes_or_with_one_page_each_is_read(tmp_path):
    made = HandMadeTable(tmp_path, {"id": LongType(), "t": StringType()}, ("id",))
    written = [{"id": key, "t": f"t{key}"} for key in range(100)]
    path = made.add(written, 50)
    assert made.reader().get(77) == written[77]
    pq.write_table(pq.read_table(path), path, row_group_size=50, write_page_index=True)
    assert index_of(path).chunks == ((None, None), (None, None))
    assert made.reader().get(77) == written[77]
