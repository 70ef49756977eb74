"""Which columns of a table are stored."""

from __future__ import annotations

import pytest

from cdc_lib.errors import ConfigError
from cdc_lib.model.manifest import ABSENT, CHANGE_COLUMNS
from cdc_lib.model.projection import project, whole, with_distinct_names
from tests.harness.lake.batches import BIGINT, table


@pytest.mark.parametrize("name", [*CHANGE_COLUMNS, ABSENT, "_Op", "_t\u017f"])
def test_a_column_with_the_name_of_a_change_column_is_refused_unless_it_is_left_out(name):
    """A batch would have two columns of that name."""
    schema = table("shop.orders", {"id": BIGINT, name: BIGINT})
    with pytest.raises(ConfigError, match=f"column {name} has a name that is reserved in the lake"):
        project(schema, lambda _: True, lambda _: None)
    with pytest.raises(ConfigError, match="reserved in the lake"):
        with_distinct_names(whole(schema))
    projection = project(schema, lambda column: column != name, lambda _: None)
    assert [column.name for column in projection.schema.columns] == ["id"]


@pytest.mark.parametrize(
    "pair", [("\u03c3", "\u03c2"), ("\u0130", "i"), ("I", "\u0131"), ("\u0130", "i\u0307"), ("a\u017f", "As")]
)
def test_columns_that_spark_takes_for_one_are_refused_unless_one_is_left_out(pair):
    """The lake cannot have both."""
    schema = table("shop.orders", {"id": BIGINT, **dict.fromkeys(pair, BIGINT)})
    with pytest.raises(ConfigError, match=f"columns {pair[0]} and {pair[1]} have names that Spark takes for one"):
        with_distinct_names(whole(schema))
    projection = project(schema, lambda column: column != pair[1], lambda _: None)
    assert [column.name for column in projection.schema.columns] == ["id", pair[0]]


@pytest.mark.parametrize("pair", [("\u00df", "ss"), ("\ufb00", "ff"), ("\u00e9", "e"), ("a", "b")])
def test_columns_that_spark_holds_apart_are_stored(pair):
    """A name is not taken for one that a full case folding makes equal."""
    projection = whole(table("shop.orders", {"id": BIGINT, **dict.fromkeys(pair, BIGINT)}))
    assert with_distinct_names(projection) is projection
