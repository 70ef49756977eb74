"""A Spark cluster with executors on workers that know nothing of the source: the whole way, on S3, by a Spark server."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.harness.servers import MySqlServer, S3Server
from tests.harness.spark_cluster import SparkCluster
from tests.harness.spark_server import RunningSparkServer
from tests.integration.spark.test_spark_server import Source

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1200)]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkCluster]:
    with SparkCluster(tmp_path_factory.mktemp("cluster")) as running:
        yield running


@pytest.fixture(scope="module")
def spark_server(cluster: SparkCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningSparkServer]:
    options = ("--master", cluster.url, "--conf", "spark.executor.memory=512m", "--conf", "spark.driver.host=127.0.0.1")
    with RunningSparkServer(tmp_path_factory.mktemp("driver"), *options) as server:
        yield server


@pytest.fixture
def source(
    mysql_server: MySqlServer,
    mysql_database: str,
    tmp_path: Path,
    spark_server: RunningSparkServer,
    s3_server: S3Server,
    bucket: str,
    monkeypatch: pytest.MonkeyPatch,
) -> Source:
    monkeypatch.setenv("CDC_PASSWORD", mysql_server.cdc_password)
    monkeypatch.setenv("TEST_KEY", s3_server.access_key)
    monkeypatch.setenv("TEST_SECRET", s3_server.secret_key)
    store = {
        "url": f"s3://{bucket}/batches",
        "endpoint_url": s3_server.endpoint,
        "region": s3_server.region,
        "access_key_env": "TEST_KEY",
        "secret_key_env": "TEST_SECRET",
    }
    lake = {"type": "jdbc", "uri": f"jdbc:sqlite:{tmp_path}/catalog.db", "warehouse": f"s3://{bucket}/lake"}
    modes = [{"tables": f"{mysql_database}.kept", "mode": "scd2"}]
    return Source(
        mysql_server, mysql_database, tmp_path, spark_server, settings={"store": store, "lake": lake, "modes": modes}
    )


def test_the_lake_equals_the_source_through_everything(source: Source, cluster: SparkCluster) -> None:
    """Snapshot, merges, a table with history, re-selected rows, maintenance; executors get jars and keys from the job."""
    source.execute("CREATE TABLE kept (id INT PRIMARY KEY, v VARCHAR(20))")
    source.execute("INSERT INTO kept VALUES (1, 'a'), (2, 'b')")
    source.cdc("run shop")
    for number in range(3):
        source.execute(f"REPLACE INTO orders SELECT id + {number}, 'changed {number}' FROM orders")
        source.execute(f"UPDATE kept SET v = 'changed {number}' WHERE id = 1")
        source.cdc("run shop")
    with source.server.connect() as connection, connection.cursor() as cursor:
        cursor.execute("SET SESSION binlog_row_image = 'MINIMAL'")
        cursor.execute(f"UPDATE {source.database}.orders SET v = 'partial' WHERE id = 2")
    source.cdc("run shop")
    assert "files became" in source.cdc("lake maintain shop")
    source.execute("DELETE FROM orders WHERE id = 1")
    source.cdc("run shop")
    assert source.verified()["clean"]
    written = cluster.executors()
    assert len(written) == 2  # both workers ran tasks of the driver that stays
    assert all("Finished task" in text for text in written)


def test_a_killed_worker_costs_a_retry_of_its_tasks(source: Source, cluster: SparkCluster) -> None:
    """The job goes on with the other worker, and a new one takes its place."""
    source.cdc("run shop")
    source.execute("INSERT INTO orders SELECT a.id * 1000 + b.id * 10 + c.id, 'many' FROM orders a, orders b, orders c")
    failed: list[BaseException] = []

    def run() -> None:
        try:
            source.cdc("run shop")
        except BaseException as error:
            failed.append(error)
            raise

    runs = threading.Thread(target=run)
    runs.start()
    time.sleep(2)
    cluster.processes[-1].kill()
    cluster.start_worker(9)
    runs.join()
    assert failed == []
    cluster.wait_for_workers(2)
    source.cdc("run shop")
    assert source.verified()["clean"]


def test_a_killed_driver_loses_nothing(source: Source, spark_server: RunningSparkServer) -> None:
    """The cluster ends its executors; the next driver gets new ones."""
    source.cdc("run shop")
    source.execute("UPDATE orders SET v = 'before the kill'")
    for step in ("plan", "drain", "ack drain"):
        source.cdc(f"step {step} shop")
    runs = threading.Thread(target=lambda: source.cdc("step merge shop", code=1))
    runs.start()
    time.sleep(2)
    spark_server.kill()
    runs.join()
    spark_server.start()
    source.cdc("run shop")
    assert source.verified()["clean"]
