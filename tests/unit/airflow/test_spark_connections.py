"""Which Spark an Airflow connection names."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from cdc_airflow import spark_connections
from cdc_airflow.hooks import CdcHook
from cdc_airflow.operators import AckLakeOperator, BackfillOperator, MaintainOperator, MergeOperator, VerifyOperator
from cdc_airflow.server_job import SparkJobTrigger, server_of
from cdc_airflow.spark_connections import SparkServerConnectionHook
from cdc_lib.config import load_source
from cdc_lib.errors import ConfigError
from spark_jobs.job import arguments_of, with_spark_master

TOKEN = "t0ken-of-a-connection"


@pytest.fixture
def masked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What Airflow was asked to hide."""
    found: list[str] = []
    monkeypatch.setattr(spark_connections, "mask_secret", found.append)
    return found


@pytest.fixture
def connect(monkeypatch: pytest.MonkeyPatch):
    """Makes the connection ``other_spark``, of JSON or an address."""

    def make(given: dict[str, Any] | str) -> str:
        text = given if isinstance(given, str) else json.dumps(given)
        monkeypatch.setenv("AIRFLOW_CONN_OTHER_SPARK", text)
        return "other_spark"

    return make


@pytest.mark.parametrize(
    ("connection", "url"),
    [
        ({"conn_type": "cdc_spark", "host": "spark.internal", "port": 8998}, "http://spark.internal:8998"),
        ({"conn_type": "cdc_spark", "host": "https://spark.internal/"}, "https://spark.internal"),
        ({"conn_type": "http", "host": "https://spark.internal", "port": 444}, "https://spark.internal:444"),
        ({"conn_type": "http", "host": "spark.internal", "schema": "https"}, "https://spark.internal"),
        (f"http://:{TOKEN}@spark.internal:8998", "http://spark.internal:8998"),
        (f"https://:{TOKEN}@spark.internal", "https://spark.internal"),
        (f"cdc-spark://:{TOKEN}@spark.internal:8998/https", "https://spark.internal:8998"),
    ],
)
def test_a_connection_names_a_spark_server_and_its_token(
    sources: Path, connect, masked: list[str], connection: dict[str, Any] | str, url: str
):
    """Airflow hides the token, and no text of ours has it; the environment neither."""
    given = connection if isinstance(connection, str) else {**connection, "password": TOKEN}
    spark = CdcHook(sources / "shop.yaml", spark_conn_id=connect(given)).spark
    assert spark.server is not None
    assert (spark.server.url, spark.master) == (url, None)
    assert spark.environ[str(spark.server.token_env)] == TOKEN
    assert masked == [TOKEN]
    assert TOKEN not in repr(spark)
    assert spark.client() is not None


def test_a_server_without_a_token_gets_none(sources: Path, connect, monkeypatch: pytest.MonkeyPatch):
    """Not even the one that the environment has for the server of the file."""
    monkeypatch.setenv("CDC_SPARK_TOKEN", "of the file")
    spark = CdcHook(sources / "shop.yaml", spark_conn_id=connect({"conn_type": "cdc_spark", "host": "h"})).spark
    assert spark.server is not None
    assert (spark.server.token_env, spark.environ) == (None, {})


@pytest.mark.parametrize(
    ("host", "port", "master"),
    [
        ("spark://master", 7077, "spark://master:7077"),
        ("spark://one:7077,two:7077", None, "spark://one:7077,two:7077"),
        ("yarn", None, "yarn"),
        ("k8s://https://cluster", 6443, "k8s://https://cluster:6443"),
        ("local[*]", None, "local[*]"),
        ("local", None, "local"),
    ],
)
def test_a_connection_of_airflows_type_spark_names_a_master(
    sources: Path, connect, host: str, port: int | None, master: str
):
    """As Airflow's own operators read it; a Spark server of the file is then not used, nor the connection's password."""
    file = sources / "shop.yaml"
    file.write_text(file.read_text() + 'merge: {spark_server: {url: "http://127.0.0.1:1"}, connection: other_spark}\n')
    connect({"conn_type": "spark", "host": host, "port": port, "password": "of no use"})
    spark = CdcHook(file).spark
    assert (spark.server, spark.master, spark.client(), dict(spark.environ)) == (None, master, None, {})
    applied = spark.applied_to(load_source(file))
    assert (applied.merge.spark_server, applied.merge.spark_master) == (None, master)


@pytest.mark.parametrize(
    ("connection", "problem"),
    [
        ({"conn_type": "spark", "host": "sc://spark.internal", "port": 15002}, r"spark_master .*Spark Connect"),
        ({"conn_type": "spark", "host": "master", "port": 7077}, r"spark_master .*spark://host:port"),
        ({"conn_type": "spark", "host": "http://spark.internal"}, r"spark_master .*Spark server belongs in"),
        ({"conn_type": "spark", "host": "local[2"}, r"spark_master .*local\[N\]"),
        ({"conn_type": "spark", "host": "spark://a b", "port": 7077}, r"spark_master .*spark://host:port"),
        ({"conn_type": "spark_connect", "host": "sc://spark.internal"}, r"of the type spark_connect names no Spark"),
        ({"conn_type": "mysql", "host": "db"}, r"of the type mysql names no Spark"),
        ({"conn_type": "cdc_spark", "host": "sc://spark.internal"}, r"names no Spark server: sc://"),
        ({"conn_type": "http", "host": "h", "schema": "spark"}, r"names no Spark server: h"),
        ({"conn_type": "cdc_spark", "host": "spark.internal/path", "port": 1}, r"cannot be used: url"),
    ],
)
def test_any_other_connection_is_refused_by_its_name(sources: Path, connect, connection: dict[str, Any], problem: str):
    """No job starts somewhere else instead; the message says what a connection may be, and has no password."""
    conn_id = connect({**connection, "password": TOKEN})
    with pytest.raises(ConfigError, match=rf"the Airflow connection other_spark.*{problem}") as refused:
        _ = CdcHook(sources / "shop.yaml", spark_conn_id=conn_id).spark
    assert refused.value.hint
    assert TOKEN not in str(refused.value)


@pytest.mark.parametrize("kind", ["cdc_spark", "spark", "http"])
def test_a_connection_that_lacks_its_host_is_refused_by_its_name(sources: Path, connect, kind: str):
    """The same for one that is not there at all."""
    with pytest.raises(ConfigError, match=r"connection other_spark has no host.*Connections"):
        _ = CdcHook(sources / "shop.yaml", spark_conn_id=connect({"conn_type": kind})).spark
    with pytest.raises(ConfigError, match="there is no Airflow connection missing"):
        _ = CdcHook(sources / "shop.yaml", spark_conn_id="missing").spark


@pytest.mark.parametrize("kind", [MergeOperator, VerifyOperator, BackfillOperator, MaintainOperator, AckLakeOperator])
def test_the_connection_of_a_task_wins_over_the_file(
    sources: Path, connect, monkeypatch: pytest.MonkeyPatch, kind: type[MergeOperator]
):
    """Every operator takes it; templates may name it. The trigger hands on its id, and no token."""
    file = sources / "shop.yaml"
    file.write_text(file.read_text() + 'merge: {spark_server: {url: "http://127.0.0.1:1"}, connection: of_the_file}\n')
    monkeypatch.setenv("AIRFLOW_CONN_OF_THE_FILE", '{"conn_type": "spark", "host": "yarn"}')
    connect({"conn_type": "cdc_spark", "host": "spark.internal", "password": TOKEN})
    plain = kind(task_id="t", source_file=str(file))
    task = kind(task_id="t", source_file=str(file), spark_conn_id="other_spark")
    assert "spark_conn_id" in task.template_fields
    assert plain.hook().spark.master == "yarn"
    assert server_of(task.hook()).url == "http://spark.internal"
    path, given = SparkJobTrigger(str(file), "job", 7, task.spark_conn_id).serialize()
    assert given == {"source_file": str(file), "job_id": "job", "offset": 7, "spark_conn_id": "other_spark"}
    again = SparkJobTrigger(**given)
    assert path == f"{type(again).__module__}.{type(again).__qualname__}"
    with pytest.raises(ConfigError, match=r"no longer has the Spark server.*Clear the task"):
        server_of(plain.hook())


def test_a_job_takes_the_master_over_the_one_of_its_file(sources: Path):
    """By an option that every job has; a master is no secret."""
    config = load_source(sources / "shop.yaml")
    options = arguments_of("spark_jobs.merge", "").parse_args(["--config", "f", "--spark-master", "yarn"])
    assert with_spark_master(config, options.spark_master).merge.spark_master == "yarn"
    assert with_spark_master(config, None) == config


def test_the_test_button_says_that_a_server_does_not_answer(connect):
    """And what is wrong with the connection, without a stack trace."""
    hook = SparkServerConnectionHook("other_spark")
    connect({"conn_type": "cdc_spark", "host": "127.0.0.1", "port": 1, "password": TOKEN})
    good, message = hook.test_connection()
    assert (good, message.startswith("error: the Spark server does not answer")) == (False, True)
    connect({"conn_type": "cdc_spark", "password": TOKEN})
    assert hook.test_connection()[1].startswith("error: the Airflow connection other_spark has no host")
