from __future__ import annotations

import pytest

from cdc_lib.errors import IncompatibleSchema
from cdc_lib.lake.evolution import AddColumn, WidenColumn, changes_for, lake_columns
from cdc_lib.lake.modes import mode_of
from cdc_lib.model.lake_table import LakeColumn, LakeTable, Marker
from cdc_lib.model.lake_types import holds, widens
from cdc_lib.model.schema import SourceType
from tests.harness.lake.batches import BIGINT, INT, TEXT, table

MONEY = SourceType("decimal", precision=10, scale=2)


def lake(columns, key=("id",)):
    listed = tuple(LakeColumn(name, kind) for name, kind in columns.items())
    return LakeTable(listed, key, "mirror" if key else "append", Marker(), 1, records=1)


def test_a_new_table_has_the_source_columns_first_then_the_order_key():
    """Readers of whole rows find the columns in the source's order."""
    names = [column.name for column in lake_columns(table("shop.t", {"id": BIGINT, "name": TEXT}))]
    assert names == ["id", "name", "_epoch", "_binlog", "_offset", "_row", "_ts"]


def test_a_table_without_a_key_keeps_every_change():
    """Its lake table has the operation and the GTID of each."""
    schema = table("shop.t", {"id": BIGINT}, key=())
    assert mode_of(schema) == "append"
    assert [c.name for c in lake_columns(schema)] == [
        "id",
        "_op",
        "_epoch",
        "_binlog",
        "_offset",
        "_row",
        "_ts",
        "_gtid",
    ]


def test_a_new_column_comes_after_its_neighbour_at_the_source():
    """ADD COLUMN ... FIRST and ... AFTER are followed."""
    schema = table("shop.t", {"first": INT, "id": BIGINT, "b": INT, "c": TEXT})
    added = changes_for(lake({"id": "bigint", "c": "string", "_epoch": "int"}), schema)
    assert added == (AddColumn("first", "int", None), AddColumn("b", "int", "id"))


def test_a_dropped_column_stays_in_the_lake():
    """No change is needed: new rows have null there."""
    assert changes_for(lake({"id": "bigint", "gone": "string"}), table("shop.t", {"id": BIGINT})) == ()


def test_column_names_ignore_case():
    """As in MySQL and Spark."""
    assert changes_for(lake({"Id": "bigint"}, key=("Id",)), table("shop.t", {"ID": BIGINT}, key=("ID",))) == ()


@pytest.mark.parametrize(
    ("old", "new"),
    [("int", "bigint"), ("float", "double"), ("decimal(10,2)", "decimal(12,2)")],
)
def test_a_column_is_widened_if_iceberg_can(old, new):
    """Each widening keeps every value."""
    assert widens(old, new)
    assert not widens(new, old)
    assert holds(new, old)


@pytest.mark.parametrize(
    ("lake_type", "rows"),
    [
        ("decimal(20,0)", "bigint"),
        ("decimal(10,2)", "decimal(8,2)"),
        ("decimal(12,4)", "decimal(8,2)"),
        ("double", "int"),
    ],
)
def test_a_narrower_type_at_the_source_needs_no_change(lake_type, rows):
    """Rows from before and after the change fit."""
    assert holds(lake_type, rows)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("bigint", "decimal(20,0)"),
        ("decimal(10,2)", "decimal(12,4)"),
        ("decimal(10,2)", "decimal(9,3)"),
        ("string", "int"),
        ("int", "string"),
        ("timestamp", "timestamp_ntz"),
        ("double", "bigint"),
        ("float", "int"),
        ("binary", "string"),
    ],
)
def test_a_type_that_would_lose_values_is_refused(old, new):
    """Such a change stops the table."""
    assert not holds(old, new)
    assert not widens(old, new)


def test_a_widened_column_keeps_the_lakes_spelling():
    """ALTER TABLE names the column as in the lake."""
    schema = table("shop.t", {"id": BIGINT, "Price": SourceType("decimal", precision=12, scale=2)})
    assert changes_for(lake({"id": "bigint", "price": "decimal(10,2)"}), schema) == (
        WidenColumn("price", "decimal(12,2)"),
    )


def test_a_change_that_loses_values_names_table_column_and_both_types():
    """The message is enough to correct it."""
    with pytest.raises(IncompatibleSchema) as caught:
        changes_for(lake({"id": "bigint", "price": "string"}), table("shop.t", {"id": BIGINT, "price": MONEY}))
    assert caught.value.context == {
        "table": "shop.t",
        "column": "price",
        "lake_type": "string",
        "source_type": "decimal(10,2)",
    }
    assert "cdc snapshot SOURCE shop.t" in caught.value.hint


@pytest.mark.parametrize("key", [("other",), (), ("id", "other")])
def test_another_primary_key_stops_the_table(key):
    """Rows with the old key would not be found."""
    with pytest.raises(IncompatibleSchema, match="primary key"):
        changes_for(
            lake({"id": "bigint", "other": "bigint"}), table("shop.t", {"id": BIGINT, "other": BIGINT}, key=key)
        )


@pytest.mark.parametrize("name", ["_op", "_TS", "_file", "_pos", "_binlog"])
def test_a_column_with_a_reserved_name_is_refused(name):
    """It would hide the order key, or Iceberg's own columns."""
    with pytest.raises(IncompatibleSchema, match="is reserved in the lake"):
        lake_columns(table("shop.t", {"id": BIGINT, name: INT}))
