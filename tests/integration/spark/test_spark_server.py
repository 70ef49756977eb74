"""The Spark server: real jobs of real sources, over its own interface and by the commands of people."""

from __future__ import annotations

import asyncio
import importlib
import json
import os
import re
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml

from cdc_airflow import server_job
from cdc_airflow.airflow_versions import TaskDeferred
from cdc_airflow.links import SparkUiLink
from cdc_airflow.operators.backfill import BackfillOperator
from cdc_airflow.operators.maintenance import MaintainOperator
from cdc_airflow.operators.merge import MergeOperator
from cdc_airflow.operators.verify import VerifyOperator
from cdc_airflow.server_job import SparkJobTrigger
from cdc_airflow.spark_connections import SparkServerConnectionHook
from cdc_lib.config import load_source
from cdc_lib.config.work import SparkServerConfig
from cdc_lib.doctor import visit
from cdc_lib.errors import ConfigError, MergeConflict, SparkUnavailable
from cdc_lib.jobs.client import SparkServer, job_request, raise_for
from tests.harness.servers import MySqlServer, S3Server
from tests.harness.servers.process import ServerProcess, free_port
from tests.harness.servers.rest_catalog import RestCatalogServer
from tests.harness.shop.seeded import source_settings
from tests.harness.shop.source import command_line
from tests.harness.spark.served_source import Source
from tests.harness.spark.server import RunningSparkServer


@pytest.fixture(scope="module")
def spark_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningSparkServer]:
    pages = ("--conf", "spark.ui.enabled=true", "--conf", f"spark.ui.port={free_port()}")
    with RunningSparkServer(tmp_path_factory.mktemp("server"), "--slots", "2", *pages, token="t0ken") as server:
        yield server


@pytest.fixture(autouse=True)
def _secrets(monkeypatch: pytest.MonkeyPatch, mysql_server: MySqlServer) -> None:
    monkeypatch.setenv("CDC_PASSWORD", mysql_server.cdc_password)
    monkeypatch.setenv("CDC_TEST_SPARK_TOKEN", "t0ken")


@pytest.fixture
def source(mysql_server: MySqlServer, mysql_database: str, tmp_path: Path, spark_server: RunningSparkServer) -> Source:
    return Source(mysql_server, mysql_database, tmp_path, spark_server)


def test_the_commands_of_people_run_their_jobs_on_the_server(source: Source, monkeypatch: pytest.MonkeyPatch) -> None:
    """Merge, verify, maintain and backfill; what a job prints is the output of the command."""
    assert "cut " in source.cdc("run shop")
    source.execute("DELETE FROM orders WHERE id = 1")
    source.execute("UPDATE orders SET v = 'new' WHERE id = 2")
    source.cdc("run shop")
    found = source.verified()
    assert (found["clean"], found["tables"][0]["source_rows"]) == (True, 2)
    assert "files became" in source.cdc("lake maintain shop")
    assert source.database in source.cdc("backfill shop")
    listed = json.loads(source.cdc("spark jobs shop --json"))
    assert {"merge", "verify", "maintain", "backfill"} <= {job["job"] for job in listed if job["state"] == "ended"}
    assert {(job["source"], job["exit_code"], job["error"]) for job in listed} >= {("shop", 0, "")}
    assert "maintain" in source.cdc("spark jobs shop")
    monkeypatch.delenv("CDC_PASSWORD")  # the pods of these have no password of the source
    assert "files became" in source.cdc("lake maintain shop")
    source.cdc("batches gc shop --yes")


@pytest.fixture
def on_server(s3_server: S3Server, bucket: str, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What a source file has under ``store`` to have its batches on the S3 server."""
    monkeypatch.setenv("TEST_KEY", s3_server.access_key)
    monkeypatch.setenv("TEST_SECRET", s3_server.secret_key)
    store = {"url": f"s3://{bucket}/batches", "endpoint_url": s3_server.endpoint, "region": s3_server.region}
    return store | {"access_key_env": "TEST_KEY", "secret_key_env": "TEST_SECRET"}


def test_a_lake_in_a_rest_catalog_is_merged_maintained_verified_and_read(
    mysql_server: MySqlServer,
    mysql_database: str,
    spark_server: RunningSparkServer,
    s3_server: S3Server,
    on_server: dict[str, Any],
    tmp_path: Path,
) -> None:
    """Only the catalog knows the bucket: the keys and the server of S3 are those of the store. A table with history has a view."""
    with RestCatalogServer.on_s3(s3_server) as catalog:
        settings = {
            "store": on_server,
            "lake": {"type": "rest", "uri": catalog.url, "warehouse": "shop"},
            "modes": [{"tables": f"{mysql_database}.kept", "mode": "scd2"}],
        }
        source = Source(mysql_server, mysql_database, tmp_path / "source", spark_server, settings=settings)
        source.execute("CREATE TABLE kept (id INT PRIMARY KEY, v VARCHAR(20))")
        source.execute("INSERT INTO kept VALUES (1, 'a'), (2, 'b')")
        source.cdc("run shop")
        source.execute("ALTER TABLE orders ADD COLUMN n INT, RENAME COLUMN v TO renamed")
        source.execute("UPDATE orders SET n = id, renamed = 'new' WHERE id < 3")
        source.execute("DELETE FROM orders WHERE id = 1")
        source.execute("UPDATE kept SET v = 'changed' WHERE id = 1")
        source.cdc("run shop")
        assert "files became" in source.cdc("lake maintain shop")
        source.execute("INSERT INTO orders VALUES (7, 'last', 7)")
        source.cdc("run shop")
        assert source.verified()["clean"]
        assert json.loads(source.cdc(f"get shop {mysql_database}.orders 7 --json"))["renamed"] == "last"
        assert "changed" in source.cdc(f"get shop {mysql_database}.kept 1 --versions")
        assert f"{mysql_database}.orders" in source.cdc("lake tables shop")
        assert "executors write and read tables" in source.cdc("doctor shop --spark --json")


def test_keys_that_a_rest_catalog_gives_for_a_table_come_before_those_of_the_store(
    mysql_server: MySqlServer,
    mysql_database: str,
    spark_server: RunningSparkServer,
    on_server: dict[str, Any],
    tmp_path: Path,
) -> None:
    """The lake is on another S3 server than the batches, and the source file has no keys of it."""
    with S3Server() as other, RestCatalogServer.on_s3(other, gives_keys=True) as catalog:
        server = {"s3.endpoint": other.endpoint, "s3.path-style-access": "true"}
        for name, warehouse in (("by_name", "shop"), ("by_address", catalog.warehouse)):
            lake = {"type": "rest", "uri": catalog.url, "warehouse": warehouse, "namespace": f"{name}_{{database}}"}
            store = {**on_server, "url": f"{on_server['url']}/{name}"}
            settings = {"store": store, "lake": {**lake, "properties": server}}
            source = Source(mysql_server, mysql_database, tmp_path / name, spark_server, settings=settings)
            source.cdc("run shop")
            assert source.verified()["clean"]
            assert json.loads(source.cdc(f"get shop {mysql_database}.orders 3 --json"))["v"] == "c"


def test_sources_with_other_keys_use_a_bucket_of_the_same_name_each_with_its_own(
    mysql_server: MySqlServer,
    mysql_database: str,
    spark_server: RunningSparkServer,
    s3_server: S3Server,
    bucket: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Two S3 servers, in turns: a file system that Java opened with the keys of the first would read the other's batches there."""
    with S3Server() as other:
        other.client().create_bucket(Bucket=bucket)
        sources = {}
        for name, server in (("ONE", s3_server), ("TWO", other)):
            monkeypatch.setenv(f"{name}_KEY", server.access_key)
            monkeypatch.setenv(f"{name}_SECRET", server.secret_key)
            store = {"url": f"s3://{bucket}/{name}", "endpoint_url": server.endpoint, "region": server.region}
            store |= {"access_key_env": f"{name}_KEY", "secret_key_env": f"{name}_SECRET"}
            lake = {"type": "jdbc", "uri": f"jdbc:sqlite:{tmp_path}/{name}.db", "warehouse": f"s3://{bucket}/{name}"}
            settings = {"store": store, "lake": lake}
            sources[name] = Source(mysql_server, mysql_database, tmp_path / name, spark_server, settings=settings)
        for number in (10, 20):
            for source in sources.values():
                source.execute(f"INSERT INTO orders VALUES ({number}, 'new') ON DUPLICATE KEY UPDATE v = 'newer'")
                source.cdc("run shop")
                assert source.verified()["clean"]
        for name, server in (("ONE", s3_server), ("TWO", other)):
            keys = [one["Key"] for one in server.client().list_objects_v2(Bucket=bucket)["Contents"]]
            assert {key.partition("/")[0] for key in keys} == {name}


def test_the_error_of_a_job_is_that_of_the_command(source: Source) -> None:
    """With its class, which decides the exit status, and its hint; the list of jobs has it too."""
    source.cdc("run shop")
    text = source.cdc(f"lake maintain shop {source.database}.nothing", code=2)
    assert "the lake has nothing of" in text
    assert json.loads(source.cdc("spark jobs shop --json"))[-1]["error"].startswith("the lake has nothing of")
    assert f"It has {source.database}.orders" in text


def test_a_value_is_expanded_where_its_file_is_read_and_not_by_the_server(
    mysql_server: MySqlServer, mysql_database: str, tmp_path: Path, spark_server: RunningSparkServer
) -> None:
    """A literal ``${HOME}`` of a filter stays one: it decides which rows the lake has."""
    filters = {"filters": [{"tables": "*.orders", "where": "v <> '$${HOME}'"}]}
    source = Source(mysql_server, mysql_database, tmp_path, spark_server, filters)
    mysql_server.execute("INSERT INTO orders VALUES (4, '${HOME}'), (5, %s)", [os.environ["HOME"]], mysql_database)
    source.cdc("run shop")
    rows = json.loads(source.cdc(f"scan shop {mysql_database}.orders --json"))
    assert [row["v"] for row in rows] == ["a", "b", "c", os.environ["HOME"]]


def test_a_job_gets_no_variable_of_the_server_as_a_password(source: Source, spark_server: RunningSparkServer) -> None:
    """Who holds the token could send it to a server of his own."""
    source.cdc("run shop")
    request = job_request(load_source(source.file), "verify", "--wait=0s", key="a thief", report=True)
    server = {**request.config["server"], "password_env": "PATH"}
    sent = request.model_copy(update={"config": {**request.config, "server": server}, "secrets": {}})
    with pytest.raises(ConfigError, match="the environment variable PATH is not set"):
        raise_for(spark_server.client.follow(spark_server.client.submit(sent), print))


def test_what_is_wrong_with_the_values_that_were_sent_is_named(
    source: Source, spark_server: RunningSparkServer
) -> None:
    """And no value, which can come from a variable."""
    request = job_request(load_source(source.file), "merge", key="another version")
    sent = request.model_copy(update={"config": {**request.config, "tables": "s3cret", "more": 1}})
    with pytest.raises(
        ConfigError, match=r"2 things are wrong with the source shop:(?s:.*)more(?s:.*)tables"
    ) as caught:
        raise_for(spark_server.client.follow(spark_server.client.submit(sent), print))
    assert "s3cret" not in str(caught.value)


def test_two_sources_with_the_same_catalog_name_see_their_own_tables(
    source: Source, mysql_server: MySqlServer, spark_server: RunningSparkServer, tmp_path: Path
) -> None:
    """Settings belong to the session of a job: also those that Spark keeps under one name for both."""
    other = Source(
        mysql_server, source.database, tmp_path / "other", spark_server, conf={"spark.sql.shuffle.partitions": "1"}
    )
    for one in (source, other):
        one.cdc("run shop")
    source.execute("INSERT INTO orders VALUES (4, 'd')")
    source.cdc("run shop")
    assert (
        json.loads(other.cdc("status shop --json"))[0]["lake"]
        != json.loads(source.cdc("status shop --json"))[0]["lake"]
    )
    other.cdc("run shop")
    for one in (source, other):
        assert one.verified()["clean"]


def test_a_setting_that_only_the_servers_start_can_have_is_refused(
    mysql_server: MySqlServer, mysql_database: str, spark_server: RunningSparkServer, tmp_path: Path
) -> None:
    """By its name, with what to do; the lake cursor does not move."""
    source = Source(mysql_server, mysql_database, tmp_path, spark_server, conf={"spark.executor.memory": "9g"})
    text = source.cdc("run shop", code=2)
    assert "cannot change spark.executor.memory while it runs" in text
    assert "cdc spark serve --conf spark.executor.memory=9g" in " ".join(text.split())
    source.file.write_text(
        source.file.read_text().replace("spark.executor.memory: 9g", "spark.sql.shuffle.partitions: '3'")
    )
    source.cdc("run shop")
    assert source.verified()["clean"]


def test_a_request_that_is_sent_again_gets_the_same_job(source: Source, spark_server: RunningSparkServer) -> None:
    """The answer to the first one may have been lost; another work under the same key ends the job before it starts."""
    client, config = spark_server.client, load_source(source.file)
    waiting = [
        client.submit(job_request(config, "verify", "--wait=600s", key=f"busy {number}", report=True))
        for number in range(2)
    ]  # both slots
    request = job_request(config, "merge", key="one")
    first = client.submit(request)
    assert client.submit(request).id == first.id
    assert client.submit(job_request(config, "merge", key="one", by="the next try")).id == first.id
    changed = client.submit(job_request(config, "merge", "--spark-conf=spark.sql.shuffle.partitions=2", key="one"))
    assert changed.id != first.id
    for job in waiting:
        client.cancel(job.id)
    ended = client.follow(client.job(first.id), print)
    assert ended.state == "cancelled"
    with pytest.raises(MergeConflict, match="was cancelled"):
        raise_for(ended)
    assert raise_for(client.follow(client.job(changed.id), print)) == 0


def test_a_request_without_the_token_is_refused(spark_server: RunningSparkServer) -> None:
    """With the setting that names the token; the answer has nothing of the jobs."""
    with pytest.raises(ConfigError, match=r"token is missing or wrong") as caught:
        SparkServer(spark_server.config.model_copy(update={"token_env": None})).jobs()
    assert "merge.spark_server.token_env" in caught.value.hint


def test_a_server_without_a_token_of_its_own_makes_one(tmp_path: Path) -> None:
    """Every user of the machine reaches its address, and only who reads its output has the token."""
    port = free_port()
    options = ["--port", str(port), "--master", "local[1]", "--driver-memory", "1g"]
    command = [sys.executable, "-m", "cdc_lib.cli", "spark", "serve", *options]
    server = ServerProcess("the Spark server", command, tmp_path / "log")
    config = SparkServerConfig(url=f"http://127.0.0.1:{port}", token_env="PRINTED")
    printed: list[str] = []

    def answers() -> bool:
        printed[:] = re.findall(r"clients send the token (\S+);", (tmp_path / "log").read_text())
        try:
            return bool(printed) and SparkServer(config, {"PRINTED": printed[0]}).jobs() == []
        except SparkUnavailable:
            return False

    try:
        server.wait_until_ready(answers)
        with pytest.raises(ConfigError, match="token is missing or wrong"):
            SparkServer(SparkServerConfig(url=config.url)).jobs()
    finally:
        server.stop()


def test_neither_java_nor_jobs_get_the_token(source: Source, spark_server: RunningSparkServer) -> None:
    """Not by the variable of ``--token-env`` either."""
    source.cdc("run shop")
    assert spark_server.process is not None
    threads = Path(f"/proc/{spark_server.process.pid}/task").glob("*/children")
    children = [child for thread in threads for child in thread.read_text().split()]
    assert len(children) > 1  # Java, and the process that jobs are forked from
    for child in children:
        assert b"t0ken" not in Path(f"/proc/{child}/environ").read_bytes()


def test_doctor_asks_the_server_instead_of_looking_for_java(source: Source, monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine that sends jobs to a server needs no Java; a wrong token is one finding."""
    monkeypatch.setenv("JAVA_HOME", "/nowhere")
    text = source.cdc("doctor shop")
    assert "the Spark server at http://127.0.0.1" in text
    assert "Java" not in text
    monkeypatch.setenv("CDC_TEST_SPARK_TOKEN", "another")
    assert "token is missing or wrong" in source.cdc("doctor shop", code=1)


@pytest.fixture
def on_s3(
    mysql_server: MySqlServer,
    mysql_database: str,
    tmp_path: Path,
    spark_server: RunningSparkServer,
    on_server: dict[str, Any],
    bucket: str,
    monkeypatch: pytest.MonkeyPatch,
) -> Callable[..., dict[str, list[str]]]:
    """Call the doctor, with its job in Spark, over a source whose store and lake are on S3; returns its findings by level."""
    monkeypatch.setattr(visit, "PATIENCE", 60.0)  # the machine may be busy
    lake = {"type": "jdbc", "uri": f"jdbc:sqlite:{tmp_path}/catalog.db", "warehouse": f"s3://{bucket}/lake"}
    written = source_settings(mysql_server, [f"{mysql_database}.*"], tmp_path, store=on_server)
    mysql_server.execute("CREATE TABLE t (id INT PRIMARY KEY)", database=mysql_database)
    (tmp_path / "sources").mkdir()

    def found(conf: Mapping[str, str] | None = None, **changed: Any) -> dict[str, list[str]]:
        merge = {"spark_server": spark_server.config.model_dump(exclude_none=True), "conf": dict(conf or {})}
        document = {**written, "lake": {**lake, **changed}, "merge": merge}
        (tmp_path / "sources" / "shop.yaml").write_text(yaml.safe_dump(document))
        text = command_line(tmp_path / "sources", "cdc doctor shop --spark --json", 1 if conf or changed else 0)
        lines = json.loads(text[text.index("[") :])
        return {level: [line["what"] for line in lines if line["level"] == level] for level in ("ok", "error")}

    return found


def test_doctor_runs_a_job_that_reads_and_writes_as_a_merge_does(
    on_s3: Callable[..., dict[str, list[str]]], s3_server: S3Server, bucket: str
) -> None:
    """Nothing of it remains in the bucket or in the catalog."""
    found = on_s3()
    assert found["error"] == []
    assert [what for what in found["ok"] if what.startswith("Spark 4.1")]
    assert f"Spark's executors read the store s3://{bucket}/batches" in found["ok"]
    assert f"Spark's executors write and read tables in the warehouse s3://{bucket}/lake" in found["ok"]
    left = s3_server.client().list_objects_v2(Bucket=bucket).get("Contents", [])
    assert [one["Key"] for one in left if "probe" in one["Key"]] == []


def test_doctor_names_within_seconds_what_spark_lacks(on_s3: Callable[..., dict[str, list[str]]]) -> None:
    """A key, an endpoint, a bucket, a way to the store: each is one finding, and the rest is still checked."""
    nobody = f"http://127.0.0.1:{free_port()}"
    wrong_key = {"s3.access-key-id": "nobody", "s3.secret-access-key": "nothing"}
    proxy = {"fs.s3a.proxy.host": "127.0.0.1", "fs.s3a.proxy.port": str(free_port())}
    for changed, write, why in (
        ({"properties": wrong_key}, "write", "S3 does not accept the key"),
        ({"properties": {"s3.endpoint": nobody}}, "write", "cannot be reached"),
        ({"warehouse": "s3://nothing-here/lake"}, "write", "there is no such bucket"),
        ({"conf": proxy}, "read the store", "cannot be reached"),
    ):
        began = time.monotonic()
        (what,) = [one for one in on_s3(**changed)["error"] if one.startswith(("the driver could", "the executor on"))]
        assert time.monotonic() - began < 120, what
        assert why in what, what
        assert write in what or "create a table" in what, what


def test_an_address_of_something_else_is_refused(s3_server: S3Server) -> None:
    """An S3 server answers all sorts of requests, none of them as a Spark server."""
    with pytest.raises(ConfigError):
        SparkServer(SparkServerConfig(url=s3_server.endpoint)).status()


def test_a_server_that_is_killed_and_started_again_loses_nothing(
    mysql_server: MySqlServer, mysql_database: str, tmp_path: Path
) -> None:
    """Its jobs end with it, also in Java; the next try merges the same."""
    with RunningSparkServer(tmp_path, token="t0ken") as server:
        source = Source(mysql_server, mysql_database, tmp_path, server)
        source.cdc("run shop")
        source.execute("INSERT INTO orders VALUES (4, 'd')")
        for step in ("plan", "drain", "ack drain"):
            source.cdc(f"step {step} shop")
        client = server.client
        job = client.submit(job_request(load_source(source.file), "merge", key="one"))
        assert job.spark_ui is None  # this server has no pages
        server.kill()
        with pytest.raises(SparkUnavailable, match="does not answer"):
            client.follow(job, print)
        server.start()
        with pytest.raises(SparkUnavailable, match="does not know the job") as caught:
            client.job(job.id)
        assert caught.value.retryable
        source.cdc("run shop")
        assert source.verified()["clean"]


def test_a_cancelled_job_leaves_the_server_and_other_jobs_alone(
    source: Source, spark_server: RunningSparkServer
) -> None:
    """Its error is one that may be tried again, and its slot is free."""
    source.cdc("run shop")
    source.execute("UPDATE orders SET v = 'x'")
    client, config = spark_server.client, load_source(source.file)
    job = client.submit(job_request(config, "verify", "--wait=600s", key="killed", report=True))
    while client.job(job.id).state != "running":
        time.sleep(0.05)
    client.cancel(job.id)
    assert client.follow(client.job(job.id), print).state == "cancelled"
    source.cdc("run shop")
    assert source.verified()["clean"]
    assert client.status().running == 0


class TaskInstance(SimpleNamespace):
    """What a task knows of itself."""

    def __init__(self, number: int = 1) -> None:
        super().__init__(
            dag_id="cdc_shop", run_id="r1", task_id="merge", map_index=-1, try_number=number, xcom_pull=lambda **_: None
        )
        self.pushed: dict[str, str | None] = {}

    def xcom_push(self, key: str, value: str) -> None:
        """Keep a value."""
        self.pushed[key] = value


def page(address: str) -> str:
    with urllib.request.urlopen(address, timeout=60) as answer:  # noqa: S310 - the server's own address
        text: str = answer.read().decode()
    return text


def ended_by(trigger: SparkJobTrigger) -> dict[str, Any]:
    """Do what a triggerer does with a task that is deferred; it may be another triggerer than the one that began."""
    path, given = trigger.serialize()
    again = getattr(importlib.import_module(path.rpartition(".")[0]), path.rpartition(".")[2])(**given)

    async def wait() -> dict[str, Any]:
        async for event in again.run():
            payload: dict[str, Any] = event.payload
            return payload
        raise AssertionError("no event")

    return asyncio.run(wait())


def test_a_task_whose_job_takes_longer_is_deferred_and_continues_with_its_result(
    source: Source, spark_server: RunningSparkServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A merge, and a comparison, which needs the job's report; and a backfill, whose report OpenLineage needs."""
    monkeypatch.setattr(server_job, "SOON", 0.0)
    for step in ("plan", "drain", "ack drain"):
        source.cdc(f"step {step} shop")
    context: Any = {"ti": TaskInstance()}
    merge = MergeOperator(task_id="merge", source_file=str(source.file))
    with pytest.raises(TaskDeferred) as deferred:
        merge.execute(context)
    assert (deferred.value.method_name, deferred.value.kwargs["good"]) == ("resume", [0])
    assert context["ti"].pushed[SparkUiLink().xcom_key] == merge.spark_ui  # before the job has ended
    again = MergeOperator(task_id="merge", source_file=str(source.file))
    again.resume(context, ended_by(deferred.value.trigger), **deferred.value.kwargs)
    assert again.spark_ui == merge.spark_ui
    application = f"/api/v1/applications/{spark_server.client.status().application}"
    parts = ("/environment/", "/SQL/", f"{application}/environment", f"{application}/sql?details=true")
    shown = "".join(page(f"{again.spark_ui}{part}") for part in parts)
    assert "spark.ui.enabled" in shown
    for secret in (source.server.cdc_password, "t0ken"):
        assert secret not in shown
    source.cdc("step ack lake shop")
    verify = VerifyOperator(task_id="verify", source_file=str(source.file))
    with pytest.raises(TaskDeferred) as deferred:
        verify.execute(context)
    found = verify.resume(context, ended_by(deferred.value.trigger), **deferred.value.kwargs)
    assert found[f"{source.database}.orders"]["rows"] == 3
    backfill = BackfillOperator(task_id="backfill", source_file=str(source.file), into="copy")
    with pytest.raises(TaskDeferred) as deferred:
        backfill.execute({**context, "dag_run": SimpleNamespace(data_interval_start=None, data_interval_end=None)})
    backfill.resume(context, ended_by(deferred.value.trigger), **deferred.value.kwargs)
    lineage = backfill.get_openlineage_facets_on_complete(None)
    assert [one.name.rpartition("/batches/")[2] for one in lineage.inputs] == [f"{source.database}.orders"]
    assert [one.outputFacets["outputStatistics"].rowCount for one in lineage.outputs] == [3]
    assert lineage.outputs[0].name.endswith(f"/{source.database}/orders__backfill")


def test_a_task_that_is_tried_again_takes_up_the_job_of_its_last_try(
    source: Source, spark_server: RunningSparkServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its worker was killed: the job goes on. When a person ends the task, the job ends."""
    source.cdc("run shop")
    monkeypatch.setattr(server_job, "SOON", 0.0)
    tries = []
    for number in (1, 2):
        verify = VerifyOperator(task_id="verify", source_file=str(source.file))
        with pytest.raises(TaskDeferred) as deferred:
            verify.execute({"ti": TaskInstance(number)})
        tries.append(deferred.value.trigger.job_id)
    assert tries[0] == tries[1]
    asyncio.run(deferred.value.trigger.on_kill())
    client = spark_server.client
    assert client.follow(client.job(tries[0]), print).state == "cancelled"
    with pytest.raises(MergeConflict, match="was cancelled") as caught:
        verify.resume({"ti": TaskInstance()}, ended_by(deferred.value.trigger), **deferred.value.kwargs)
    assert caught.value.retryable


def test_tasks_run_on_the_server_of_their_connection(
    mysql_server: MySqlServer,
    mysql_database: str,
    tmp_path: Path,
    spark_server: RunningSparkServer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The triggerer asks it too. The file names a server that is not there, and no variable has the token."""
    nowhere = {"url": f"http://127.0.0.1:{free_port()}"}
    source = Source(mysql_server, mysql_database, tmp_path, spark_server, spark_server=nowhere)
    monkeypatch.delenv("CDC_TEST_SPARK_TOKEN")
    connect(monkeypatch, conn_type="cdc_spark", host="127.0.0.1", port=spark_server.port, password="t0ken")
    for step in ("plan", "drain", "ack drain"):
        source.cdc(f"step {step} shop")
    before = {job.id for job in spark_server.client.jobs()}
    given: dict[str, Any] = {"source_file": str(source.file), "spark_conn_id": CONNECTION}
    context: Any = {"ti": TaskInstance(), "dag_run": SimpleNamespace(data_interval_start=None, data_interval_end=None)}
    monkeypatch.setattr(server_job, "SOON", 0.0)
    with pytest.raises(TaskDeferred) as deferred:
        MergeOperator(task_id="merge", **given).execute(context)
    event = ended_by(deferred.value.trigger)
    assert event["offset"] > deferred.value.trigger.offset == 0  # it has read what the job printed
    MergeOperator(task_id="merge", **given).resume(context, event, **deferred.value.kwargs)
    source.cdc("step ack lake shop")
    given["deferrable"] = False
    VerifyOperator(task_id="verify", **given).execute(context)
    MaintainOperator(task_id="maintain", **given).execute(context)
    BackfillOperator(task_id="backfill", into="copy", **given).execute(context)
    ran = [(job.job, job.exit_code) for job in spark_server.client.jobs() if job.id not in before]
    assert ran == [("merge", 0), ("verify", 0), ("maintain", 0), ("backfill", 0)]


def test_a_task_starts_its_spark_on_the_master_of_its_connection(
    mysql_server: MySqlServer,
    mysql_database: str,
    tmp_path: Path,
    spark_server: RunningSparkServer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Over the server and the master of the file: the events of the merge say where it ran."""
    events = tmp_path / "events"
    events.mkdir()
    log = {"enabled": "true", "dir": events.as_uri(), "compress": "false"}
    merge = {"driver_memory": "1g", "conf": {f"spark.eventLog.{name}": value for name, value in log.items()}}
    source = Source(mysql_server, mysql_database, tmp_path, spark_server, spark_master="local[2]", **merge)
    connect(monkeypatch, conn_type="spark", host="local[3]")
    for step in ("plan", "drain", "ack drain"):
        source.cdc(f"step {step} shop")
    MergeOperator(task_id="merge", source_file=str(source.file), spark_conn_id=CONNECTION).execute(
        {"ti": TaskInstance()}
    )
    source.cdc("step ack lake shop")
    assert '"spark.master":"local[3]"' in "".join(one.read_text() for one in events.rglob("*") if one.is_file())


def test_the_test_button_of_a_connection_asks_the_server(
    spark_server: RunningSparkServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No token is in an answer; one that is wrong is refused."""
    server = {"conn_type": "cdc_spark", "host": "http://127.0.0.1", "port": spark_server.port}
    connect(monkeypatch, **server, password="t0ken")
    good, message = SparkServerConnectionHook(CONNECTION).test_connection()
    assert (good, message.startswith(f"ok: the Spark server at {spark_server.client.url} has Spark ")) == (True, True)
    connect(monkeypatch, **server, password="an0ther")
    good, message = SparkServerConnectionHook(CONNECTION).test_connection()
    assert (good, message.startswith("error: the Spark server refuses the request")) == (False, True)
    assert "an0ther" not in message


CONNECTION = "other_spark"


def connect(monkeypatch: pytest.MonkeyPatch, **connection: Any) -> None:
    """Make the connection of Airflow."""
    monkeypatch.setenv(f"AIRFLOW_CONN_{CONNECTION.upper()}", json.dumps(connection))


def test_a_task_with_a_quick_job_is_not_deferred(source: Source) -> None:
    """Its job is over before a triggerer had begun to wait."""
    for step in ("plan", "drain", "ack drain"):
        source.cdc(f"step {step} shop")
    MergeOperator(task_id="merge", source_file=str(source.file)).execute({"ti": TaskInstance()})
    source.cdc("step ack lake shop")
    assert source.verified()["clean"]
