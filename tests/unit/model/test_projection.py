"""Which columns of a table are stored."""

from __future__ import annotations

import pytest

from cdc_lib.errors import ConfigError
from cdc_lib.model.manifest import CHANGE_COLUMNS
from cdc_lib.model.projection import project, whole, without_reserved
from tests.harness.batches import BIGINT, table


@pytest.mark.parametrize("name", [*CHANGE_COLUMNS, "_Op"])
def test_a_column_with_the_name_of_a_change_column_is_refused_unless_it_is_left_out(name):
    """A batch would have two columns of that name."""
    schema = table("shop.orders", {"id": BIGINT, name: BIGINT})
    with pytest.raises(ConfigError, match=f"column {name} has a name that is reserved in the lake"):
        project(schema, lambda _: True, lambda _: None)
    with pytest.raises(ConfigError, match="reserved in the lake"):
        without_reserved(whole(schema))
    projection = project(schema, lambda column: column != name, lambda _: None)
    assert [column.name for column in projection.schema.columns] == ["id"]
