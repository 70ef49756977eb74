from __future__ import annotations

import pytest

from cdc_lib.config.modes import ModeRule
from cdc_lib.config.routes import RouteRule
from cdc_lib.errors import ConfigError, IncompatibleSchema, MergeError
from cdc_lib.lake.evolution import lake_columns
from cdc_lib.lake.modes import MODES, mode_change, mode_of, one_mode, refuse_change
from cdc_lib.lake.routing import lake_merges
from cdc_lib.merge.evolve_table import merge_mode
from cdc_lib.merge.load import load_batches
from cdc_lib.merge.plan import work_on
from cdc_lib.model.lake_table import MARKER_PROPERTY, MODE_COLUMNS, LakeTable, Marker
from cdc_lib.store.objects.local import LocalStore
from tests.harness.lake.batches import BIGINT, INT, BatchWriter, table
from tests.harness.lake.running import lake_config

IN_PLACE = {("mirror", "soft_delete"), ("soft_delete", "mirror")}


@pytest.mark.parametrize("old", MODES)
@pytest.mark.parametrize("new", MODES)
def test_every_mode_change_is_decided_and_impossible_ones_are_refused(old, new):
    """The error has a hint; the other changes are applied."""
    change = mode_change(old, new)
    assert change.description
    assert change.how == ("none" if old == new else "in_place" if (old, new) in IN_PLACE else "rebuild")
    if change.how == "rebuild":
        with pytest.raises(MergeError, match=f"has the mode {old}, and the source file says {new}") as caught:
            refuse_change(old, new, "shop.orders", "lake.shop.orders")
        assert "cdc snapshot" in caught.value.hint
    else:
        refuse_change(old, new, "shop.orders", "lake.shop.orders")


@pytest.mark.parametrize("mode", MODES)
def test_a_table_has_the_columns_of_its_mode_and_only_their_names_are_reserved(mode):
    """In a mirror, _valid_from is a column like others."""
    assert [c.name for c in lake_columns(table("shop.t", {"id": BIGINT}), mode)] == ["id", *MODE_COLUMNS[mode]]
    odd = table("shop.t", {"id": BIGINT, "_Valid_From": INT})
    if mode == "scd2":
        with pytest.raises(IncompatibleSchema):
            lake_columns(odd, mode)
    else:
        assert lake_columns(odd, mode)[1].name == "_Valid_From"


def test_a_table_without_a_key_is_always_in_append_mode():
    """No other mode can identify its rows."""
    assert {mode_of(table("shop.t", {"id": BIGINT}, ()), mode) for mode in (None, *MODES)} == {"append"}


def test_a_route_and_then_the_first_rule_set_the_mode_of_a_table(tmp_path):
    """So a table can be a mirror in one lake table and scd2 in another."""
    rules = (ModeRule(tables="shop.o*", mode="soft_delete"), ModeRule(tables="shop.*", mode="append"))
    routes = (
        RouteRule(tables="shop.orders", into="shop.orders"),
        RouteRule(tables="shop.orders", into="past.orders", mode="scd2"),
    )
    config = lake_config(tmp_path).model_copy(update={"modes": rules, "routes": routes})
    found = {str(lake.name): lake.mode for lake in lake_merges(config, ["shop.orders", "shop.users", "crm.users"])}
    assert found == {
        "lake.crm.users": "mirror", "lake.shop.orders": "soft_delete", "lake.past.orders": "scd2", "lake.shop.users": "append"
    }  # fmt: skip


def test_tables_that_share_a_lake_table_must_have_one_mode():
    """The error names both."""
    assert one_mode("lake.a", [("a.x", None), ("b.x", "mirror")]) == "mirror"
    with pytest.raises(ConfigError, match=r"a\.x mirror.*b\.x scd2"):
        one_mode("lake.a", [("b.x", "scd2"), ("a.x", None)])


def test_a_table_that_shares_a_lake_table_counts_also_when_it_has_no_rows_in_a_merge(tmp_path):
    """Otherwise the lake table would have the mode of the table that was merged last; a table of another source does not count."""
    config = lake_config(tmp_path).model_copy(
        update={
            "modes": (ModeRule(tables="shop.a", mode="soft_delete"),),
            "routes": (RouteRule(tables="shop.*", into="shop.all", keys=("table",)),),
        }
    )
    (lake,) = lake_merges(config, ["shop.a"])
    schema = table("shop.a", {"id": BIGINT})

    def state(*owners):
        carried = {f"{MARKER_PROPERTY}.{owner}": "" for owner in owners}
        return LakeTable((), ("_source_table", "id"), "mirror", Marker(), 1, 1, carried=carried)

    assert merge_mode(config, lake, state(), [[schema]]) == "soft_delete"
    assert merge_mode(config, lake, state("other/shop.b"), [[schema]]) == "soft_delete"
    with pytest.raises(ConfigError, match=r"shop\.a soft_delete, shop\.b mirror"):
        merge_mode(config, lake, state("shop/shop.b"), [[schema]])


@pytest.mark.parametrize("mode", ["soft_delete", "scd2"])
def test_in_modes_that_keep_rows_a_statement_is_one_more_change(mode, tmp_path):
    """Also a DROP, which leaves a mirror as it is."""
    writer = BatchWriter(LocalStore(tmp_path))
    kinds = [("truncate", "shop.t", 50), ("drop", "shop.t", 70), ("create", "shop.t", 80)]
    key = writer.window(4, 100, {}, statements=kinds)
    work = work_on("shop.t", mode, load_batches(writer.store, [key]), Marker(), writer.plan(100, key))
    assert [one.offset for one in work.resets] == [50, 70, 80]
    assert (work.reset_before, [piece.floor for piece in work.inputs]) == (None, [None])
