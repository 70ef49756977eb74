"""Which epochs ended before an earlier one, from the epoch changes of a drain cursor."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from cdc_lib.merge.scd2.epochs import unfinished_epochs
from cdc_lib.model.binlog_checkpoint import BinlogCheckpoint
from cdc_lib.model.commit import Commit
from cdc_lib.model.cursor import EpochChange
from cdc_lib.model.position import Position
from cdc_lib.model.server_identity import ServerIdentity

START_TIME = datetime(2026, 1, 1, tzinfo=UTC)
ONE, OTHER = (ServerIdentity("mysql", server_uuid, 7) for server_uuid in ("a" * 8, "b" * 8))
SOURCE_SET = "3e11fa47-71ca-11e1-9e33-c80aa9429562"


def end(offset, server=ONE, *, gtids=0, hours=None, committer=7):
    last = None if hours is None else Commit(committer, START_TIME + timedelta(hours=hours))
    gtid_set = f"{SOURCE_SET}:1-{gtids}" if gtids else ""
    return BinlogCheckpoint(server, Position("binlog.000001", offset), None, gtid_set, bool(gtids), None, last)


def unfinished(*ends):
    changes = [
        EpochChange(epoch, "rewind", START_TIME, "test", "", previous_end=one, new_start=one)
        for epoch, one in enumerate(ends, 2)
    ]
    return unfinished_epochs(changes)


@pytest.mark.parametrize(
    ("ends", "expected"),
    [
        pytest.param([], (), id="one epoch"),
        pytest.param([end(900)], (), id="the first has none before it"),
        pytest.param([end(900), end(900), end(1200)], (), id="each read as far"),
        pytest.param([end(900), end(500), end(900)], (2,), id="one ended before"),
        pytest.param([end(900), end(500), end(700), end(950)], (2, 3), id="further than the last, not than the first"),
        pytest.param([end(900, gtids=9), end(100, OTHER, gtids=9)], (), id="another server, the same GTIDs"),
        pytest.param([end(900, gtids=9), end(1900, OTHER, gtids=8)], (2,), id="another server, a GTID less"),
        pytest.param([end(900, gtids=9), end(901, gtids=8)], (2,), id="GTIDs decide, not positions"),
        pytest.param([end(900, hours=0), end(100, OTHER, hours=2)], (), id="hours later by the same clock"),
        pytest.param([end(900, hours=0), end(100, OTHER, hours=1)], (2,), id="within the clock's tolerance"),
        pytest.param([end(900, hours=0), end(100, OTHER, hours=2, committer=8)], (2,), id="another server's clock"),
        pytest.param([end(900), end(100, OTHER)], (2,), id="nothing decides"),
    ],
)
def test_an_epoch_is_unfinished_unless_it_is_known_to_cover_all_earlier_ones(ends, expected):
    assert unfinished(*ends) == expected
