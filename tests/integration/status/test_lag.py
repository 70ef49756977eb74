"""What status and the gauges say of the lag, on real servers: before the first cut, with a snapshot that waits, and offline."""

from __future__ import annotations

import pytest

from cdc_lib import requests
from cdc_lib.cli.status import pending
from cdc_lib.config import Credentials
from cdc_lib.pipeline import Pipeline
from cdc_lib.status.overview import gauges_of, status_of
from tests.harness.binlog.capture import Capture
from tests.harness.lake.merging import Lake, drain_all
from tests.harness.servers.process import free_port


@pytest.fixture
def capture(any_server, database, tmp_path):
    capture = Capture(any_server, database, tmp_path)
    capture.execute("CREATE TABLE t (id INT PRIMARY KEY)")
    capture.execute("INSERT INTO t VALUES (1), (2)")
    return capture


def lags(capture):
    """Of status and of the gauges, which must say the same."""
    status, gauges = status_of(capture.pipeline), gauges_of(capture.pipeline)
    assert (status.lag_seconds is None) is (gauges.lag_seconds is None)
    assert (status.lag_seconds == 0) is (gauges.lag_seconds == 0)
    return gauges.lag_seconds


def offline(capture):
    """The same source, whose server does not answer any more."""
    config = capture.config.at("127.0.0.1", free_port())
    return Pipeline(config, Credentials("cdc", ""), capture.store, capture.pipeline.cursors)


def test_the_lag_is_unknown_until_the_first_cut(capture):
    """Everything is drained, the end of the binlog is reached, and the lake is empty: it was 0 seconds and 0 bytes."""
    assert lags(capture) is None
    drain_all(capture)
    assert lags(capture) is None
    assert pending(status_of(capture.pipeline)).startswith("1 snapshot, ")
    Lake("t").merge_all(capture)
    assert lags(capture) == 0
    assert "snapshot" not in pending(status_of(capture.pipeline))


def test_a_snapshot_that_waits_and_a_window_that_is_drained_count(capture):
    """The head is where the lake is, and a new table's rows are not there yet."""
    lake = Lake("t")
    drain_all(capture)
    lake.merge_all(capture)
    drain_all(capture)
    assert lags(capture) == 0
    capture.execute("INSERT INTO t VALUES (3)")
    assert lags(capture) > 0
    drain_all(capture)
    assert lags(capture) > 0
    lake.merge_all(capture)
    assert lags(capture) == 0
    requests.resnapshot(capture.pipeline, [f"{capture.database}.t"], by="test", why="doubt")
    assert lags(capture) > 0
    drain_all(capture)
    assert lags(capture) > 0
    lake.merge_all(capture)
    assert lags(capture) == 0


def test_the_lag_grows_from_the_last_known_state_while_the_server_cannot_be_asked(capture):
    """It was unknown, so that no gauge was sent and no alert went off."""
    lake = Lake("t")
    drain_all(capture)
    lake.merge_all(capture)
    drain_all(capture)
    dead = offline(capture)
    first, second = gauges_of(dead).lag_seconds, gauges_of(dead).lag_seconds
    assert 0 < first < second
    assert status_of(dead).lag_seconds > second
    assert status_of(dead).binlog_end is None
