"""A Spark server whose executors are in containers of YARN: the recipe of docs/guides/spark-clusters.md, the whole way, on S3."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.harness.servers import MySqlServer, S3Server
from tests.harness.spark.server import RunningSparkServer
from tests.harness.spark.yarn_cluster import YarnCluster
from tests.integration.spark.test_spark_server import Source

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1200)]


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[YarnCluster]:
    with YarnCluster(tmp_path / "yarn") as running:
        yield running


def test_the_lake_equals_the_source_through_everything_on_yarn(
    cluster: YarnCluster,
    mysql_server: MySqlServer,
    mysql_database: str,
    tmp_path: Path,
    s3_server: S3Server,
    bucket: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Containers know nothing of the source: jars and keys come from the driver, and Python is not there."""
    monkeypatch.setenv("CDC_PASSWORD", mysql_server.cdc_password)
    monkeypatch.setenv("TEST_KEY", s3_server.access_key)
    monkeypatch.setenv("TEST_SECRET", s3_server.secret_key)
    monkeypatch.setenv("HADOOP_CONF_DIR", str(cluster.conf))
    store = {"url": f"s3://{bucket}/batches", "endpoint_url": s3_server.endpoint, "region": s3_server.region}
    store |= {"access_key_env": "TEST_KEY", "secret_key_env": "TEST_SECRET"}
    lake = {"type": "jdbc", "uri": f"jdbc:sqlite:{tmp_path}/catalog.db", "warehouse": f"s3://{bucket}/lake"}
    with RunningSparkServer(tmp_path, *cluster.options) as server:
        source = Source(mysql_server, mysql_database, tmp_path, server, settings={"store": store, "lake": lake})
        source.cdc("run shop")
        source.execute("REPLACE INTO orders SELECT id + 1, 'changed' FROM orders")
        source.execute("DELETE FROM orders WHERE id = 1")
        source.cdc("run shop")
        source.cdc("lake maintain shop")
        assert source.verified()["clean"]
        assert "executors write and read tables" in source.cdc("doctor shop --spark --json")
        assert cluster.running() == 1
    written = cluster.executors()
    assert len(written) == 1
    assert "Finished task" in written[0]
