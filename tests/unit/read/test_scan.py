"""The order in which a scan reads row groups, and what it waits for."""

from __future__ import annotations

import pyarrow as pa
import pytest
from pyiceberg.types import IntegerType, LongType

from cdc_lib.errors import StoreError
from tests.harness.lake.hand_made_table import HandMadeTable


@pytest.fixture
def made(tmp_path):
    return HandMadeTable(tmp_path, {"id": LongType(), "v": IntegerType()}, ("id",))


def rows(*keys):
    return [{"id": key, "v": key} for key in keys]


def test_waiting_rows_come_when_the_last_file_has_none_in_the_range(made):
    """The bounds of a file may include the range, and those of its row groups not."""
    made.add(rows(10), 1, bounds="none")
    made.add(rows(0, 20), 1)
    assert made.reader().scan(5, 15).read_all().to_pylist() == rows(10)
    assert made.reader().scan(5, 15, reverse=True).read_all().to_pylist() == rows(10)


def test_only_the_row_groups_that_a_limit_needs_are_read(made, tmp_path):
    """The files of later keys are missing, and nobody notices."""
    made.add(rows(*range(100)), 10)
    later = made.add(rows(*range(100, 200)), 10)
    (tmp_path / later).unlink()
    assert made.reader().scan(limit=10).read_all().to_pylist() == rows(*range(10))
    with pytest.raises(StoreError, match=r"does not exist any more.*call refresh\(\)"):
        made.reader().scan(limit=101).read_all()


def test_a_scan_streams_batches_with_the_schema_of_its_columns(made):
    made.add(rows(*range(0, 100, 2)), 10)
    made.add(rows(*range(1, 100, 2)), 10)
    found = made.reader().scan(columns=["v"])
    assert isinstance(found, pa.RecordBatchReader)
    assert found.schema == pa.schema([("v", pa.int32())])
    batches = list(found)
    assert len(batches) > 5
    assert [value for batch in batches for value in batch.column(0).to_pylist()] == list(range(100))
    assert made.reader().scan(columns=[]).read_all().num_columns == 0


def test_a_table_without_files_has_no_rows(made):
    reader = made.reader()
    assert reader.scan().read_all().num_rows == 0
    assert reader.get(1) is None
    assert reader.multi_get([1, 2]).to_pylist() == [{"id": None, "v": None, "_found": False}] * 2
    assert reader.multi_get([]).num_rows == 0
