"""Whether rows of an altered table can still be re-selected."""

from __future__ import annotations

import pytest

from cdc_lib.model.schema import SourceType, TableSchema
from cdc_lib.reselect.rows import is_compatible
from tests.harness.lake.batches import INT, TEXT, table

TYPES = {"int": INT, "string": TEXT, "double": SourceType("double")}
KNOWN = ("id int", "v string", "w int")


def schema(*columns: str, key: tuple[str, ...] = ("id",)) -> TableSchema:
    return table("shop.r", {name: TYPES[kind] for name, kind in map(str.split, columns)}, key)


@pytest.mark.parametrize(
    "now",
    [
        KNOWN,
        ("ID int", "V string", "w int"),
        (*KNOWN, "z int"),
        (*KNOWN, "z int", "y string"),
        ("id int", "v string", "z double", "w int"),
        ("z double", *KNOWN),
        ("id int", "v string", "z double", "w int", "y int"),
    ],
)
def test_a_table_with_more_columns_is_compatible(now: tuple[str, ...]):
    """At the end, or between columns of other types."""
    assert is_compatible(schema(*KNOWN), schema(*now))


@pytest.mark.parametrize(
    "now",
    [
        ("id int", "v string"),
        ("id int", "v string", "x int"),
        ("id int", "w int", "v string"),
        ("id int", "v double", "w int"),
        ("id int", "v string", "x string", "w int"),
        ("id int", "x string", "v string", "w int"),
        ("id int", "v string", "z double", "x int", "w int"),
    ],
)
def test_a_table_with_possibly_renamed_columns_is_incompatible(now: tuple[str, ...]):
    """A dropped, moved or changed column, and an added one that may be a renamed neighbour."""
    assert not is_compatible(schema(*KNOWN), schema(*now))


def test_a_table_with_another_key_is_incompatible():
    """Rows are looked up by it."""
    assert not is_compatible(schema(*KNOWN), schema(*KNOWN, key=("id", "v")))
