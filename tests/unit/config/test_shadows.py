"""Tables of online schema change tools are recognized by their names."""

from __future__ import annotations

import pytest

from cdc_lib.config.shadows import bases, is_beside
from cdc_lib.config.tables import TablesConfig


@pytest.mark.parametrize(
    "name", ["_t_gho", "_t_ghc", "_t_del", "_t_20261121103000_del", "_t_new", "__t_new", "_t_old", "___t_old"]
)
def test_names_of_tools_are_left_out(name):
    """Whatever the patterns include; a name in full, or the setting, takes them in."""
    assert is_beside(name)
    assert not TablesConfig(include=("shop.*",)).captures("shop", name)
    assert TablesConfig(include=("shop.*",)).leaves_to_tools("shop", name)
    assert TablesConfig(include=("shop.*", f"shop.{name}")).captures("shop", name)
    assert TablesConfig(include=("shop.*",), online_schema_change=False).captures("shop", name)
    assert not TablesConfig(include=("other.*",)).leaves_to_tools("shop", name)


@pytest.mark.parametrize("name", ["t_new", "t_gho", "_new", "_t", "_t_newer", "new", "_t_NEW"])
def test_other_names_are_tables_like_others(name):
    """Tools put an underscore in front, and their ending last."""
    assert not is_beside(name)
    assert TablesConfig(include=("shop.*",)).captures("shop", name)


def test_a_shadow_table_has_the_names_that_it_may_replace():
    """Underscores in front may be the table's own."""
    assert bases("_t_gho") == ("t",)
    assert bases("__t_new") == ("t", "_t")
    assert bases("_t_del") == bases("t") == ()
    tables = TablesConfig(include=("shop.t",))
    assert tables.may_become_captured("shop", "_t_gho")
    assert not tables.may_become_captured("shop", "_other_gho")
    assert not TablesConfig(include=("shop.t",), online_schema_change=False).may_become_captured("shop", "_t_gho")
