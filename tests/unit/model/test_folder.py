"""Names become folders by one function, and stay where they belong."""

from __future__ import annotations

import pytest

from cdc_lib.errors import ConfigError
from cdc_lib.lake.location import namespace_location, table_location
from cdc_lib.model.folder import LONGEST_FOLDER, below, folder_of, leads_up
from cdc_lib.model.lake_table import LakeName
from tests.harness.lake.locations import overlap


@pytest.mark.parametrize(
    ("names", "folder"),
    [
        (("shop", "orders"), "shop.orders"),
        (("shop",), "shop"),
        (("order_lines$x-1",), "order_lines$x-1"),
        (("a/b",), "a@002fb"),
        (("..",), "@002e@002e"),
        ((".",), "@002e"),
        (("",), "@"),
        (("w", "y.z"), "w.y@002ez"),
        (("w.y", "z"), "w@002ey.z"),
        (("_hidden",), "@005fhidden"),
        (("#",), "@0023"),
        (("%2e",), "@00252e"),
        (("a\\b\n",), "a@005cb@000a"),
        (("Orders",), "Orders@-1"),
        (("orDers",), "orDers@-4"),
        (("\U0001f600",), "@d83d@de00"),
        (("\ud800",), "@d800"),
    ],
)
def test_a_tuple_of_names_is_one_folder(names, folder):
    """Readable where it can be."""
    assert folder_of(*names) == folder


def test_long_names_end_in_a_hash():
    """Also where they differ at their ends alone, or in where one name ends and the next begins."""
    one, other = folder_of("注" * 63 + "文"), folder_of("注" * 64)
    assert one != other
    assert len(one) == len(other) == LONGEST_FOLDER
    assert folder_of("a" * 100, "b" * 100) != folder_of("a" * 100 + "." + "b" * 100)


@pytest.mark.parametrize("folder", ["..", ".", "", "a/b", "a\\b"])
def test_nothing_leads_out_of_a_base(folder):
    """Whoever forgets to escape a name hears of it."""
    with pytest.raises(ConfigError):
        below("s3://bucket/lake", folder)


@pytest.mark.parametrize("address", ["file:///a/../b", "..", "/a/%2E%2e/b", "s3://b/%2e./x", "a\\..\\b", "/a%2f..%2fb"])
def test_addresses_that_lead_up_are_known(address):
    """However it is written."""
    assert leads_up(address)
    assert not leads_up("file:///a/b..c/..d")


LAKE = "file:///lake"


@pytest.mark.parametrize(
    ("catalog", "warehouse", "namespace", "name", "location"),
    [
        ("jdbc", LAKE, ("shop",), "orders", "file:///lake/shop/orders"),
        ("jdbc", "/lake/", ("shop",), "..", "/lake/shop/@002e@002e"),
        ("glue", "s3://b", ("raw", "shop"), "a/t", "s3://b/raw.shop/a@002ft"),
        ("rest", "s3://b/x", ("shop",), "orders", "s3://b/x/shop/orders"),
        ("rest", "a_warehouse_of_the_server", ("shop",), "orders", None),
        ("hive", None, ("shop",), "Orders", None),
        ("hadoop", LAKE, ("shop",), "2.0", None),
    ],
)
def test_a_table_is_two_folders_below_the_warehouse(catalog, warehouse, namespace, name, location):
    """Or where a catalog puts it that takes no location."""
    lake = LakeName("lake", namespace, name)
    assert table_location(catalog, warehouse, lake) == location
    of_namespace = namespace_location(catalog, warehouse, lake)
    assert of_namespace == (None if location is None else location.rpartition("/")[0])


@pytest.mark.parametrize("catalog", ["hadoop", "rest", "hive"])
@pytest.mark.parametrize("name", ["..", "a/t", "#", "?", ".x", "a" * 200])
def test_a_catalog_that_makes_folders_of_names_gets_no_other_names(catalog, name):
    """The hint says the ways on."""
    with pytest.raises(ConfigError, match="not safe") as error:
        table_location(catalog, None if catalog != "hadoop" else LAKE, LakeName("lake", ("shop",), name))
    assert "jdbc" in error.value.hint


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ("file:/l/a", "file:///l/a/t", True),
        ("/l/a", "file:///L/A", True),
        ("file:/l/a", "file:/l/ab", False),
        ("s3://b/l/n/..", "s3a://b/l/x", True),
        ("s3://b/l/n/..", "s3a://b/l/n/../x", True),
        ("s3://b/l/n/..", "s3a://b/l/n", True),
        ("s3://b/a:b", "s3://b/a:c", False),
        ("s3://b/a", "file:/b/a", False),
    ],
)
def test_locations_that_overlap_are_known(one, other, expected):
    """From both sides."""
    assert overlap(one, other) is overlap(other, one) is expected
