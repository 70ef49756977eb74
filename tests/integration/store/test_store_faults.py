"""A whole round of plan, drain and ack over an S3 store that refuses, loses answers, or says nothing."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

import pytest

from cdc_lib.errors import StoreUnavailable
from cdc_lib.pipeline import Pipeline
from cdc_lib.store.cursors import ObjectCursorStore
from cdc_lib.store.manifests import chunks_of, find_manifest
from cdc_lib.store.objects.local import LocalStore
from cdc_lib.store.objects.s3 import S3Store
from cdc_lib.store.windows import stored_windows
from tests.chaos.laws import Laws
from tests.harness.binlog.capture import Capture
from tests.harness.network.lossy_proxy import LossyProxy
from tests.harness.store.stores import options

ATTEMPTS = 2
ROWS = 60


@pytest.fixture
def proxy(s3_server):
    with LossyProxy(s3_server.endpoint) as proxy:
        yield proxy


class Round:
    """One source whose store is reached through a proxy, and the same store reached directly."""

    def __init__(self, server, database, folder, s3_server, bucket, proxy):
        self.capture = Capture(server, database, folder, snapshot={"chunk_rows": 25})
        few = replace(options(s3_server, proxy.url), attempts=ATTEMPTS, connect_timeout=5, read_timeout=1)
        self.store = S3Store(bucket, "p", few)
        self.direct = S3Store(bucket, "p", options(s3_server))
        self.store.probe()
        self.pipeline = self._pipeline(self.store)
        self.laws = Laws(self.direct, self.capture.config.source)
        self.inserted = 0

    def _pipeline(self, store):
        return Pipeline(self.capture.config, self.capture.credentials, store, ObjectCursorStore(store))

    def insert(self):
        values = ",".join(f"({self.inserted + i}, 'row')" for i in range(ROWS))
        self.capture.execute(f"INSERT INTO t VALUES {values}")
        self.inserted += ROWS

    def run(self, pipeline=None):
        """Take all three steps; raises where the store does."""
        pipeline = pipeline or self.pipeline
        for unit in pipeline.plan(by="test"):
            pipeline.drain(unit)
        pipeline.ack_drain(by="test")

    def ids(self):
        """Return the ids of all rows in acknowledged batches, each as often as it is there."""
        cursor = ObjectCursorStore(self.direct).load(self.capture.config.source, "drain")
        manifests = [m for task in cursor.snapshots for m in chunks_of(self.direct, task)]
        windows = stored_windows(self.direct, self.capture.config.source)
        manifests += [find_manifest(self.direct, window.key) for window in windows]
        reader = self.capture
        reader.store = self.direct
        return sorted(row["id"] for manifest in manifests for row in reader.rows(manifest, "t"))


@pytest.fixture
def one(mysql_server, mysql_database, tmp_path, s3_server, bucket, proxy):
    mysql_server.execute(f"CREATE TABLE {mysql_database}.t (id INT PRIMARY KEY, v VARCHAR(9))")
    return Round(mysql_server, mysql_database, tmp_path, s3_server, bucket, proxy)


FAULTS = {
    "500": lambda proxy, method, times: proxy.refuse(method, times, 500, "InternalError"),
    "503": lambda proxy, method, times: proxy.refuse(method, times, 503, "SlowDown"),
    "lost answers": lambda proxy, method, times: proxy.lose_answers(method, times),
    "no answers": lambda proxy, method, times: proxy.hold_answers(method, times),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_store_that_fails_now_and_then_loses_nothing_and_doubles_nothing(one, proxy, fault):
    """Whether a write was refused or done and its answer lost, at every request of a round in turn; each step is retried."""
    one.insert()
    failures = 0
    for number in range(4):
        times = (1, 5)[number % 2]  # fewer than the attempts, and more
        FAULTS[fault](proxy, ("PUT", "GET")[number // 2], times)
        for _ in range(10):
            with suppress(StoreUnavailable):
                one.run()
                break
            failures += 1
            one.laws.check()
        one.laws.check()
        one.insert()
    proxy.refuse("PUT", 0, 0, "")
    proxy.lose_answers("PUT", 0)
    one.run()
    one.laws.check()
    one.laws.check_documents()
    assert failures
    assert proxy.lost + proxy.refused > 6
    assert one.ids() == list(range(one.inserted))


def test_a_store_that_refuses_for_good_ends_a_step_with_an_error_to_retry(one, proxy):
    """It names what could not be done and where, and the cursor is where it was."""
    one.insert()
    one.run()
    one.insert()
    before = ObjectCursorStore(one.direct).load(one.capture.config.source, "drain")
    proxy.refuse("PUT", 10_000, 503, "SlowDown")
    with pytest.raises(StoreUnavailable, match="503 SlowDown") as caught:
        one.run()
    assert caught.value.retryable
    assert ObjectCursorStore(one.direct).load(one.capture.config.source, "drain") == before


def test_a_window_through_a_bad_network_has_the_bytes_of_one_through_a_good_one(one, proxy, tmp_path):
    """Law 1, with a store in a folder beside it."""
    one.insert()
    one.run()
    one.laws.check()
    one.insert()
    proxy.lose_answers("PUT", 3)
    for _ in range(3):
        with suppress(StoreUnavailable):
            one.run()
    one.laws.check()
    good = LocalStore(tmp_path / "good")
    cursor = ObjectCursorStore(one.direct).load(one.capture.config.source, "drain")
    assert one.laws.windows
    for window in one.laws.windows:
        one.laws.drains_to_the_same(window, one.capture.config, one.capture.credentials, cursor, good.root)
