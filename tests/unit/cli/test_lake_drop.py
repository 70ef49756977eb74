"""``cdc lake drop``: the table leaves the catalog after confirmation, also if its files are lost."""

from __future__ import annotations

from cdc_lib.cli.lake.drop import lost_with
from cdc_lib.model.merge_plan import TableCut
from cdc_lib.model.table_name import TableName


def cut(table, mode):
    return TableCut(TableName.parse(table), "lake.shop.orders", 1, 0, mode=mode)


def test_what_is_lost_depends_on_the_mode():
    assert "a new snapshot reads again" in lost_with([cut("shop.orders", "mirror")], "shop.orders")
    assert "those that the source deleted" in lost_with([cut("shop.orders", "soft_delete")], "shop.orders")
    assert "all earlier ones" in lost_with([cut("shop.orders", "scd2")], "shop.orders")
    assert "list of changes, for ever" in lost_with([cut("shop.orders", "append")], "shop.orders")
    assert lost_with([], "shop.orders").startswith("its rows;")


def test_tables_that_share_it_are_named():
    shared = [cut("one.orders", "mirror"), cut("two.orders", "mirror")]
    assert "the rows of two.orders too" in lost_with(shared, "one.orders")
