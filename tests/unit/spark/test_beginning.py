"""The definition of a lake table that begins again: decided with values."""

from __future__ import annotations

import pytest

from cdc_lib.errors import IncompatibleSchema
from cdc_lib.lake.evolution import lake_columns
from cdc_lib.model.lake_table import LakeColumn, LakeTable, Marker
from cdc_lib.model.layout import Layout
from spark_jobs.iceberg.beginning import begun_again
from tests.harness.lake.batches import BIGINT, INT, TEXT, table

BEFORE = table("shop.t", {"id": BIGINT, "c": INT})
STATE = LakeTable(lake_columns(BEFORE), ("id",), "mirror", Marker(), 7, 3, layout=Layout(format_version=3))


def test_a_column_of_a_former_partition_stays():
    """It is after the new columns, and the format version is not lowered."""
    new = table("shop.t", {"v": TEXT}, ("v",))
    to = begun_again(STATE, new, None, (), Layout(format_version=2), ["c"])
    assert to.table.columns == (*lake_columns(new), LakeColumn("c", "int"))
    assert (to.table.primary_key, to.table.snapshot_id, to.table.empty, to.identity) == (("v",), 7, True, ("v",))
    assert to.table.layout.format_version == 3


def test_a_former_partition_with_another_type_waits():
    with pytest.raises(IncompatibleSchema, match="partitioned by it, or was before"):
        begun_again(STATE, table("shop.t", {"id": BIGINT, "c": TEXT}), None, (), Layout(), ["c"])
