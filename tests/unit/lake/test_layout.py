"""Which layout a lake table gets, whether its columns allow it, and how a table changes to another one."""

from __future__ import annotations

import pytest

from cdc_lib.errors import ConfigError, MergeError
from cdc_lib.lake.layout import change_of_layout, fitted, layout_of, lowest_values, refuse_dropped
from cdc_lib.lake.routing import lake_merges
from cdc_lib.model.lake_table import LakeColumn
from cdc_lib.model.layout import Layout, Partition, SortField, partition_of, sort_field_of
from tests.unit.config.test_shape import config

COLUMNS = [
    LakeColumn("Id", "bigint"),
    LakeColumn("created", "timestamp_ntz"),
    LakeColumn("day", "date"),
    LakeColumn("price", "decimal(9,2)"),
    LakeColumn("weight", "double"),
    LakeColumn("id_bucket", "int"),
]


def by(*transforms: str) -> Layout:
    return Layout(partition_by=tuple(map(partition_of, transforms)))


def test_the_first_rule_that_covers_a_table_wins():
    rules = [{"tables": "shop.orders", "format_version": 2}, {"tables": "shop.*", "write_mode": "copy_on_write"}]
    [orders, views] = lake_merges(config(layouts=rules), ["shop.orders", "shop.views"])
    assert layout_of(config(layouts=rules), orders) == Layout(format_version=2)
    assert layout_of(config(layouts=rules), views) == Layout(write_mode="copy_on_write")
    assert layout_of(config(), orders) == Layout()


def test_tables_that_share_a_lake_table_have_one_layout():
    routes = [{"tables": "shop_*.orders", "into": "all.orders", "keys": ["schema"]}]
    given = config(layouts=[{"tables": "shop_1.*", "format_version": 2}], routes=routes)
    [lake] = lake_merges(given, ["shop_1.orders", "shop_2.orders"])
    with pytest.raises(ConfigError, match=r"different layouts: shop_1\.orders, shop_2\.orders"):
        layout_of(given, lake)


def test_columns_get_the_names_of_the_lake():
    """They compare without case."""
    layout = Layout((partition_of("day(CREATED)"),), (sort_field_of("id DESC"),))
    assert fitted(layout, COLUMNS, "t") == Layout((Partition("day", "created"),), (SortField("Id", True, False),))


@pytest.mark.parametrize(
    "transform", ["hour(created)", "year(day)", "bucket(4, price)", "truncate(10, price)", "price", "truncate(5, id)"]
)
def test_a_transform_of_a_type_that_it_takes_is_accepted(transform):
    fitted(by(transform), COLUMNS, "t")


@pytest.mark.parametrize(
    ("transform", "why"),
    [
        ("day(id)", "partition_by has day of id, whose type is bigint"),
        ("hour(day)", "partition_by has hour of day, whose type is date"),
        ("bucket(4, weight)", "partition_by has bucket of weight, whose type is double"),
        ("weight", "partition_by has identity of weight, whose type is double"),
        ("truncate(4, created)", "partition_by has truncate of created, whose type is timestamp_ntz"),
        ("day(nowhere)", "partition_by has nowhere, and the table has no such column"),
        ("bucket(4, id)", "partition_by would name a field id_bucket, which is a column of the table"),
    ],
)
def test_a_transform_that_the_columns_do_not_allow_is_refused(transform, why):
    with pytest.raises(ConfigError, match=why):
        fitted(by(transform), COLUMNS, "t")


@pytest.mark.parametrize(
    ("lake_type", "width", "lowest"),
    [
        ("int", 10, "-2147483640"),
        ("int", 2**31 - 1, "-2147483647"),
        ("int", 1, "-2147483648"),
        ("bigint", 1000, "-9223372036854775000"),
        ("decimal(9,2)", 100, "-9999999.00"),
        ("decimal(5,2)", 7, "-999.95"),
        ("decimal(38,10)", 10, f"-{'9' * 28}.9999999990"),
    ],
)
def test_the_smallest_number_whose_partition_is_one_of_its_type(lake_type, width, lowest):
    """Its partition is itself; that of the next smaller one would be one width less."""
    found = lowest_values(by(f"truncate({width}, n)", "bucket(4, m)"), [LakeColumn("n", lake_type)])
    assert found == {"n": lowest}


def test_texts_have_no_smallest_value():
    assert lowest_values(by("truncate(4, s)"), [LakeColumn("s", "string")]) == {}


def test_a_sort_field_without_a_column_is_refused():
    with pytest.raises(ConfigError, match="sort_by has nowhere, and the table has no such column"):
        fitted(Layout(sort_by=(sort_field_of("nowhere"),)), COLUMNS, "t")


@pytest.mark.parametrize(
    ("old", "new", "rewrites"),
    [
        (Layout(), by("day(created)"), True),
        (by("day(created)"), Layout(), True),
        (Layout(), Layout(sort_by=(SortField("created"),)), True),
        (Layout(), Layout(write_mode="copy_on_write"), True),
        (Layout(write_mode="copy_on_write"), Layout(), False),
        (Layout(format_version=2), Layout(), False),
        (Layout(), Layout(properties=(("a", "b"),)), False),
    ],
)
def test_files_are_rewritten_only_if_what_they_hold_changes(old, new, rewrites):
    change = change_of_layout(old, new, "t")
    assert change is not None
    assert (change.to, change.rewrites) == (new, rewrites)


def test_the_same_layout_is_no_change():
    assert change_of_layout(by("day(created)"), by("day(created)"), "t") is None


def test_a_property_that_is_no_longer_set_is_removed():
    change = change_of_layout(Layout(properties=(("a", "1"), ("b", "2"))), Layout(properties=(("b", "3"),)), "t")
    assert change is not None
    assert change.removed == ("a",)


def test_a_lower_format_version_is_refused():
    with pytest.raises(MergeError, match="format version 3, and the source file says 2: Iceberg lowers no format"):
        change_of_layout(Layout(), Layout(format_version=2), "t")


def test_a_column_that_the_layout_needs_is_not_dropped():
    """Columns compare without case."""
    refuse_dropped(["created"], ["weight"], "shop.orders")
    with pytest.raises(MergeError, match="the source dropped created, and the layout of the lake table needs it, or"):
        refuse_dropped(["created"], ["Created"], "shop.orders")
