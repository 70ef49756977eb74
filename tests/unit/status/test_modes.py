"""What the doctor says of modes, from the source file and the last cut alone."""

from __future__ import annotations

import pytest

from cdc_lib.config.modes import ModeRule
from cdc_lib.model.merge_plan import Cut, TableCut
from cdc_lib.status.mode_findings import mode_findings
from tests.harness.lake.batches import BIGINT, START_TIME, at, table
from tests.harness.lake.running import lake_config

TABLES = [("shop", "orders"), ("shop", "views")]


class Schemas:
    """The views have no key."""

    def schema(self, database, name):
        return table(f"{database}.{name}", {"id": BIGINT}, ("id",) if name == "orders" else ())


def said(folder, state, *rules):
    """Return level and text of what is found where the orders' lake table has a mode."""
    config = lake_config(folder).model_copy(update={"modes": tuple(ModeRule(tables=t, mode=m) for t, m in rules)})
    cuts = (TableCut("shop.orders", "lake.shop.orders", 1, 0, mode=state),) if state else ()
    cut = Cut("shop", "m", 1, at(4), None, START_TIME, cuts)
    return [(one.level, one.what) for one in mode_findings(config, Schemas(), TABLES, cut)]


@pytest.mark.parametrize(
    ("state", "wanted", "level", "words"),
    [
        (None, "scd2", "ok", "scd2"),
        ("scd2", "scd2", "ok", "scd2"),
        ("mirror", "soft_delete", "warning", "from now on stay"),
        ("mirror", "scd2", "error", "the versions of before are not in it"),
        ("scd2", "mirror", "error", "has the mode scd2, and the source file says mirror"),
    ],
)
def test_the_doctor_says_what_becomes_of_a_lake_table(tmp_path, state, wanted, level, words):
    """Before the next merge does it, or stops."""
    ((found, text),) = said(tmp_path, state, ("shop.orders", wanted))
    assert (found, words in text) == (level, True)


def test_a_mode_that_was_removed_from_the_source_file_is_reported_too(tmp_path):
    """What is not named is a mirror."""
    assert [level for level, _ in said(tmp_path, "scd2")] == ["error"]
    assert said(tmp_path, "mirror") == []


def test_a_table_without_a_key_and_a_rule_without_a_table_are_reported(tmp_path):
    """Neither stops anything."""
    found = said(tmp_path, None, ("shop.*", "scd2"), ("crm.*", "append"))
    assert [level for level, _ in found] == ["warning", "ok", "warning"]
    assert "crm.*" in found[0][1]
    assert "shop.views: without a primary key" in found[2][1]
