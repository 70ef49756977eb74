"""A Spark cluster with executors on workers that know nothing of the source: the whole way, on S3, by a Spark server.

The catalog is in SQLite or PostgreSQL, or a REST catalog, which alone knows the bucket of the lake.
"""

from __future__ import annotations

import secrets
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from cdc_lib.jobs.client import raise_for
from demo.shop import seed
from demo.shop.workload import Workload
from spark_jobs.probing.checks import PYTHON_THERE
from tests.harness.network.holding_proxy import HoldingProxy
from tests.harness.servers import MySqlServer, S3Server
from tests.harness.servers.azure import AzureServer
from tests.harness.servers.gcs import GcsServer
from tests.harness.servers.postgres import USER, PostgresServer
from tests.harness.servers.process import free_port
from tests.harness.servers.rest_catalog import RestCatalogServer
from tests.harness.shop.seeded import seeded_shop, source_settings
from tests.harness.spark.cluster import SparkCluster
from tests.harness.spark.pages import SparkPages, until_equal
from tests.harness.spark.served_source import Source
from tests.harness.spark.server import RunningSparkServer
from tests.harness.store.google_account import TokenServer, account_key

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1200)]

PORT = free_port()
"""Of Spark's pages."""

ROWS = 3_000
ALTERS = {
    30: ("customers", "loyalty_points", "INT UNSIGNED NULL AFTER email"),
    90: ("orders", "carrier", "ENUM('post', 'dhl', 'fahrrad 🚲') NULL"),
}
"""Statements of the shop's workload, by the number of the transaction."""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkCluster]:
    with SparkCluster(tmp_path_factory.mktemp("cluster")) as running:
        yield running


@pytest.fixture(scope="module")
def spark_server(cluster: SparkCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningSparkServer]:
    conf = (
        f"spark.pyspark.python={sys.executable}",
        "spark.executor.memory=512m",
        "spark.driver.host=127.0.0.1",
        "spark.ui.enabled=true",
        f"spark.ui.port={PORT}",
    )
    options = ("--master", cluster.url, *(word for one in conf for word in ("--conf", one)))
    with RunningSparkServer(tmp_path_factory.mktemp("driver"), *options) as server:
        yield server


@pytest.fixture(scope="module")
def postgres() -> Iterator[PostgresServer]:
    with PostgresServer() as running:
        yield running


@pytest.fixture(params=["sqlite"])
def lake(request: pytest.FixtureRequest, tmp_path: Path, s3_server: S3Server, bucket: str) -> Iterator[dict[str, str]]:
    """What a source file has under ``lake``."""
    in_bucket = {"type": "jdbc", "warehouse": f"s3://{bucket}/lake"}
    match request.param:
        case "sqlite":
            yield {**in_bucket, "uri": f"jdbc:sqlite:{tmp_path}/catalog.db"}
        case "postgresql":
            server: PostgresServer = request.getfixturevalue("postgres")
            name = f"lake_{secrets.token_hex(4)}"
            server.create_database(name)
            yield {**in_bucket, "uri": f"jdbc:postgresql://127.0.0.1:{server.port}/{name}?user={USER}"}
        case _:
            with RestCatalogServer.on_s3(s3_server) as catalog:
                yield {"type": "rest", "uri": catalog.url, "warehouse": "shop"}


@pytest.fixture
def settings(
    mysql_server: MySqlServer, s3_server: S3Server, bucket: str, lake: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> dict[str, Any]:
    """Sections of a source file with batches and lake on the S3 server; the environment has what they name."""
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
    return {"store": store, "lake": lake}


@pytest.fixture
def source(
    mysql_server: MySqlServer,
    mysql_database: str,
    tmp_path: Path,
    spark_server: RunningSparkServer,
    settings: dict[str, Any],
) -> Source:
    modes = [{"tables": f"{mysql_database}.kept", "mode": "scd2"}]
    return Source(mysql_server, mysql_database, tmp_path, spark_server, settings={**settings, "modes": modes})


@pytest.fixture
def proxy(s3_server: S3Server) -> Iterator[HoldingProxy]:
    with HoldingProxy(s3_server.endpoint) as running:
        yield running


@pytest.fixture
def held_source(
    mysql_server: MySqlServer,
    mysql_database: str,
    tmp_path: Path,
    spark_server: RunningSparkServer,
    settings: dict[str, Any],
    proxy: HoldingProxy,
) -> Source:
    """A source whose batches and lake are reached through the proxy, with three rows in the lake."""
    settings["store"]["endpoint_url"] = proxy.url
    source = Source(mysql_server, mysql_database, tmp_path, spark_server, settings=settings)
    source.cdc("run shop")
    return source


@pytest.mark.parametrize("lake", ["sqlite", "postgresql", "rest"], indirect=True)
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
    doctor = source.cdc("doctor shop --spark --json")
    assert "executors write and read tables" in doctor
    assert PYTHON_THERE in doctor
    written = cluster.executors()
    assert len(written) == 2  # both workers ran tasks of the driver that stays
    assert all("Finished task" in text for text in written)


class ShopSource(Source):
    """A source over the demo's shop, which is filled."""

    def fill(self) -> None:
        """Leave it as it is."""


@pytest.mark.parametrize("lake", ["postgresql"], indirect=True)
def test_the_demos_shop_equals_its_source_through_everything(
    mysql_server: MySqlServer, tmp_path: Path, spark_server: RunningSparkServer, settings: dict[str, Any]
) -> None:
    """All types, changes during the snapshots, DDL, a table with history, partial row images, maintenance."""
    with seeded_shop(mysql_server, ROWS) as shop, mysql_server.connect() as connection:
        modes = [{"tables": f"{shop}.customers", "mode": "scd2"}]
        more = {"modes": modes, "snapshot": {"chunk_rows": 500}}
        source = ShopSource(mysql_server, shop, tmp_path, spark_server, settings={**settings, **more})
        workload, cursor = Workload(connection, shop, alters=ALTERS), connection.cursor()
        workload.run(20)
        source.cdc("step plan shop")
        workload.run(40)  # the tables are read now: with a column more than the plan has seen
        source.cdc("run shop")
        workload.run(60)
        source.execute("ALTER TABLE products ADD COLUMN points INT NOT NULL DEFAULT 3")
        source.execute("UPDATE products SET points = 4 ORDER BY id LIMIT 20")
        source.execute("ALTER TABLE inventory RENAME COLUMN capacity TO room")
        source.cdc("run shop")
        cursor.execute("SET SESSION binlog_row_image = 'MINIMAL'")
        cursor.execute("UPDATE customers SET name = CONCAT('Dr. ', name) WHERE id % 7 = 0")
        cursor.execute("UPDATE orders SET note = 'partial' ORDER BY id LIMIT 30")
        cursor.execute("DELETE FROM inventory ORDER BY sku LIMIT 5")
        connection.commit()
        cursor.execute("SET SESSION binlog_row_image = 'FULL'")
        source.cdc("run shop")
        assert "files became" in source.cdc("lake maintain shop")
        source.execute("TRUNCATE TABLE order_items")
        Workload(connection, shop, seed=2, alters={}).run(40)
        for _ in range(2):
            source.cdc("run shop")
        report = source.verified()
        assert report["clean"]
        assert {tuple(one["table"]) for one in report["tables"]} == {(shop, name) for name in seed.TABLES}
        assert sum(one["source_rows"] for one in report["tables"]) > ROWS / 3


def test_executors_read_batches_at_google_with_the_key_of_the_job(
    mysql_server: MySqlServer,
    mysql_database: str,
    tmp_path: Path,
    spark_server: RunningSparkServer,
    gcs_server: GcsServer,
    gcs_bucket: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Workers have neither the key nor the jar; the lake is in a folder that all of them share."""
    with TokenServer() as tokens:
        monkeypatch.setenv("CDC_PASSWORD", mysql_server.cdc_password)
        monkeypatch.setenv("TEST_ACCOUNT", account_key(tokens.url))
        store = {"url": f"gs://{gcs_bucket}/batches", "endpoint_url": gcs_server.endpoint}
        settings = {"store": {**store, "service_account_env": "TEST_ACCOUNT"}}
        source = Source(mysql_server, mysql_database, tmp_path, spark_server, settings=settings)
        reads_its_batches(source, store["url"])
        # Each process keeps its token: the driver and at least one executor asked for their own.
        assert sum("Java" in agent for agent in tokens.agents) > 1, tokens.agents


def test_executors_read_batches_at_azure_with_the_secret_of_the_job(
    mysql_server: MySqlServer,
    mysql_database: str,
    tmp_path: Path,
    spark_server: RunningSparkServer,
    azure_server: AzureServer,
    azure_container: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Workers have neither the secret nor the jar."""
    monkeypatch.setenv("CDC_PASSWORD", mysql_server.cdc_password)
    monkeypatch.setenv("TEST_AZURE", azure_server.sas())
    url = f"abfss://{azure_container}@{azure_server.host}/batches"
    store = {"url": url, "endpoint_url": azure_server.endpoint, "azure_secret_env": "TEST_AZURE"}
    reads_its_batches(Source(mysql_server, mysql_database, tmp_path, spark_server, settings={"store": store}), url)


def reads_its_batches(source: Source, url: str) -> None:
    """From a snapshot to verify, and cdc doctor --spark."""
    source.cdc("run shop")
    source.execute("REPLACE INTO orders SELECT id + 1, 'changed' FROM orders")
    source.execute("DELETE FROM orders WHERE id = 1")
    source.cdc("run shop")
    assert source.verified()["clean"]
    assert f"Spark's executors read the store {url}" in source.cdc("doctor shop --spark --json")


def test_a_killed_worker_costs_a_retry_of_its_tasks(
    held_source: Source, proxy: HoldingProxy, cluster: SparkCluster, spark_server: RunningSparkServer
) -> None:
    """It is killed while its executor writes; the merge goes on with the other worker, and a new one takes its place."""
    source, client, pages = held_source, spark_server.client, SparkPages(spark_server, PORT)
    digits = " UNION ALL ".join(f"SELECT {digit}{' AS d' if digit == 0 else ''}" for digit in range(10))
    numbers = ", ".join(f"({digits}) t{place}" for place in range(6))
    number = " + ".join(f"{10**place} * t{place}.d" for place in range(6))
    source.execute(f"INSERT INTO orders SELECT 10 + {number}, 'v' FROM {numbers}")  # more than the driver merges itself
    source.execute("UPDATE orders SET v = 'changed' WHERE id < 4")
    source.drain()
    with proxy.holding("PUT", "/data/"):
        merge = source.start_merge()
        proxy.wait_until_held()
        until_equal(lambda: bool(pages.busy_executors()), True)
        executor = pages.busy_executors()[0]
        cluster.kill_worker_of(client.status().application, executor)
        until_equal(lambda: pages.is_lost(executor), True)
    cluster.start_worker(9)
    assert raise_for(client.follow(client.job(merge.id), print)) == 0
    tasks = pages.tasks_of(merge.id)
    lost = {(one["stage"], one["index"]) for one in tasks if "ExecutorLostFailure" in one.get("errorMessage", "")}
    tried_again = {(one["stage"], one["index"]) for one in tasks if one["status"] == "SUCCESS" and one["try"] > (0, 0)}
    assert lost
    assert lost <= tried_again
    cluster.wait_for_workers(2)
    source.cdc("step ack lake shop")
    report = source.verified()
    assert (report["clean"], report["tables"][0]["source_rows"]) == (True, 1_000_003)


MOMENTS = {
    "an executor reads a batch": ("GET", "/batches/", ".parquet"),
    "an executor writes rows": ("PUT", "/data/"),
    "the driver commits": ("PUT", "/metadata/", ".metadata.json"),
    "the job publishes its cut": ("PUT", "/cuts/"),
}
"""Words of the request that a merge sends then."""


def test_a_killed_driver_loses_nothing(
    held_source: Source, proxy: HoldingProxy, spark_server: RunningSparkServer, subtests: pytest.Subtests
) -> None:
    """At any moment; the cluster ends its executors, and the next driver gets new ones."""
    for number, (moment, words) in enumerate(MOMENTS.items()):
        with subtests.test(moment):
            held_source.execute(f"UPDATE orders SET v = 'change {number}' WHERE id < 3")
            held_source.execute("DELETE FROM orders WHERE id > 3")
            held_source.execute(f"INSERT INTO orders VALUES ({10 + number}, 'new')")
            held_source.drain()
            with proxy.holding(*words):
                merge = held_source.start_merge()
                proxy.wait_until_held()
                assert spark_server.client.job(merge.id).state == "running"
                spark_server.kill()
            spark_server.start()
            held_source.cdc("run shop")
            report = held_source.verified()
            assert (report["clean"], report["tables"][0]["source_rows"]) == (True, 4)


def test_executors_trust_the_authority_of_the_store_and_without_it_doctor_names_it(
    mysql_server: MySqlServer, mysql_database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A job's own driver sends them the trust store; a driver that trusts it alone is not enough."""
    monkeypatch.setenv("CDC_PASSWORD", mysql_server.cdc_password)
    mysql_server.execute("CREATE TABLE orders (id INT PRIMARY KEY, v VARCHAR(20))", database=mysql_database)
    mysql_server.execute("INSERT INTO orders VALUES (1, 'a')", database=mysql_database)
    with S3Server(names=("127.0.0.1",)) as s3, SparkCluster(tmp_path / "cluster", workers=1) as cluster:
        monkeypatch.setenv("TEST_KEY", s3.access_key)
        monkeypatch.setenv("TEST_SECRET", s3.secret_key)
        bucket = s3.make_bucket()
        store = {"url": f"s3://{bucket}/batches", "endpoint_url": s3.endpoint, "region": s3.region}
        store |= {"access_key_env": "TEST_KEY", "secret_key_env": "TEST_SECRET", "ca": str(s3.certificate)}
        lake = {"type": "jdbc", "uri": f"jdbc:sqlite:{tmp_path}/catalog.db", "warehouse": f"s3://{bucket}/lake"}
        conf = {"spark.executor.memory": "512m", "spark.driver.host": "127.0.0.1"}
        sources = tmp_path / "sources"
        sources.mkdir()

        def cdc(command: str, code: int = 0, **more: str) -> str:
            merge = {"spark_master": cluster.url, "driver_memory": "1g", "conf": {**conf, **more}}
            document = source_settings(
                mysql_server,
                [f"{mysql_database}.*"],
                tmp_path,
                store=store,
                lake=lake,
                merge=merge,
                verify={"wait": "0s"},
            )
            (sources / "shop.yaml").write_text(yaml.safe_dump(document))
            program = [sys.executable, "-m", "cdc_lib.cli", "--sources", str(sources), *command.split()]
            done = subprocess.run(program, capture_output=True, text=True, timeout=600, check=False)
            assert done.returncode == code, f"{command}\n{done.stdout}\n{done.stderr}"
            return done.stdout

        cdc("run shop")
        assert '"clean": true' in cdc("verify shop --spark --json")
        # Java uses the last value: executors look for a trust store that they do not have.
        without = {"spark.executor.extraJavaOptions": "-Djavax.net.ssl.trustStore=missing.p12"}
        text = cdc("doctor shop --spark --json", 1, **without)
        assert "the executor on 127.0.0.1 could not" in text
        assert "the certificate of the server is not trusted there" in text


def test_a_cluster_with_a_secret_knows_its_own_processes(
    mysql_server: MySqlServer,
    mysql_database: str,
    s3_server: S3Server,
    bucket: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As `docker-compose.yml` has it: a run merges, a worker with another secret is not taken, and no command line shows the secret."""
    monkeypatch.setenv("CDC_PASSWORD", mysql_server.cdc_password)
    monkeypatch.setenv("TEST_KEY", s3_server.access_key)
    monkeypatch.setenv("TEST_SECRET", s3_server.secret_key)
    secret = secrets.token_hex(16)
    store = {"url": f"s3://{bucket}/batches", "endpoint_url": s3_server.endpoint, "region": s3_server.region}
    store |= {"access_key_env": "TEST_KEY", "secret_key_env": "TEST_SECRET"}
    lake = {"type": "jdbc", "uri": f"jdbc:sqlite:{tmp_path}/cat.db", "warehouse": f"s3://{bucket}/lake"}
    with SparkCluster(tmp_path / "cluster", 1, secret) as cluster:
        monkeypatch.setenv("_SPARK_AUTH_SECRET", secret)
        small = ("spark.executor.memory=512m", "spark.driver.host=127.0.0.1")
        options = ("--master", cluster.url, *(word for one in small for word in ("--conf", one)))
        with RunningSparkServer(tmp_path, *options) as spark:
            source = Source(mysql_server, mysql_database, tmp_path, spark, settings={"store": store, "lake": lake})
            source.cdc("run shop")
            assert source.verified()["clean"]
            assert cluster.executors()
            lines = [file.read_bytes() for file in Path("/proc").glob("[0-9]*/cmdline") if file.exists()]
            assert any(b"CoarseGrainedExecutorBackend" in line for line in lines)
            assert not any(secret.encode() in line for line in lines)
        cluster.secret = "another"
        cluster.start_worker(1)
        cluster.processes[-1].wait_until_ready(lambda: "sasl" in (cluster.folder / "worker-1.log").read_text().lower())
        cluster.wait_for_workers(1)
