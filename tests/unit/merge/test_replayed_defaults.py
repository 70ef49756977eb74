"""To which rows the default of an added column goes when a later epoch replays its statement."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from cdc_lib.merge.plan import TableWork
from cdc_lib.merge.replayed_defaults import limit_replays
from cdc_lib.model.binlog_checkpoint import BinlogCheckpoint
from cdc_lib.model.cursor import EpochChange
from cdc_lib.model.ddl_effect import AddedDefault
from cdc_lib.model.lake_table import Marker, PlacedDefault
from cdc_lib.model.position import Point
from tests.harness.lake.batches import IDENTITY, at

UUID = "00000000-0000-0000-0000-00000000000a"
RUN_AT = datetime(2026, 1, 1, tzinfo=UTC)


def added(epoch, number=5):
    return PlacedDefault(Point(epoch, 1, 100), AddedDefault("n", "7"), f"{UUID}:{number}", RUN_AT)


def began(epoch, gtid_set, seconds=0):
    end = BinlogCheckpoint(IDENTITY, at(500), RUN_AT + timedelta(seconds=seconds), gtid_set, bool(gtid_set), None)
    return EpochChange(epoch, "failover", RUN_AT, "test", "test", end, end)


def since(default, changes, mode="scd2"):
    work = TableWork("db.t", mode, (), Marker(), added_defaults=(default,))
    return limit_replays(work, changes).added_defaults[0].since


@pytest.mark.parametrize(
    ("number", "epoch", "expected"),
    [
        pytest.param(5, 1, None, id="where it was run"),
        pytest.param(5, 2, Point(2, 0, 0), id="read again in the next epoch"),
        pytest.param(5, 4, Point(2, 0, 0), id="read again after an epoch that ended before it"),
        pytest.param(9, 4, None, id="run in a later epoch"),
        pytest.param(2, 4, Point(4, 0, 0), id="read again in every epoch"),
    ],
)
def test_a_gtid_shows_which_epochs_have_the_column(number, epoch, expected):
    changes = [began(2, f"{UUID}:1-6"), began(3, f"{UUID}:1-3"), began(4, f"{UUID}:1-3")]
    assert since(added(epoch, number), changes) == expected


def test_without_gtids_the_commit_time_shows_it():
    default = replace(added(2), gtid="")
    assert since(default, [began(2, "", seconds=1)]) == Point(2, 0, 0)
    assert since(default, [began(2, "", seconds=-1)]) is None
    assert since(replace(default, time=None), [began(2, "", seconds=1)]) is None


@pytest.mark.parametrize("mode", ["mirror", "soft_delete"])
def test_where_replayed_changes_restore_the_rows_the_default_goes_to_all(mode):
    assert since(added(2), [began(2, f"{UUID}:1-6")], mode) is None
