"""A worker whose clock is wrong changes nothing, and no table is stuck because of it."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from cdc_lib.errors import WrongClock
from cdc_lib.store.cuts import last_cut
from cdc_lib.store.objects.open import open_store
from spark_jobs.maintain import lake_tables, maintain
from tests.harness.lake.batches import BIGINT, TEXT, BatchWriter, Row, table
from tests.harness.lake.running import lake_config
from tests.harness.servers.skew import can_be_wrong, wrong_clock
from tests.integration.spark.test_merge_job import Job, first_and_second, read

CLOCKS = r"this machine's clock is at .* UTC, and "


@pytest.mark.skipif(not can_be_wrong(), reason="there is no C compiler")
def test_a_worker_whose_clock_is_ahead_merges_nothing_and_the_next_one_everything(tmp_path):
    """Else its commits would have times that no other machine may commit after."""
    config = lake_config(tmp_path)
    one, two = first_and_second(BatchWriter(open_store(config.store)))
    Job(tmp_path, config, {}).run(one)
    with Job(tmp_path, config, wrong_clock(300)).start(two) as process:
        said, _ = process.communicate(timeout=900)
    assert process.returncode != 0
    assert "WrongClock: this machine's clock is at " in said
    assert read(config) == [(1, "new"), (2, "new"), (3, "new")]
    Job(tmp_path, config, {}).run(two)
    assert read(config) == [(2, "paid"), (3, "new")]


@pytest.fixture
def ahead(lake):
    """A table whose last commit another machine made, whose clock was five minutes ahead; returns its schema and a plan."""
    orders = table(f"{lake.database}.orders", {"id": BIGINT, "state": TEXT})
    lake.merge(lake.batches.plan(100, lake.batches.window(4, 100, {orders: [Row("c", 10, {"id": 1, "state": "new"})]})))
    file = Path(urlsplit(str(lake.target(orders.name)._java().operations().current().metadataFileLocation())).path)
    metadata = json.loads(file.read_text())
    at = datetime.now(UTC) + timedelta(minutes=5)
    metadata["last-updated-ms"] = int(at.timestamp() * 1000)
    metadata["snapshot-log"][-1]["timestamp-ms"] = metadata["last-updated-ms"]
    file.write_text(json.dumps(metadata))
    rows = [Row("u", 110, {"id": 1, "state": "paid"})]
    return orders, lake.batches.plan(200, lake.batches.window(100, 200, {orders: rows})), f"{at:%Y-%m-%d %H:%M:%S} UTC"


def test_a_table_whose_last_commit_is_of_the_future_waits_and_the_error_names_both_clocks(lake, ahead):
    """It ends by itself, so that it is tried again; nothing is computed in vain."""
    orders, plan, at = ahead
    with pytest.raises(WrongClock, match=f"{CLOCKS}the last commit of the lake table .* is of {at}") as raised:
        lake.merge(plan)
    assert raised.value.retryable
    assert lake.rows(orders.name, "id", "state") == [(1, "new")]


def test_maintenance_removes_nothing_if_the_last_commit_is_of_the_future(lake, ahead):
    orders, _, at = ahead
    names = lake_tables(lake.config, last_cut(lake.store, lake.config.source), [orders.name])
    files = _files(lake, orders)
    with pytest.raises(WrongClock, match=f"{CLOCKS}the last commit of the lake table .* is of {at}"):
        maintain(lake.spark, lake.config, lake.store, names, lake.said.append)
    assert _files(lake, orders) == files


def _files(lake, orders):
    folder = Path(urlsplit(str(lake.target(orders.name)._java().location())).path)
    return {path for path in folder.rglob("*") if path.is_file()}
