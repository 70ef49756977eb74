"""The status of a lake that is still in an earlier epoch than the drain."""

from __future__ import annotations

from cdc_lib import requests
from cdc_lib.cli.status import pending
from cdc_lib.config.start import StartAt
from cdc_lib.status.overview import status_of
from tests.harness.binlog.capture import Capture
from tests.harness.lake.merging import Lake, drain_all


def test_windows_of_earlier_epochs_are_counted_apart_from_the_bytes_of_the_current_one(any_server, database, tmp_path):
    """Until the lake has them and follows; then the bytes alone tell what it lacks."""
    capture, lake = Capture(any_server, database, tmp_path, start="latest"), Lake("t")
    capture.execute("CREATE TABLE t (id INT PRIMARY KEY)")
    capture.pipeline.plan(by="test")
    begin = capture.head()
    for key in (1, 2):
        capture.execute(f"INSERT INTO t VALUES ({key})")
        drain_all(capture)
    assert status_of(capture.pipeline).pending_windows == 0
    requests.rewind(capture.pipeline, StartAt(position=str(begin)), by="test", why="again")
    status = status_of(capture.pipeline)
    assert status.binlog_end is not None
    assert (status.pending_windows, status.pending_bytes) == (2, status.binlog_end.offset - begin.offset)
    assert pending(status).startswith("2 windows of earlier epochs, ")
    assert status.lag_seconds is None  # before the first cut
    lake.merge_all(capture)
    drain_all(capture)
    lake.merge_all(capture)
    status = status_of(capture.pipeline)
    assert (status.pending_windows, status.pending_bytes, status.lag_seconds) == (0, 0, 0.0)
    assert pending(status) == "0 B"
    assert set(lake.rows) == {1, 2}
