"""How long real servers keep what is drained next: as they are set up, as their files are, and as the commands show it."""

from __future__ import annotations

import json
import socket
import time
from contextlib import contextmanager
from types import SimpleNamespace

import pytest
from typer.testing import CliRunner

from cdc_airflow.hooks import CdcHook
from cdc_airflow.operators import DrainOperator, PlanOperator
from cdc_lib.cli.main import app
from cdc_lib.config import Credentials
from cdc_lib.errors import SourceUnavailable
from cdc_lib.model.cursor import DRAIN
from cdc_lib.pipeline import Pipeline
from cdc_lib.status.binlog_retention import look_ahead
from cdc_lib.status.overview import findings_of, gauges_of, status_of
from tests.harness.airflow.metrics import statsd_metrics
from tests.harness.binlog.capture import SOURCE, Capture
from tests.harness.lake.merging import Lake
from tests.harness.servers.process import free_port

SOURCE_FILE = """
server: {{host: {server.host}, port: {server.port}, user: {server.cdc_user}, password_env: CLI_TEST_PASSWORD}}
tables: ["{capture.database}.*"]
start: latest
store: {{url: "file://{folder}/store"}}
lake: {{type: jdbc, uri: "jdbc:sqlite:{folder}/cat.db", warehouse: "file://{folder}/lake"}}
"""


@contextmanager
def global_variable(server, name, value):
    """Set a variable for a while."""
    ((before,),) = server.execute(f"SELECT @@GLOBAL.{name}")
    server.execute(f"SET GLOBAL {name} = {value}")
    try:
        yield
    finally:
        server.execute(f"SET GLOBAL {name} = {before}")


@pytest.fixture
def capture(any_server, database, tmp_path):
    """A source that began in a new file and drained nothing since."""
    any_server.execute("FLUSH BINARY LOGS")
    capture = Capture(any_server, database, tmp_path, start="latest")
    capture.execute("CREATE TABLE a (id INT PRIMARY KEY, v VARCHAR(1000))")
    capture.pipeline.plan(by="test")
    return capture


def source_file(capture, folder, monkeypatch):
    """Write the source as a file, over the same store."""
    monkeypatch.setenv("CLI_TEST_PASSWORD", capture.server.cdc_password)
    file = folder / "sources" / f"{SOURCE}.yaml"
    file.parent.mkdir()
    file.write_text(SOURCE_FILE.format(server=capture.server, capture=capture, folder=folder))
    return file


def finding(pipeline):
    """What the doctor says of the file in which the drain cursor is."""
    (one,) = [one for one in findings_of(pipeline) if "drain cursor is" in one.what]
    return one


def test_a_short_retention_is_found_with_the_statement_that_lengthens_it(capture):
    """That statement, run as it is printed, lets the finding go."""
    server = capture.server
    with global_variable(server, "binlog_expire_logs_seconds", 7200):
        short = finding(capture.pipeline)
        assert short.level == "warning"
        assert short.what.startswith("in 2.0 hours at the earliest the server may purge ")
        statement = short.hint.partition("on the server: ")[2].partition(";")[0]
        assert statement.endswith("binlog_expire_logs_seconds = 612000")
        assert statement.startswith("SET PERSIST " if server.flavor == "mysql" else "SET GLOBAL ")
        assert gauges_of(capture.pipeline).retention_warning == f"{short.what}. {short.hint}"
        server.execute(statement)
        try:
            assert finding(capture.pipeline).level == "ok"
            assert gauges_of(capture.pipeline).retention_warning == ""
        finally:
            if server.flavor == "mysql":
                server.execute("RESET PERSIST binlog_expire_logs_seconds")
    with global_variable(server, "binlog_expire_logs_seconds", 0):
        assert finding(capture.pipeline).what.startswith("the server does not purge ")


def test_a_file_expires_its_retention_after_it_ended_and_the_server_purges_it_then(capture):
    """Not before, although it was made long before: what the servers do themselves at their next rotation."""
    server = capture.server
    if server.variable("slave_connections_needed_for_purge"):
        server.execute("SET GLOBAL slave_connections_needed_for_purge = 0")
    time.sleep(3)
    capture.execute("INSERT INTO a VALUES (1, 'late')")
    server.execute("FLUSH BINARY LOGS")
    with global_variable(server, "binlog_expire_logs_seconds", 8):
        forecast = status_of(capture.pipeline).outlook.forecast
        file = forecast.position.file
        made = capture.pipeline.cursors.load(SOURCE, DRAIN).file_times[file]
        assert not forecast.still_written
        assert 10 <= (forecast.expires_at - made).total_seconds() <= 18
        until(capture, lambda facts: (forecast.expires_at - facts.clock).total_seconds() < 2.5)
        server.execute("FLUSH BINARY LOGS")
        assert file in dict(capture.facts().files)
        until(capture, lambda facts: facts.clock > forecast.expires_at)
        assert status_of(capture.pipeline).outlook.forecast.seconds_left == 0
        deadline = time.monotonic() + 60
        while file in dict(capture.facts().files):  # the engine may need it a moment longer
            assert time.monotonic() < deadline
            server.execute("FLUSH BINARY LOGS")
            time.sleep(0.2)
    purged = finding(capture.pipeline)
    assert (purged.level, purged.what.split(",")[0]) == ("error", f"the server no longer has {file}")
    assert status_of(capture.pipeline).outlook.forecast.purged


def until(capture, reached):
    """Wait for the server's clock."""
    deadline = time.monotonic() + 60
    while not reached(capture.facts()):
        assert time.monotonic() < deadline
        time.sleep(0.1)


def test_a_size_limit_is_seen_before_it_takes_the_file(capture):
    """MariaDB has one; the finding names it and how fast it fills."""
    server = capture.server
    if server.flavor == "mysql":
        pytest.skip("MySQL purges by age alone")
    held = dict(capture.facts().files)[status_of(capture.pipeline).outlook.forecast.position.file]
    with global_variable(server, "max_binlog_total_size", held + 2**20):
        forecast = status_of(capture.pipeline).outlook.forecast
        assert forecast.retention_seconds is None
        assert 0 < forecast.room_bytes <= 2**20
        for number in range(100):
            capture.execute(f"INSERT INTO a VALUES ({number}, REPEAT('x', 1000))")
        later = status_of(capture.pipeline).outlook.forecast
        assert later.room_bytes < forecast.room_bytes - 100_000
        until(capture, lambda _: status_of(capture.pipeline).outlook.forecast.room_seconds is not None)
        short = finding(capture.pipeline)
        assert short.level == "warning"
        assert short.what.startswith("by its size limit the server may purge in ")
        assert "SET GLOBAL max_binlog_total_size = " in short.hint


def test_a_server_that_refuses_to_send_its_files_gives_a_warning_and_no_error(capture):
    """The doctor continues with what else there is to look at."""
    server = capture.server
    server.execute("FLUSH BINARY LOGS")
    server.execute("DROP USER IF EXISTS looker@'%'")
    server.execute(f"CREATE USER looker@'%' IDENTIFIED BY '{server.cdc_password}'")
    monitor = "REPLICATION CLIENT" if server.flavor == "mysql" else "BINLOG MONITOR"
    server.execute(f"GRANT SELECT, {monitor} ON *.* TO looker@'%'")
    pipeline = capture.pipeline
    looker = Pipeline(pipeline.config, Credentials("looker", server.cdc_password), pipeline.store, pipeline.cursors)
    try:
        with global_variable(server, "binlog_expire_logs_seconds", 2_592_000):
            one = finding(looker)
            assert one.level == "warning"
            assert one.what.startswith("it is unknown when the server purges ")
            assert "cannot be read: " in one.what
            assert "REPLICATION SLAVE" in one.hint
            assert one.what in gauges_of(looker).retention_warning
            assert status_of(looker).outlook.forecast.expires_at is None
        with global_variable(server, "binlog_expire_logs_seconds", 0):  # when a file ended does not matter then
            assert finding(looker).level == "ok"
    finally:
        server.execute("DROP USER looker@'%'")


def test_the_plan_task_warns_in_its_log_and_plans(capture, tmp_path, monkeypatch, capsys):
    """A short forecast fails nothing."""
    file = source_file(capture, tmp_path, monkeypatch)
    ti = SimpleNamespace(dag_id="cdc_shop", run_id="manual", task_id="plan", try_number=1)
    task = PlanOperator(task_id="plan", source_file=str(file))
    with global_variable(capture.server, "binlog_expire_logs_seconds", 2_592_000):
        task.work(CdcHook(str(file)), {"ti": ti})
        assert "may purge" not in capsys.readouterr().out
    capture.execute("INSERT INTO a VALUES (1, 'new')")
    with global_variable(capture.server, "binlog_expire_logs_seconds", 7200):
        (unit,) = task.work(CdcHook(str(file)), {"ti": ti})
    (line,) = [line for line in capsys.readouterr().out.splitlines() if "may purge" in line]
    assert "warning" in line
    assert "binlog_expire_logs_seconds = 612000" in line
    assert unit["source"] == SOURCE


@pytest.fixture
def statsd(monkeypatch):
    """A StatsD listener for Airflow's metrics; returns the gauges received so far."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as listener:
        listener.bind(("127.0.0.1", 0))
        listener.settimeout(5)
        for name, value in {
            "ON": "True",
            "HOST": "127.0.0.1",
            "PORT": listener.getsockname()[1],
            "PREFIX": "af",
        }.items():
            monkeypatch.setenv(f"AIRFLOW__METRICS__STATSD_{name}", str(value))

        def gauges(count):
            lines = [line for _ in range(count) for line in listener.recv(65536).decode().splitlines()]
            assert all(line.endswith("|g") for line in lines)
            return {name: float(value) for name, value in (line.removesuffix("|g").split(":") for line in lines)}

        with statsd_metrics():
            yield gauges


def test_a_backlog_says_when_it_will_be_drained(any_server, database, tmp_path, monkeypatch, capsys):
    """In the log of a plan, in the status and as a metric; by how long the last windows took, and not before any are drained."""
    capture = Capture(
        any_server, database, tmp_path, start="latest", drain={"max_window_bytes": 1000, "max_windows": 1}
    )
    capture.execute("CREATE TABLE a (id INT PRIMARY KEY, v VARCHAR(1000))")
    capture.pipeline.plan(by="test")
    for number in range(4):
        capture.execute(f"INSERT INTO a VALUES ({number}, REPEAT('x', 1000)), ({number + 10}, REPEAT('x', 1000))")
        any_server.execute("FLUSH BINARY LOGS")
    assert gauges_of(capture.pipeline).backlog.seconds is None
    for by in ("one run", "another"):
        for unit in capture.pipeline.plan(by=by):
            capture.pipeline.drain(unit)
        capture.pipeline.ack_drain(by=by)
    backlog = gauges_of(capture.pipeline).backlog
    assert backlog.bytes > 4000
    assert backlog.seconds > 0
    file = source_file(capture, tmp_path, monkeypatch)
    file.write_text(file.read_text() + "drain: {max_window_bytes: 1000, max_windows: 1}\n")
    ti = SimpleNamespace(dag_id="cdc_shop", run_id="manual", task_id="plan", try_number=1)
    PlanOperator(task_id="plan", source_file=str(file)).work(CdcHook(str(file)), {"ti": ti})
    line = next(line for line in capsys.readouterr().out.splitlines() if "of binlog are not drained, about" in line)
    assert "at the rate of the last backlog" in line
    result = CliRunner().invoke(app, ["--sources", str(file.parent), "metrics", SOURCE])
    (metric,) = [one for one in result.output.splitlines() if one.startswith("cdc_catch_up_seconds{")]
    assert float(metric.split()[1]) > 0
    assert "are not drained" not in CliRunner().invoke(app, ["--sources", str(file.parent), "status"]).output
    monkeypatch.setattr("cdc_lib.cli.status._LONG", 0.0)
    shown = CliRunner().invoke(app, ["--sources", str(file.parent), "status"]).output
    assert "of binlog are not drained, about" in " ".join(shown.split())


def test_the_tasks_send_retention_lag_and_rows_as_gauges(capture, tmp_path, monkeypatch, statsd):
    """To a real listener, through Airflow's own metrics; what is not known is not sent."""
    file = source_file(capture, tmp_path, monkeypatch)
    ti = SimpleNamespace(dag_id="cdc_shop", run_id="manual", task_id="plan", try_number=1)
    plan = PlanOperator(task_id="plan", source_file=str(file))
    capture.execute("INSERT INTO a VALUES (1, 'new'), (2, 'new')")
    with global_variable(capture.server, "binlog_expire_logs_seconds", 7200):
        (unit,) = plan.work(CdcHook(str(file)), {"ti": ti})
    sent = statsd(1)
    assert sent.keys() == {"af.cdc.shop.retention_hours"}  # the lag is unknown before the first cut
    assert 1.9 < sent["af.cdc.shop.retention_hours"] <= 2
    DrainOperator(task_id="drain", source_file=str(file), unit=unit).work(CdcHook(str(file)), {"ti": ti})
    sent = statsd(3)
    assert sent["af.cdc.shop.window_rows"] == 2
    assert sent["af.cdc.shop.window_bytes"] > 0
    assert sent["af.cdc.shop.window_seconds"] > 0
    capture.pipeline.ack_drain(by="test")
    Lake("a").merge_all(capture)
    capture.execute("INSERT INTO a VALUES (3, 'new')")
    with global_variable(capture.server, "binlog_expire_logs_seconds", 0):
        plan.work(CdcHook(str(file)), {"ti": ti})
    sent = statsd(1)
    assert sent.keys() == {"af.cdc.shop.lag_seconds"}
    assert 0 < sent["af.cdc.shop.lag_seconds"] < 600
    file.write_text(
        file.read_text().replace(f"port: {capture.server.port}", f"port: {free_port()}, connect_timeout: 1s")
    )
    with pytest.raises(SourceUnavailable):
        plan.work(CdcHook(str(file)), {"ti": ti})
    dead = statsd(1)
    assert dead["af.cdc.shop.lag_seconds"] > sent["af.cdc.shop.lag_seconds"]


def test_the_retention_is_that_of_the_cursors_server(capture, mysql_server, mariadb_server):
    """Another server's files say nothing about it; nor is there one before the first plan."""
    other = mariadb_server if capture.server is mysql_server else mysql_server
    there = Capture(other, capture.database, capture.store.root / "other")
    drain = capture.pipeline.cursors.load(SOURCE, DRAIN)
    assert look_ahead(there.config, there.credentials, there.facts(), drain) is None
    assert look_ahead(capture.config, capture.credentials, capture.facts(), None) is None


def test_the_commands_show_a_short_retention(capture, tmp_path, monkeypatch):
    """``cdc status`` warns below its table, always has it in its JSON, and ``cdc doctor`` prints the finding."""
    file = source_file(capture, tmp_path, monkeypatch)

    def cdc(*arguments):
        result = CliRunner().invoke(app, ["--sources", str(file.parent), *arguments])
        assert result.exit_code == 0, result.output + repr(result.exception)
        return result.output

    with global_variable(capture.server, "binlog_expire_logs_seconds", 2_592_000):
        assert "may purge" not in cdc("status")
        (status,) = json.loads(cdc("status", "--json"))
        assert status["retention"]["retention_seconds"] == status["retention"]["seconds_left"] == 2_592_000
        assert status["retention_warning"] == ""
    with global_variable(capture.server, "binlog_expire_logs_seconds", 7200):
        assert f"{SOURCE}: in 2.0 hours at the earliest the server may purge " in cdc("status")
        assert "binlog_expire_logs_seconds = 612000" in json.loads(cdc("status", "--json"))[0]["retention_warning"]
        (line,) = [one for one in json.loads(cdc("doctor", "--json")) if "drain cursor is" in one["what"]]
        assert line["level"] == "warning"
        file.write_text(file.read_text() + "retention_warning: 90m\n")
        assert "may purge" not in cdc("status")
