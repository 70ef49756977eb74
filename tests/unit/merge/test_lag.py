"""Which tables are re-selected completely."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from cdc_lib.config.reselect import ReselectConfig
from cdc_lib.merge.plan import StoredBatch
from cdc_lib.model.binlog_checkpoint import SeenEnd
from cdc_lib.model.manifest import Manifest
from cdc_lib.model.merge_plan import MergePlan
from cdc_lib.model.position import Point
from cdc_lib.model.window import Window
from cdc_lib.reselect.policy import lag_of, reads_all
from tests.harness.lake.batches import IDENTITY, at

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)


def batch(seconds, *, window=True):
    last = None if seconds is None else NOW - timedelta(seconds=seconds)
    bounds = Window("shop", 1, at(4), at(100)) if window else None
    return StoredBatch("k", Manifest("shop", 1, IDENTITY, bounds, None, "", "", None, last, 0, 0, (), {}))


def plan(stop, seen=200, epoch=1):
    end = None if seen is None else SeenEnd(Point.at(1, at(seen)), NOW)
    return MergePlan("shop", epoch, "m", at(4), at(stop), (), seen=end)


def test_lag_is_from_the_newest_transaction_to_the_look_at_a_binlog_that_went_on():
    """Windows without a transaction, and snapshots, are ignored."""
    batches = [batch(500), batch(90), batch(None), batch(1, window=False)]
    assert lag_of(plan(199), batches) == timedelta(seconds=90)
    assert lag_of(plan(199), [batch(None)]) is None


@pytest.mark.parametrize("plan", [plan(200), plan(300), plan(4, epoch=2), plan(199, seen=None)])
def test_a_merge_of_all_that_its_run_saw_has_no_lag(plan):
    """However old its changes are; so does one that was planned before the end was noted."""
    assert lag_of(plan, [batch(10**6)]) == timedelta()
    assert lag_of(plan, [batch(None)]) is None


@pytest.mark.parametrize(
    ("mode", "limit", "lag", "all_of_them"),
    [
        ("auto", "60s", 61, True),
        ("auto", "60s", 60, False),
        ("auto", None, 10**6, False),
        ("auto", "60s", None, False),
        ("always", "60s", 0, True),
        ("always", None, None, False),
        ("never", "60s", 10**6, False),
    ],
)
def test_all_changed_rows_are_reselected_when_windows_lag(mode, limit, lag, all_of_them):
    """Only beyond the limit; a merge of snapshots alone has nothing to re-select."""
    rule = ReselectConfig(mode=mode, when_lag_exceeds=limit).rule("db", "t")
    assert reads_all(rule, None if lag is None else timedelta(seconds=lag)) is all_of_them


def test_a_table_may_have_its_own_rule():
    """Missing settings are those of all tables; the first rule that names the table applies."""
    config = ReselectConfig(
        max_keys=5,
        tables=[
            {"tables": "db.log", "mode": "never"},
            {"tables": "db.*", "when_lag_exceeds": None, "max_keys": 9},
            {"tables": "db.log", "mode": "always"},
        ],
    )
    assert config.rule("db", "log") == replace(config.rule("x", "y"), mode="never")
    assert (config.rule("db", "t").when_lag_exceeds, config.rule("db", "t").max_keys) == (None, 9)
    assert config.rule("x", "y").when_lag_exceeds == timedelta(seconds=60)
    assert config.is_on
    assert not ReselectConfig(mode="never").is_on
    assert ReselectConfig(mode="never", tables=[{"tables": "db.t", "mode": "auto"}]).is_on
