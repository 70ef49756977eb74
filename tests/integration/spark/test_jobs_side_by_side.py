"""Merges of two sources that run at the same moment on one Spark server: what happens to one is not seen by the other.

A proxy before the S3 server holds a request of a merge. While it is held, the merge certainly runs.
"""

from __future__ import annotations

import io
import secrets
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from cdc_lib.config import load_source
from cdc_lib.errors import CdcError, ConfigError, CorruptBatch, MergeConflict
from cdc_lib.jobs.client import raise_for
from cdc_lib.jobs.request import JobStatus
from cdc_lib.lake.catalog import open_catalog
from tests.harness.network.holding_proxy import HoldingProxy
from tests.harness.servers import MySqlServer, S3Server
from tests.harness.servers.process import free_port
from tests.harness.spark.pages import SparkPages
from tests.harness.spark.served_source import Source
from tests.harness.spark.server import RunningSparkServer
from tests.harness.store.s3_accounts import Account, share_bucket

PORT = free_port()
WRITES = ("PUT", "/data/")
"""A task of Spark writes a file of a lake table."""


@pytest.fixture(scope="module")
def spark_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningSparkServer]:
    # A task that is held keeps its core.
    options = ("--master", "local[4]", "--conf", "spark.ui.enabled=true", "--conf", f"spark.ui.port={PORT}")
    with RunningSparkServer(tmp_path_factory.mktemp("server"), *options) as server:
        yield server


@pytest.fixture
def pages(spark_server: RunningSparkServer) -> SparkPages:
    return SparkPages(spark_server, PORT)


class SourceOnS3(Source):
    """A source with batches and lake in one folder of a bucket, and with a proxy of its own before the S3 server."""

    proxy: HoldingProxy
    bucket: str
    s3: S3Server

    def change(self, text: str) -> None:
        """Change, add and delete rows, and drain."""
        self.execute(f"UPDATE orders SET v = '{text}' WHERE id < 3")
        self.execute("DELETE FROM orders WHERE id = 3")
        self.execute(f"INSERT INTO orders SELECT 10 + COUNT(*) + MAX(id), '{text}' FROM orders")
        self.drain()

    def finish(self, job: JobStatus) -> None:
        """Wait for a merge, which must succeed, and compare the tables."""
        client = self.spark.client
        assert raise_for(client.follow(client.job(job.id), print)) == 0
        self.cdc("step ack lake shop")
        assert self.verified()["clean"]
        # No merge of another source came into this catalog.
        assert open_catalog(load_source(self.file)).list_namespaces() == [(self.database,)]


NewSource = Callable[..., SourceOnS3]


@pytest.fixture
def new_source(
    mysql_server: MySqlServer,
    spark_server: RunningSparkServer,
    s3_server: S3Server,
    bucket: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[NewSource]:
    """Make a source in a folder of the bucket, with the server's own keys unless an account is given; its lake has three rows."""
    monkeypatch.setenv("CDC_PASSWORD", mysql_server.cdc_password)
    with ExitStack() as stack:

        def new(
            folder: str, account: Account | None = None, lake: dict[str, Any] | None = None, **merge: Any
        ) -> SourceOnS3:
            key = account or Account(folder, s3_server.access_key, s3_server.secret_key)
            monkeypatch.setenv(f"KEY_{folder}", key.access_key)
            monkeypatch.setenv(f"SECRET_{folder}", key.secret_key)
            proxy = stack.enter_context(HoldingProxy(s3_server.endpoint))
            store = {"url": f"s3://{bucket}/{folder}/batches", "endpoint_url": proxy.url, "region": s3_server.region}
            store |= {"access_key_env": f"KEY_{folder}", "secret_key_env": f"SECRET_{folder}"}
            catalog = f"jdbc:sqlite:{tmp_path}/{folder}/catalog.db"
            settings: dict[str, Any] = {
                "store": store,
                "lake": {"type": "jdbc", "uri": catalog, "warehouse": f"s3://{bucket}/{folder}/lake", **(lake or {})},
            }
            database = f"{folder}_{secrets.token_hex(6)}"
            mysql_server.execute(f"CREATE DATABASE {database} CHARACTER SET utf8mb4")
            stack.callback(mysql_server.execute, f"DROP DATABASE {database}")
            source = SourceOnS3(mysql_server, database, tmp_path / folder, spark_server, settings=settings, **merge)
            source.proxy, source.bucket, source.s3 = proxy, bucket, s3_server
            source.cdc("run shop")
            return source

        yield new


def codecs(source: SourceOnS3, folder: str) -> set[str]:
    """Return how the data files of a lake are compressed."""
    s3 = source.s3.client()
    found = s3.list_objects_v2(Bucket=source.bucket, Prefix=f"{folder}/lake/")["Contents"]
    files = [
        s3.get_object(Bucket=source.bucket, Key=one["Key"])["Body"].read()
        for one in found
        if one["Key"].endswith(".parquet")
    ]
    assert files
    return {pq.ParquetFile(io.BytesIO(file)).metadata.row_group(0).column(0).compression for file in files}


def test_two_merges_run_at_once_each_with_the_settings_of_its_source(new_source: NewSource) -> None:
    """The server lists both as running; the files of each lake are written as its own merge.conf says."""
    setting = "spark.sql.iceberg.compression-codec"
    one, other = new_source("one", conf={setting: "gzip"}), new_source("other", conf={setting: "snappy"})
    one.change("of one")
    other.change("of the other")
    client = one.spark.client
    with one.proxy.holding(*WRITES), other.proxy.holding(*WRITES):
        jobs = {job.id: source for source in (one, other) for job in (source.start_merge(),)}
        for source in jobs.values():
            source.proxy.wait_until_held()
        assert {job.id for job in client.jobs() if job.state == "running"} == set(jobs)
        assert client.status().running == 2
    for job_id, source in jobs.items():
        source.finish(client.job(job_id))
    assert (codecs(one, "one"), codecs(other, "other")) == ({"GZIP"}, {"SNAPPY"})


def test_sources_that_share_a_bucket_read_and_write_with_their_own_keys(
    new_source: NewSource, s3_server: S3Server, bucket: str
) -> None:
    """Each account may use its own folder alone: the keys of the other one would be refused, in Python and in Spark."""
    accounts = share_bucket(s3_server, bucket, "one", "other")
    one, other = (new_source(account.folder, account) for account in accounts)
    for text in ("first", "second"):
        one.change(text)
        with one.proxy.holding(*WRITES):
            held = one.start_merge()
            one.proxy.wait_until_held()
            other.change(text)
            other.finish(other.start_merge())
        one.finish(held)
        assert "files became" in other.cdc("lake maintain shop")


def test_a_source_with_a_wrong_key_fails_alone(
    new_source: NewSource, spark_server: RunningSparkServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether the key of the batches or that of the lake is wrong: a merge that runs meanwhile succeeds, and so does the retry."""
    one, other = new_source("one"), new_source("other")
    one.change("of one")
    other.change("of the other")
    client = spark_server.client
    right, config = one.s3.secret_key, one.file.read_text()
    with other.proxy.holding(*WRITES):
        held = other.start_merge()
        other.proxy.wait_until_held()
        monkeypatch.setenv("SECRET_one", "wrong")
        with pytest.raises(ConfigError, match="SignatureDoesNotMatch"):
            raise_for(client.follow(one.start_merge(), print))
        monkeypatch.setenv("SECRET_one", right)
        one.file.write_text(config.replace("lake:\n", "lake:\n  properties: {s3.secret-access-key: wrong}\n"))
        with pytest.raises(CdcError, match="signature"):
            raise_for(client.follow(one.start_merge(), print))
        assert client.job(held.id).state == "running"
    other.finish(held)
    one.file.write_text(config)
    one.finish(one.start_merge())


@pytest.mark.parametrize("kept", [None, 0, 20])
@pytest.mark.parametrize("suffix", [".parquet", ".puffin"])
def test_a_damaged_file_of_a_bucket_is_named(new_source: NewSource, kept: int | None, suffix: str) -> None:
    """One that is lost, and one that has fewer bytes than were written; with its bytes the merge goes on."""
    source = new_source("one")
    source.execute(f"INSERT INTO orders VALUES {', '.join(f'({number}, 0)' for number in range(1000, 1020))}")
    for text in ("zero", "first"):
        source.change(text)
        source.finish(source.start_merge())
    s3, prefix = source.s3.client(), "one/lake/"
    found = s3.list_objects_v2(Bucket=source.bucket, Prefix=prefix)["Contents"]
    keys = [one["Key"] for one in found if one["Key"].endswith(suffix)]
    assert keys
    whole = {key: s3.get_object(Bucket=source.bucket, Key=key)["Body"].read() for key in keys}
    for key, data in whole.items():
        s3.delete_object(Bucket=source.bucket, Key=key)
        if kept is not None:
            s3.put_object(Bucket=source.bucket, Key=key, Body=data[:kept])
    source.change("second")
    with pytest.raises(CorruptBatch) as raised:
        raise_for(source.spark.client.follow(source.start_merge(), print))
    assert any(key.rpartition("/")[2] in raised.value.what for key in keys)
    assert f"cdc snapshot shop {source.database}.orders" in raised.value.hint
    for key, data in whole.items():
        s3.put_object(Bucket=source.bucket, Key=key, Body=data)
    source.finish(source.start_merge())


def killed(source: SourceOnS3, job: JobStatus) -> None:
    """Kill the process of a merge, and wait until the server knows it."""
    source.spark.kill_job(job.id)
    client = source.spark.client
    with pytest.raises(MergeConflict, match="signal 9 ended the job") as caught:
        raise_for(client.follow(client.job(job.id), print))
    assert caught.value.retryable


def test_a_merge_whose_process_is_killed_leaves_another_merge_alone(new_source: NewSource) -> None:
    """Both write when one is killed; its retry brings its table right while nothing of the first try is left."""
    one, other = new_source("one"), new_source("other")
    one.change("of one")
    other.change("of the other")
    with other.proxy.holding(*WRITES):
        survivor = other.start_merge()
        other.proxy.wait_until_held()
        with one.proxy.holding(*WRITES):
            victim = one.start_merge()
            one.proxy.wait_until_held()
            killed(one, victim)
        one.finish(one.start_merge())
        assert other.spark.client.job(survivor.id).state == "running"
    other.finish(survivor)


def test_a_merge_that_is_killed_while_java_plans_starts_no_work_afterwards(
    new_source: NewSource, pages: SparkPages
) -> None:
    """Spark has no job then that could be cancelled: Java's thread, which would go on with the statement, is interrupted."""
    source = new_source("one")
    source.change("new")
    with source.proxy.holding("GET", "-m0.avro"):
        job = source.start_merge()
        source.proxy.wait_until_held()
        assert job.id not in pages.tags_of_running_jobs()
        killed(source, job)
        before = pages.jobs_of(job.id)
    source.finish(source.start_merge())
    assert pages.jobs_of(job.id) == before
