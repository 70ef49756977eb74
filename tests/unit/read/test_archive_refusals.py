"""For which tables archived versions are not read."""

from __future__ import annotations

import pytest

from cdc_lib.errors import ConfigError
from cdc_lib.lake.routing import RoutedTable
from cdc_lib.model.lake_table import Marker
from cdc_lib.model.position import Point
from cdc_lib.model.route import Target
from cdc_lib.read.archive.decide import refuse_table

ORDERS = RoutedTable("shop", "orders", Target("shop", "orders"))
MERGED = Marker(Point(1, 1, 50), source_uuid="life")


def test_versions_of_a_table_with_computed_columns_are_refused():
    """Batches do not have them: the versions would show null where the lake has a value."""
    refuse_table(ORDERS, "mirror", MERGED, "life")
    with pytest.raises(ConfigError, match="it has computed columns, which only Spark computes"):
        refuse_table(ORDERS, "mirror", MERGED, "life", computes=True)
