"""What the doctor looks at without a server."""

from __future__ import annotations

import json
import os
import socket
import sqlite3
import stat
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

import pytest

from cdc_lib.config import Credentials, LakeConfig, SourceConfig, StoreConfig, TablesConfig
from cdc_lib.doctor.examine import examine, shared, side_by_side
from cdc_lib.doctor.java_check import check_java, java_of, version_in
from cdc_lib.doctor.lake_check import check_lake
from cdc_lib.doctor.spark_check import check_spark
from cdc_lib.doctor.store_check import check_store
from cdc_lib.doctor.tables_check import engine_findings, key_findings, pattern_findings
from cdc_lib.errors import ConfigError, SourceUnavailable
from cdc_lib.model.finding import Finding
from cdc_lib.model.merge_plan import Cut, TableCut
from cdc_lib.model.position import Position
from cdc_lib.model.table_name import TableName
from cdc_lib.pipeline import Pipeline
from cdc_lib.store.cursors import ObjectCursorStore
from cdc_lib.store.cuts import publish
from cdc_lib.store.objects.open import open_store
from tests.harness.servers.process import free_port


def levels(findings):
    """Their levels."""
    return [one.level for one in findings]


@pytest.fixture
def java(tmp_path):
    """Make a program that says to be a Java, and return what finds it."""

    def _java(says):
        home = tmp_path / "jdk"
        (home / "bin").mkdir(parents=True, exist_ok=True)
        program = home / "bin" / "java"
        program.write_text(f"#!/bin/sh\ncat >&2 <<'END'\n{says}\nEND\n")
        program.chmod(program.stat().st_mode | stat.S_IXUSR)
        return {"JAVA_HOME": str(home), "PATH": os.environ["PATH"]}

    return _java


@pytest.mark.parametrize(
    ("says", "version"),
    [
        ('openjdk version "17.0.20" 2026-07-21', 17),
        ('Picked up JAVA_TOOL_OPTIONS: -Xmx1g\nopenjdk version "21" 2023-09-19', 21),
        ('java version "1.8.0_442"', 8),
        ("something else", None),
    ],
)
def test_the_version_of_java_is_read_however_it_is_written(says, version):
    """Old ones begin with 1."""
    assert version_in(says) == version


@pytest.mark.parametrize("says", ['openjdk version "25" 2025-09-16', 'java version "1.8.0_442"', "nothing"])
def test_a_java_that_spark_does_not_run_on_is_an_error_with_what_to_install(java, says):
    """It ended in forty lines of a traceback."""
    (finding,) = check_java(java(says))
    assert finding.level == "error"
    assert "openjdk-17" in finding.hint


def test_a_missing_java_is_an_error_with_what_to_install(tmp_path):
    """On PATH, or where JAVA_HOME says."""
    for environ in ({"PATH": str(tmp_path)}, {"PATH": "", "JAVA_HOME": str(tmp_path)}):
        with pytest.raises(ConfigError, match="Spark needs Java"):
            java_of(environ)


def test_a_java_that_spark_runs_on_is_fine(java):
    """17 to 21."""
    assert levels(check_java(java('openjdk version "17.0.20" 2026-07-21'))) == ["ok"]


def lake(folder, **given):
    """A lake in SQLite and a folder."""
    settings = {
        "type": "jdbc",
        "uri": f"jdbc:sqlite:{folder}/cat/lake.db?busy_timeout=1",
        "warehouse": f"file://{folder}/wh",
    }
    return LakeConfig(**{**settings, **given})


def source_config(**sections):
    """A source of a server that nobody asks."""
    server = {"host": "127.0.0.1", "port": 1, "user": "cdc", "password_env": "DOCTOR_TEST_PASSWORD"}
    return SourceConfig.model_validate(
        {"source": "shop", "server": server, "tables": {"include": ["shop.*"]}, **sections}
    )


def looked_at(config):
    """The findings of a lake beside a local store."""
    store = StoreConfig(url="file:///nowhere/store")
    return list(check_lake(source_config(lake=config, store=store), open_store(store)))


def test_the_folder_of_a_catalog_may_be_missing(tmp_path):
    """The first merge makes it."""
    assert levels(looked_at(lake(tmp_path))) == ["ok", "ok"]
    assert list(tmp_path.iterdir()) == []


def test_a_catalog_that_is_elsewhere_than_the_last_merge_is_an_error(tmp_path):
    """With it, each merge would report its tables as dropped."""
    store = StoreConfig(url=f"file://{tmp_path}/store")
    opened = open_store(store)
    merged = TableCut(TableName("shop", "orders"), "lake.shop.orders", 7, 0)
    publish(opened, Cut("shop", "m1", 1, Position("binlog.000001", 4), None, datetime.now(UTC), (merged,)))
    found = list(check_lake(source_config(lake=lake(tmp_path), store=store), opened))
    assert levels(found) == ["error", "ok"]
    assert "the lake tables of the last merge are in it" in found[0].what
    assert "Correct lake.uri" in found[0].hint
    (tmp_path / "cat").mkdir()
    with closing(sqlite3.connect(tmp_path / "cat" / "lake.db")) as made:
        made.execute("CREATE TABLE t (a)")
    assert levels(check_lake(source_config(lake=lake(tmp_path), store=store), opened)) == ["ok", "ok"]


def test_an_outage_of_the_store_is_said_once(tmp_path, monkeypatch):
    """The cursors, the cut and the lake in the same place are not reached either."""
    for name in ("DOCTOR_TEST_PASSWORD", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "x")
    endpoint = f"http://127.0.0.1:{free_port()}"
    store = StoreConfig(url="s3://bucket/store", endpoint_url=endpoint, region="us-east-1")
    for warehouse in ("s3://bucket/lake", f"file://{tmp_path}/wh"):
        config = source_config(lake=lake(tmp_path, warehouse=warehouse), store=store)
        objects = open_store(store, impatient=True)
        pipeline = Pipeline(config, Credentials("cdc", "x"), objects, ObjectCursorStore(objects))
        found = [one for one in examine(pipeline, 30.0, lambda: ()) if endpoint in one.what]
        assert ["the store s3://bucket/store cannot be used" in one.what for one in found] == [True]
        assert "store.endpoint_url" in found[0].hint


def test_a_catalog_that_cannot_be_made_is_an_error_with_the_command(tmp_path):
    """A file is where its folder should be."""
    (tmp_path / "cat").write_text("")
    (tmp_path / "wh").write_text("")
    for finding in looked_at(lake(tmp_path)):
        assert finding.level == "error"
        assert "is not a folder" in finding.what
        assert "mkdir -p" in finding.hint


def test_a_catalog_that_is_no_database_is_an_error(tmp_path):
    """SQLite says what is wrong with it."""
    (tmp_path / "cat").mkdir()
    (tmp_path / "cat" / "lake.db").write_bytes(b"nonsense" * 1000)
    assert levels(looked_at(lake(tmp_path))) == ["error", "ok"]
    (tmp_path / "cat" / "lake.db").unlink()
    with closing(sqlite3.connect(tmp_path / "cat" / "lake.db")) as made:
        made.execute("CREATE TABLE t (a)")
    assert levels(looked_at(lake(tmp_path))) == ["ok", "ok"]


def test_a_catalog_that_does_not_answer_is_an_error_without_its_log_in(tmp_path):
    """Its address may hold a password."""
    uri = f"jdbc:postgresql://127.0.0.1:{free_port()}/lake?user=x&password=hunter2"
    rest = f"http://x:hunter2@127.0.0.1:{free_port()}/iceberg?token=hunter2"
    for given in ({"uri": uri}, {"type": "rest", "uri": rest}):
        (refused, _) = looked_at(lake(tmp_path, **given))
        assert refused.level == "error"
        assert "cannot be reached" in refused.what
        assert "hunter2" not in str(refused)


def test_of_a_network_catalog_only_its_address_is_checked_and_the_finding_says_so(tmp_path):
    """The log-in and the database may still be wrong."""
    with closing(socket.create_server(("127.0.0.1", 0))) as server:
        uri = f"jdbc:postgresql://127.0.0.1:{server.getsockname()[1]}/lake?user=x&password=hunter2"
        (answers, _) = looked_at(lake(tmp_path, uri=uri))
    assert answers.level == "info"
    assert "neither the log-in nor the database was checked" in answers.what
    assert "hunter2" not in str(answers)


def test_a_glue_catalog_is_not_checked_and_the_finding_says_so(tmp_path):
    """No finding looks like a good one."""
    glue, warehouse = looked_at(lake(tmp_path, type="glue", uri=None))
    assert (glue.level, warehouse.level) == ("info", "ok")
    assert "was not checked" in glue.what


class RestCatalog(BaseHTTPRequestHandler):
    """A catalog with one warehouse, which wants a token."""

    def answer(self, status, document):
        data = document if isinstance(document, bytes) else json.dumps(document).encode()
        self.send_response(status)
        self.end_headers()
        self.wfile.write(data)

    def refuse(self, status, kind, message):
        self.answer(status, {"error": {"message": message, "type": kind, "code": status}})

    def do_GET(self):
        parts = urlsplit(self.path)
        asked = parse_qs(parts.query).get("warehouse")
        if parts.path != "/iceberg/v1/config":
            self.answer(200, b"<html>hello</html>")
        elif self.headers["Authorization"] != "Bearer the-token" or self.headers["X-Tenant"] != "one":
            self.refuse(401, "NotAuthorizedException", f"no such token: {self.headers['Authorization']}")
        elif asked != ["main"]:
            self.refuse(404, "NoSuchWarehouseException", f"there is no warehouse {asked}")
        else:
            self.answer(200, {"defaults": {}, "overrides": {"prefix": "main"}})

    def do_POST(self):
        form = parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
        if (form["client_id"], form["client_secret"], form["scope"]) == (["me"], ["s3cret"], ["catalog"]):
            self.answer(200, {"access_token": "the-token", "token_type": "bearer"})
        else:
            self.answer(400, {"error": "invalid_client", "error_description": "unknown"})

    def log_message(self, *_):
        pass


@pytest.fixture(scope="module")
def rest():
    """Start a REST catalog; returns its address."""
    with ThreadingHTTPServer(("127.0.0.1", 0), RestCatalog) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/iceberg"
        server.shutdown()
        thread.join()


TENANT = {"header.X-Tenant": "one"}


@pytest.mark.parametrize(
    ("given", "level", "says"),
    [
        ({"properties": {"token": "the-token"}}, "ok", "has the warehouse main"),
        ({"properties": {"credential": "me:s3cret"}}, "ok", "has the warehouse main"),
        ({"properties": {"token": "wr0ng"}}, "error", "refuses the log-in: 401: NotAuthorizedException"),
        ({"properties": {"credential": "me:wr0ng"}}, "error", "refuses the log-in: 400: invalid_client"),
        (
            {"properties": {"token": "the-token"}, "warehouse": "mian"},
            "error",
            "refuses the warehouse mian: 404: NoSuch",
        ),
        ({"properties": {"token": "the-token"}, "warehouse": None}, "error", "does not give its configuration: 404"),
        ({"uri": "OTHER"}, "error", "something else than an Iceberg REST catalog answers"),
        ({"properties": {"rest.sigv4-enabled": "true"}}, "info", "was not checked"),
    ],
)
def test_a_rest_catalog_is_asked_for_its_configuration_with_log_in_and_warehouse(rest, tmp_path, given, level, says):
    """As every client asks first; its error is in the finding, and no secret."""
    given = {"uri": rest, "warehouse": "main", **given, "properties": {**TENANT, **given.get("properties", {})}}
    given["uri"] = given["uri"].replace("OTHER", rest.replace("/iceberg", "/elsewhere"))
    (found,) = looked_at(lake(tmp_path, type="rest", **given))
    assert (found.level, says in found.what) == (level, True), found
    for secret in ("the-token", "wr0ng", "s3cret"):
        assert secret not in str(found)


def test_a_warehouse_without_a_client_is_not_checked_and_the_finding_says_so(tmp_path):
    """HDFS and others."""
    _, warehouse = looked_at(lake(tmp_path, warehouse="hdfs://names/lake"))
    assert (warehouse.level, "was not checked" in warehouse.what) == ("info", True)


def test_a_store_that_cannot_be_written_to_is_an_error_with_the_command(tmp_path):
    """A probe is written and deleted."""
    config = StoreConfig(url=f"file://{tmp_path}/store")
    assert levels(check_store(config, open_store(config))) == ["ok"]
    assert [
        path for path in (tmp_path / "store").rglob("[!.]*") if path.is_file() and path.parent.name != ".locks"
    ] == []
    (tmp_path / "file").write_text("")
    config = StoreConfig(url=f"file://{tmp_path}/file/store")
    (finding,) = check_store(config, open_store(config))
    assert finding.level == "error"
    assert "mkdir -p" in finding.hint


def test_patterns_without_tables_are_warnings_and_an_exact_name_is_an_error():
    """A run over them has nothing to do, and says nothing."""
    config = TablesConfig(include=("shop.orders", "shop.oders", "crm.*", "/^shop[.]o/"))
    findings = list(pattern_findings(config, [("shop", "orders")]))
    assert [(one.level, one.what.split()[2]) for one in findings] == [("error", "shop.oders"), ("warning", "crm.*")]


def test_tables_whose_rows_are_elsewhere_are_one_finding():
    """With the first of them, and what to do."""
    assert not list(engine_findings({}))
    (finding,) = engine_findings({f"s.t{n}": "SPIDER" for n in range(7)})
    assert finding.level == "warning"
    assert finding.what.endswith("s.t3 (SPIDER), s.t4 (SPIDER) and 2 more")
    assert "tables.exclude" in finding.hint


def test_tables_without_a_key_are_reported_unless_their_mode_is_append():
    """Their rows are not mirrored."""
    (finding,) = key_findings(["s.a", "s.b"], ["s.b"])
    assert finding.level == "warning"
    assert "s.a" in finding.what
    assert "s.b" not in finding.what
    assert not list(key_findings(["s.b"], ["s.b"]))


def test_a_check_that_many_share_runs_once():
    """Java is the same for all sources."""
    ran = []
    check = shared(lambda: [Finding("ok", str(ran.append(1)))])
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda _: list(check()), range(8)))
    assert (len(ran), len({id(one[0]) for one in found})) == (1, 1)


def test_a_check_that_does_not_end_or_fails_hides_no_other():
    """And the order is that of the checks."""
    forever = threading.Event()

    def fails():
        raise SourceUnavailable("no answer", hint="Look.", port=3306)

    findings = side_by_side(
        {
            "one": lambda: [Finding("ok", "1")],
            "two": lambda: [str(forever.wait())],
            "three": fails,
            "four": list,
            "five": lambda: [1 // 0],
        },
        0.2,
    )
    assert [one.level for one in findings] == ["ok", "unknown", "error", "error"]
    assert "two could not be looked at within" in findings[1].what
    assert findings[2].what == "no answer [port=3306]"
    assert "ZeroDivisionError" in findings[3].what
    forever.set()


def test_time_in_which_this_process_computes_is_no_silence():
    """Nor is the time in which it waits for a core, of which others take their part."""

    def computes():
        end = time.process_time() + 1.5
        while time.process_time() < end:
            pass
        return [Finding("ok", "done")]

    others = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(2 * (os.cpu_count() or 1))]
    try:
        assert side_by_side({"one": computes}, 0.7) == [Finding("ok", "done")]
    finally:
        for one in others:
            one.kill()
            one.wait()


def test_a_spark_master_that_does_not_answer_is_named():
    """One of several is enough; other kinds of clusters are not looked at, and neither is this machine."""
    silent = f"127.0.0.1:{free_port()}"
    (found,) = check_spark(f"spark://{silent}")
    assert found.level == "error"
    assert f"the Spark master cannot be reached at {silent}: " in found.what
    assert "merge.spark_master" in found.hint
    with closing(socket.create_server(("127.0.0.1", 0))) as master:
        assert list(check_spark(f"spark://{silent},127.0.0.1:{master.getsockname()[1]}")) == []
    for other in ("local[2]", "k8s://https://h:6443"):
        assert list(check_spark(other)) == []


def test_yarn_is_found_by_a_variable_only():
    """Spark would end with a trace of Java."""
    (found,) = check_spark("yarn", {"HADOOP_CONF_DIR": ""})
    assert (found.level, found.what) == (
        "error",
        "Spark cannot find YARN: neither HADOOP_CONF_DIR nor YARN_CONF_DIR is set",
    )
    assert "HADOOP_CONF_DIR" in found.hint
    for name in ("HADOOP_CONF_DIR", "YARN_CONF_DIR"):
        assert list(check_spark("yarn", {name: "/etc/hadoop/conf"})) == []
