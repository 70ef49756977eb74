"""No secret leaves the places that it was given to: a whole source with unique passwords and keys, and a search for each of them.

The log-in of the source, the keys of its store and the key of its hashes are in Airflow's connections. The source is drained, merged
in Spark with its pages and event logs on, verified, and fails once. Then every file, object, row of Airflow's database and answer is
searched, also for Airflow's own secrets.
"""

from __future__ import annotations

import secrets
import sqlite3
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from pathlib import Path

import httpx
import pytest

from tests.harness.airflow.source import AirflowSource
from tests.harness.airflow.standalone import AirflowStandalone
from tests.harness.processes.process_watch import ProcessWatch
from tests.harness.servers import MySqlServer
from tests.harness.servers.process import free_port

USER = "canary"
LOG_IN, KEYS, HASHES, WRONG = "canary_source", "canary_store", "canary_hashes", "canary_wrong"
PAGE = ("", "/windows", "/tables", "/cuts", "/moves", "/history", "/actions")
AIRFLOWS = {"session key": "AIRFLOW__API__SECRET_KEY", "token key": "AIRFLOW__API_AUTH__JWT_SECRET"}
"""Airflow's own secrets, by the variables that hold them."""
TABLES_OF_LOG_INS = {"connection", "log"}
"""Airflow's own tables in which the user of a connection is: an access key is one, and no secret key."""


@pytest.fixture
def canaries(
    station: AirflowStandalone, mysql_server: MySqlServer, s3_server, metrics_token: str
) -> Iterator[dict[str, str]]:
    """Secrets that are nowhere else, by name, in connections of Airflow."""
    found = {
        name: f"canary-{name.replace(' ', '-')}-{secrets.token_hex(12)}"
        for name in ("password", "wrong password", "hash key")
    }
    mysql_server.execute(f"CREATE USER {USER}@'%' IDENTIFIED BY '{found['password']}'")
    mysql_server.execute(f"GRANT {mysql_server.cdc_privileges} ON *.* TO {USER}@'%'")
    connections = {
        LOG_IN: ("cdc_mysql", USER, found["password"]),
        WRONG: ("cdc_mysql", USER, found["wrong password"]),
        KEYS: ("cdc_store", s3_server.access_key, s3_server.secret_key),
        HASHES: ("generic", None, found["hash key"]),
    }
    for name, (kind, login, password) in connections.items():
        body = {"connection_id": name, "conn_type": kind, "login": login, "password": password}
        station.request("POST", "/api/v2/connections", body)
    yield {
        **found,
        "access key": s3_server.access_key,
        "secret key": s3_server.secret_key,
        "metrics token": metrics_token,
        "page password": station.password,
        **{name: station.env[variable] for name, variable in AIRFLOWS.items()},
    }
    for name in connections:
        station.request("DELETE", f"/api/v2/connections/{name}")
    mysql_server.execute(f"DROP USER {USER}@'%'")


@pytest.fixture
def spark_pages() -> Iterator[tuple[int, dict[str, str]]]:
    """The port of Spark's pages, and what they showed: they live as long as a job."""
    port, found, end = free_port(), {}, threading.Event()
    base = f"http://127.0.0.1:{port}"

    def look() -> None:
        with httpx.Client(timeout=5, follow_redirects=True) as client:
            while not end.wait(0.5):
                try:
                    apps = client.get(f"{base}/api/v1/applications").json()
                    paths = [f"/api/v1/applications/{app['id']}/environment" for app in apps]
                    for path in (*paths, "/environment/", "/jobs/", "/SQL/"):
                        found[path] = client.get(f"{base}{path}").text
                except (httpx.HTTPError, ValueError):  # Spark is not there yet, or has just ended
                    continue

    thread = threading.Thread(target=look, name="spark-pages", daemon=True)
    thread.start()
    yield port, found
    end.set()
    thread.join()


@pytest.fixture
def event_logs(tmp_path: Path) -> Path:
    """Where Spark writes what its history server shows, with all settings of each job."""
    folder = tmp_path / "events"
    folder.mkdir()
    return folder


@pytest.fixture
def source(
    make_source: Callable[..., AirflowSource],
    mysql_server: MySqlServer,
    s3_server,
    bucket: str,
    canaries,
    spark_pages,
    event_logs: Path,
) -> AirflowSource:
    """A source whose secrets are all in connections, with a column that is hashed."""
    source = make_source(
        server={"host": mysql_server.host, "port": mysql_server.port, "connection": LOG_IN},
        store={
            "url": f"s3://{bucket}/cdc", "endpoint_url": s3_server.endpoint, "region": s3_server.region, "connection": KEYS,
        },
        masks=[{"tables": "*.orders", "columns": ["mail"], "mask": "hash"}],
        mask_key_connection=HASHES,
        reselect={"mode": "always"},  # the merge asks the source
        merge={"driver_memory": "1g", "conf": {
            "spark.ui.enabled": "true", "spark.ui.port": str(spark_pages[0]), "spark.eventLog.enabled": "true",
            "spark.eventLog.dir": event_logs.as_uri(), "spark.eventLog.compress": "false",
        }},
    )  # fmt: skip
    source.sql(
        "CREATE TABLE orders (id INT PRIMARY KEY, mail VARCHAR(80))", "INSERT INTO orders VALUES (1, 'ann@example.com')"
    )
    return source


def run(air: AirflowStandalone, dag: str, wanted: str, **params: object) -> None:
    air.wait_for_dag(dag)
    air.unpause(dag)
    run_id = air.trigger(dag, **params)
    state = air.wait_for_run(dag, run_id)["state"]
    failed = [one for one in air.tasks(dag, run_id) if one["state"] == "failed"]
    assert state == wanted, [
        air.task_log(dag, run_id, one["task_id"], one["try_number"], one["map_index"]) for one in failed
    ]


def test_no_secret_is_in_logs_database_store_answers_or_processes(
    station: AirflowStandalone, source: AirflowSource, canaries: dict[str, str], spark_pages, s3_server, bucket: str,
    event_logs: Path,
):  # fmt: skip
    """But for the processes that need them: the job that asks the source, what starts it, and the S3 server itself."""
    with ProcessWatch(canaries) as watch:
        run(station, source.dag, "success")
        source.sql("UPDATE orders SET mail = 'bob@example.com'", "INSERT INTO orders VALUES (2, 'cid@example.com')")
        run(station, source.dag, "success")
        run(station, f"{source.dag}.verify", "success", tables=[f"{source.name}.orders"], repair=True)
        run(station, f"{source.dag}.backfill", "success")
        answers = answers_of(station, source, canaries["metrics token"])
        source.write(server={"host": source.server.host, "port": source.server.port, "connection": WRONG})
        run(station, source.dag, "failed")
    leaks = [
        *searched(
            "file",
            files(station.home),
            canaries,
            {"access key": "airflow.db", "metrics token": "", "page password": station.password_file.name},
        ),
        *searched("row", rows(station.home / "airflow.db"), canaries, dict.fromkeys(["access key"], "")),
        *searched("lake", files(source.folder), canaries),
        *searched("object", objects(s3_server, bucket), canaries),
        *searched("answer", answers.items(), canaries),
        *searched("Spark's page", spark_pages[1].items(), canaries),
        *searched("event log", files(event_logs), canaries),
    ]
    assert leaks == []
    assert any(b"spark.app.name" in text for _, text in files(event_logs))
    assert [
        path
        for path in ("/environment/", "/jobs/")
        if "spark.app.name" not in spark_pages[1]["/environment/"] or not spark_pages[1][path]
    ] == []
    assert [one for one in watch.seen if not is_allowed(one.secret, one.place, one.command)] == []
    assert {
        ("password", "spark_jobs.merge"),
        ("password", "spark_jobs.verify"),
        ("secret key", "spark_jobs.backfill"),
    } <= {
        (one.secret, job) for one in watch.seen for job in JOBS if job in one.command
    }  # the search finds what is there
    assert any(is_java(command) for command in watch.commands)


JOBS = ("spark_jobs.merge", "spark_jobs.verify", "spark_jobs.backfill")


def is_java(command: str) -> bool:
    return command.split(" ", 1)[0].endswith("/java")


def is_allowed(secret: str, place: str, command: str) -> bool:
    """Whether a process may have a secret: never in its command line."""
    if place == "cmdline" or is_java(command):
        return False
    job = next((one for one in JOBS if one in command), None)
    if secret in ("password", "hash key"):
        return job in ("spark_jobs.merge", "spark_jobs.verify")
    if secret in ("access key", "secret key"):
        return job is not None or "versitygw" in command
    return secret in ("metrics token", *AIRFLOWS) and job is None and "airflow" in command


def answers_of(air: AirflowStandalone, source: AirflowSource, token: str) -> dict[str, str]:
    """Return the texts of the page and of the metrics, and what Airflow's API tells of runs."""
    found = {f"/cdc/page/sources/{source.dag}{path}": "" for path in PAGE} | {"/cdc/page/sources": ""}
    with httpx.Client(base_url=air.url, headers={"Authorization": f"Bearer {air.token()}"}, timeout=60) as client:
        for path in found:
            found[path] = air.wait(path, lambda path=path: (got := client.get(path)).status_code == 200 and got.text)
    metrics = httpx.get(f"{air.url}/cdc-metrics/", headers={"Authorization": f"Bearer {token}"}, timeout=60)
    assert source.name in metrics.text
    return {**found, "/cdc-metrics/": metrics.text}


def searched(
    kind: str, places: Iterator[tuple[str, str | bytes]], canaries: Mapping[str, str], may: Mapping[str, str] = {}
) -> list[str]:
    """Return where which secret is, but for those that may be in places with a word in their names.

    Raises:
        AssertionError: there was nothing to search.
    """
    found, seen = [], 0
    for name, text in places:
        seen += 1
        data = text.encode() if isinstance(text, str) else text
        for canary, value in canaries.items():
            if value.encode() in data and not (canary in may and may[canary] in name):
                found.append(f"{canary} in {kind} {name}")
    assert seen, kind
    return found


def files(folder: Path) -> Iterator[tuple[str, bytes]]:
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            yield str(path.relative_to(folder)), path.read_bytes()


def rows(database: Path) -> Iterator[tuple[str, str]]:
    """Yield each row of each table: XComs, rendered fields, audit log, runs, serialized DAGs."""
    with closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as connection:
        tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        assert {"xcom", "rendered_task_instance_fields", "connection", "log"} <= set(tables)
        for table in tables:
            for row in connection.execute(f'SELECT * FROM "{table}"'):
                yield table, " ".join(map(str, row))


def objects(s3_server, bucket: str) -> Iterator[tuple[str, bytes]]:
    client = s3_server.client()
    for page in client.get_paginator("list_objects_v2").paginate(Bucket=bucket):
        for one in page.get("Contents", ()):
            yield one["Key"], client.get_object(Bucket=bucket, Key=one["Key"])["Body"].read()
