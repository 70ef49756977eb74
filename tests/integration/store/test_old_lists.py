"""A caching gateway before S3 lists new objects late: nothing that is stored is taken for lost, and nothing is merged past it."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from cdc_lib import requests
from cdc_lib.backfill.refill import BatchRefill
from cdc_lib.consumers.restore import restore
from cdc_lib.consumers.subscribe import subscribe
from cdc_lib.errors import BatchesMissing
from cdc_lib.model.cursor import DRAIN, LAKE
from cdc_lib.pipeline import Pipeline
from cdc_lib.status.overview import findings_of, status_of
from cdc_lib.store import layout
from cdc_lib.store.cursors import ObjectCursorStore
from cdc_lib.store.cuts import last_cut
from cdc_lib.store.objects.s3 import S3Store
from cdc_lib.store.windows import stored_windows
from tests.harness.binlog.capture import SOURCE, Capture
from tests.harness.lake.merging import Lake, drain_all
from tests.harness.store.old_lists import OldLists
from tests.harness.store.stores import options


@pytest.fixture
def capture(mysql_server, mysql_database, tmp_path, s3_server, bucket):
    """A source that was merged once, with its batches on S3."""
    capture = Capture(mysql_server, mysql_database, tmp_path)
    capture.store = OldLists(S3Store(bucket, "p", options(s3_server)))
    cursors = ObjectCursorStore(capture.store)
    capture.pipeline = Pipeline(capture.config, capture.credentials, capture.store, cursors)
    capture.execute("CREATE TABLE t (id INT PRIMARY KEY, v INT)")
    capture.execute("INSERT INTO t VALUES (1, 0), (2, 0)")
    capture.lake = Lake("t")
    merged(capture)
    return capture


def merged(capture):
    for _ in range(3):
        drain_all(capture)
        capture.lake.merge_all(capture)


def drained(capture):
    """Drain three windows, which no listing shows."""
    capture.store.grow_old()
    for number in range(3):
        capture.execute(f"INSERT INTO t VALUES ({10 + number}, {number})")
        capture.execute(f"UPDATE t SET v = {number} WHERE id = 1")
        drain_all(capture)


def assert_equal(capture):
    assert capture.lake.rows == {id_: {"id": id_, "v": v} for id_, v in capture.execute("SELECT id, v FROM t")}


def errors(capture):
    return [finding.what for finding in findings_of(capture.pipeline) if finding.level == "error"]


def test_windows_that_no_listing_shows_are_merged(capture):
    """Doctor, status and refill find nothing that is missing."""
    before = len(stored_windows(capture.store, SOURCE))
    drained(capture)
    assert len(stored_windows(capture.store, SOURCE)) == before
    refill = BatchRefill(capture.pipeline)
    assert (errors(capture), status_of(capture.pipeline).missing, refill.missing()) == ([], (), [])
    merged(capture)
    assert_equal(capture)


def test_a_window_that_is_lost_is_still_named(capture):
    """It is looked for by its key, and is not there; the windows before it are merged, and none after it."""
    drained(capture)
    windows = [window for window, _ in capture.pipeline.cursors.load(SOURCE, DRAIN).acked_windows]
    capture.store.delete([layout.manifest_key(windows[1])])
    with pytest.raises(BatchesMissing, match=windows[1].id):
        merged(capture)
    assert capture.pipeline.cursors.load(SOURCE, LAKE).position == windows[1].start
    assert len(errors(capture)) == 1


def test_other_consumers_read_windows_that_no_listing_shows(capture):
    """None is left out, and none is taken for removed; their cursor can be restored there."""
    with subscribe(capture.store, capture.pipeline.cursors, SOURCE, "audit", start="latest"):
        old = capture.pipeline.cursors.load(SOURCE, "audit")
    drained(capture)
    for _ in range(2):
        with subscribe(capture.store, capture.pipeline.cursors, SOURCE, "audit") as audit:
            ids = []
            while batch := audit.get(1):
                ids += [row["id"] for table in batch.tables().values() for row in table.to_pylist()]
                batch.ack()
        assert ids == [10, 11, 1, 12, 1]
        cursors, now = capture.pipeline.cursors, datetime.now(UTC)
        restore(capture.store, cursors, [old], source=SOURCE, by="test", why="to read again", at=now)


def test_chunks_that_no_listing_shows_are_acknowledged(capture):
    """The ack counts them by their keys."""
    requests.resnapshot(capture.pipeline, [f"{capture.database}.t"], by="test", why="to be sure")
    capture.store.grow_old()
    capture.execute("DELETE FROM t WHERE id = 2")
    merged(capture)
    assert capture.pipeline.cursors.load(SOURCE, DRAIN).open_snapshots == ()
    assert capture.pipeline.cursors.load(SOURCE, DRAIN).lagging_in(capture.pipeline.cursors.load(SOURCE, LAKE)) == ()


def test_a_merge_continues_from_the_cut_before_it(capture):
    """Tables that only that cut has would be in no later one."""
    drained(capture)
    merged(capture)
    capture.execute("INSERT INTO t VALUES (99, 9)")
    drain_all(capture)
    lake, plan = capture.pipeline.cursors.load(SOURCE, LAKE), capture.pipeline.plan_merge(by="test")
    assert last_cut(capture.store, SOURCE).position < lake.position
    assert last_cut(capture.store, SOURCE, plan.last_merge).position == lake.position
