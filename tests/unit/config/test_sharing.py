"""Which tables may share their lake tables, by the routes of a source file."""

from __future__ import annotations

import pytest

from cdc_lib.config.sharing import shares_lake_table
from tests.harness.lake.running import lake_config

ORDERS = ("shop_1", "orders")


@pytest.mark.parametrize(
    ("routes", "shared"),
    [
        ([], False),
        ([("shop_1.orders", "lake.orders")], False),
        ([("shop_*.orders", "lake.orders")], True),
        ([("shop_*.orders", "lake.{database}_orders")], False),
        ([("shop_*.ord*", "{database}.orders")], True),
        (["/^shop_.*[.]orders$/", "{database}.{table}"], False),
        ([("shop_1.orders", "lake.orders"), ("shop_2.orders", "lake.orders")], True),
        ([("shop_2.orders", "shop_1.orders")], True),
        ([("shop_1.orders", "shop_2.orders")], True),
    ],
)
def test_a_route_is_read_on_the_safe_side(tmp_path, routes, shared):
    """A pattern of several tables, another route that may lead to the same place, or a captured table of its name."""
    pairs = [tuple(routes)] if routes and isinstance(routes[0], str) else routes
    plain = [{"tables": tables, "into": into} for tables, into in pairs]
    config = lake_config(tmp_path, routes=plain, tables={"include": ["shop_*.*"]})
    assert shares_lake_table(config, *ORDERS) is shared


def test_a_key_that_names_the_server_lets_other_sources_in(tmp_path):
    """They may write the same lake table."""
    routes = [{"tables": "shop_1.orders", "into": "lake.orders", "keys": ["server"]}]
    assert shares_lake_table(lake_config(tmp_path, routes=routes), *ORDERS)
