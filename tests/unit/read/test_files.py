"""Files that are damaged, missing, or not as Iceberg writes them."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.types import DateType, LongType, StringType

from cdc_lib.errors import StoreError
from cdc_lib.read.cache import Cache
from tests.harness.lake.hand_made_table import HandMadeTable


@pytest.fixture
def made(tmp_path):
    return HandMadeTable(tmp_path, {"id": LongType(), "t": StringType()}, ("id",))


ROWS = [{"id": key, "t": f"t{key}"} for key in range(20)]


def test_a_damaged_vector_is_an_error_and_hides_or_shows_nothing(made):
    path = made.add(ROWS, 5)
    made.delete({path: {3}}, vectors=True)
    assert made.reader().get(3) is None
    puffin = Path(made.vectors[path].path)
    whole = bytearray(puffin.read_bytes())
    whole[30] ^= 1
    puffin.write_bytes(whole)
    with pytest.raises(StoreError, match="damaged: the CRC32 of the deletion vector is wrong"):
        made.reader().get(3)
    puffin.unlink()
    with pytest.raises(StoreError, match="does not exist any more"):
        made.reader().get(3)


def test_a_damaged_data_file_is_an_error(made):
    path = Path(made.add(ROWS, 5))
    path.write_bytes(path.read_bytes()[:-3])
    with pytest.raises(StoreError, match="is damaged"):
        made.reader().get(3)


def test_a_file_without_field_ids_is_refused(made):
    """Its columns would be found by names, which may have been renamed."""
    path = made.add(ROWS, 5)
    pq.write_table(pa.Table.from_pylist(ROWS), path)
    with pytest.raises(StoreError, match="has no field ids"):
        made.reader().get(3)


def test_a_file_without_statistics_is_read(made):
    made.add(ROWS, 5, bounds="none")
    assert made.reader().get(19) == ROWS[19]
    assert made.reader().scan(18).read_all().to_pylist() == ROWS[18:]


def test_what_was_read_is_read_again_only_if_the_cache_had_no_room(made):
    """The files are removed: what a warm get needs of keys is in memory, and the files are still open."""
    path = made.add(ROWS, 5)
    warm, cold = made.reader(Cache()), made.reader(Cache(0))
    assert warm.get(3) == cold.get(3) == ROWS[3]
    Path(path).unlink()
    assert warm.get(3) == ROWS[3]
    with pytest.raises(StoreError, match="does not exist any more"):
        cold.get(3)


def test_dates_that_python_does_not_have_are_text(tmp_path):
    """MySQL has a year 0."""
    made = HandMadeTable(tmp_path, {"id": LongType(), "d": DateType()}, ("id",))
    path = made.add([{"id": 1, "d": None}], 1)
    stored = pq.read_table(path)
    days = pa.array([-719528], pa.int32()).cast(pa.date32())
    pq.write_table(stored.set_column(1, stored.schema.field(1), days), path)
    assert made.reader().get(1) == {"id": 1, "d": "0000-01-01"}
