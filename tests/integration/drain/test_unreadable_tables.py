"""A server that refuses one table answers for the others: the error names the table, and with quarantine it stays alone."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cdc_lib import requests
from cdc_lib.config import Credentials
from cdc_lib.errors import SourceUnavailable, TableReplaced, TableUnreadable
from cdc_lib.mysql import connection as connecting
from cdc_lib.mysql.connection import connect
from cdc_lib.mysql.information_schema import InformationSchema
from cdc_lib.store import layout
from tests.harness.binlog.capture import Capture, row_metadata
from tests.harness.shop.quarantine import cursor

MERGED = (
    "CREATE TABLE part (id INT NOT NULL, v INT, KEY (id)) ENGINE=MyISAM",
    "CREATE TABLE bad (id INT NOT NULL, v INT, KEY (id)) ENGINE=MERGE UNION=(part)",
    "DROP TABLE part",
)
DISCARDED = (
    "CREATE TABLE bad (id INT PRIMARY KEY, v INT)",
    "INSERT INTO bad VALUES (1, 1)",
    "ALTER TABLE bad DISCARD TABLESPACE",
)
UNREADABLE = {"a table whose parts are missing": MERGED, "a table whose file is discarded": DISCARDED}


def capturing(server, database, folder, **settings):
    capture = Capture(server, database, folder, **{"on_error": "quarantine", **settings})
    capture.execute("CREATE TABLE good (id INT PRIMARY KEY, v INT)")
    capture.execute("INSERT INTO good VALUES (1, 1), (2, 2)")
    return capture


def drained(capture):
    """Do what a run does before its merge; returns the tables that are quarantined."""
    for unit in capture.pipeline.plan(by="test"):
        capture.pipeline.drain(unit)
    return [one.table for one in capture.pipeline.ack_drain(by="test").quarantined]


@pytest.fixture(params=["FULL", "MINIMAL"])
def metadata(request, any_server):
    with row_metadata(any_server, request.param):
        yield request.param


@pytest.mark.usefixtures("metadata")
@pytest.mark.parametrize("why", UNREADABLE)
def test_only_the_table_that_the_server_cannot_read_is_quarantined(any_server, database, tmp_path, why):
    """Its snapshot ends there; the other table's is whole."""
    capture = capturing(any_server, database, tmp_path)
    for statement in UNREADABLE[why]:
        capture.execute(statement)
    assert drained(capture) == [f"{database}.bad"]
    (record,) = (one for one in cursor(capture).quarantine if one.table == f"{database}.bad")
    assert record.fault is not None
    assert (record.fault.code, "reached" in record.fault.reason) == ("table_unreadable", False)
    done = {task.name: task.complete for task in cursor(capture).snapshots}
    assert done[f"{database}.good"]
    capture.execute("INSERT INTO good VALUES (3, 3)")
    assert drained(capture) == []
    assert cursor(capture).position == capture.head()


@pytest.mark.usefixtures("metadata")
@pytest.mark.parametrize("why", UNREADABLE)
def test_without_quarantine_the_error_names_the_table(any_server, database, tmp_path, why):
    """And it is not said that the server cannot be reached, or that another try may help."""
    capture = capturing(any_server, database, tmp_path, on_error="stop")
    for statement in UNREADABLE[why]:
        capture.execute(statement)
    with pytest.raises(TableUnreadable) as caught:
        drained(capture)
    assert caught.value.context["table"] == f"{database}.bad"
    assert "reached" not in str(caught.value)
    assert not caught.value.retryable


@pytest.mark.parametrize("on_error", ["stop", "quarantine"])
def test_a_database_that_was_dropped_since_is_no_error_of_the_server(any_server, database, tmp_path, on_error):
    """Rows of a table whose names nobody knows any more: the table is named, and the other continues."""
    with row_metadata(any_server, "MINIMAL"):
        patterns = {"include": [f"{database}.*", f"{database}_gone.*"]}
        capture = capturing(any_server, database, tmp_path, on_error=on_error, start="latest", tables=patterns)
        any_server.execute(f"CREATE DATABASE {database}_gone")
        any_server.execute(f"CREATE TABLE {database}_gone.bad (id INT PRIMARY KEY, v INT)")
        assert not capture.pipeline.plan(by="test")  # the source begins after the CREATE
        any_server.execute(f"INSERT INTO {database}_gone.bad VALUES (1, 1)")
        capture.execute("INSERT INTO good VALUES (3, 3)")
        capture.store.delete([key for key in capture.visible() if "/schemas/" in key])
        any_server.execute(f"DROP DATABASE {database}_gone")
        (window,) = capture.pipeline.plan(by="test")
        (left_out,) = capture.pipeline.drain(window).quarantined
        assert (left_out.table, left_out.fault.code) == (f"{database}_gone.bad", TableReplaced.code)
        assert "or does not exist any more" in left_out.fault.reason
        assert "reached" not in left_out.fault.reason
        manifest = capture.manifest(layout.manifest_key(window))
        assert {file.table for file in manifest.files} == {f"{database}.good"}
        assert capture.ops(manifest, "good") == [("c", 3)]
        capture.pipeline.ack_drain(by="test")
        assert cursor(capture).position == window.stop
        assert drained(capture) == []
        assert not cursor(capture).tables_to_resnapshot


def test_a_table_that_the_user_may_not_read_is_named(any_server, database, tmp_path):
    """It is not taken for one that was dropped."""
    capture = capturing(any_server, database, tmp_path)
    capture.execute("CREATE TABLE bad (id INT PRIMARY KEY, v INT)")
    user, password = f"few_{database}"[:30], "a-Long-enough-passw0rd"
    any_server.execute(f"CREATE USER {user}@'%' IDENTIFIED BY '{password}'")
    rights = any_server.cdc_privileges.replace("SELECT, ", "")
    any_server.execute(f"GRANT {rights} ON *.* TO {user}@'%'")
    any_server.execute(f"GRANT SELECT ON {database}.good TO {user}@'%'")
    any_server.execute(f"GRANT INSERT ON {database}.bad TO {user}@'%'")
    few = replace(capture.pipeline, credentials=Credentials(user, password))
    capture.pipeline = few
    assert drained(capture) == [f"{database}.bad"]
    record = cursor(capture).quarantine_record(f"{database}.bad")
    assert record is not None
    assert record.fault is not None
    assert "denied" in record.fault.reason
    assert "GRANT SELECT" in record.fault.hint
    any_server.execute(f"GRANT SELECT ON {database}.bad TO {user}@'%'")
    capture.execute("INSERT INTO bad VALUES (1, 1)")
    requests.resume_table(few, f"{database}.bad", by="test")
    assert drained(capture) == []
    task = [task for task in cursor(capture).snapshots if task.name == f"{database}.bad"][-1]
    assert task.complete
    assert [row["id"] for chunk in capture.chunks(task) for row in capture.rows(chunk, "bad")] == [1]


def test_a_locked_table_is_named_and_retried(any_server, database, tmp_path, monkeypatch):
    """Nothing is quarantined for it."""
    monkeypatch.setattr(connecting, "_SESSION", connecting._SESSION.replace("timeout = 60", "timeout = 1"))
    capture = capturing(any_server, database, tmp_path)
    capture.execute("CREATE TABLE bad (id INT PRIMARY KEY, v INT)")
    units = capture.pipeline.plan(by="test")
    with any_server.connect(database=database) as session, session.cursor() as sql:
        sql.execute("LOCK TABLES bad WRITE")
        (task,) = (unit for unit in units if getattr(unit, "table", "") == "bad")
        with pytest.raises(SourceUnavailable) as caught:
            capture.pipeline.drain(task)
    assert caught.value.context["table"] == f"{database}.bad"
    assert "reached" not in str(caught.value)
    assert drained(capture) == []


def test_a_table_that_vanishes_between_its_definition_and_its_rows_is_one_that_was_dropped(
    any_server, database, tmp_path, monkeypatch
):
    """Its DROP is in the binlog."""
    capture = capturing(any_server, database, tmp_path)
    capture.execute("CREATE TABLE bad (id INT PRIMARY KEY, v INT)")
    units = capture.pipeline.plan(by="test")
    read = InformationSchema.schema

    def then_dropped(self, schema, table):
        found = read(self, schema, table)
        if table == "bad":
            capture.execute("DROP TABLE IF EXISTS bad")
        return found

    monkeypatch.setattr(InformationSchema, "schema", then_dropped)
    for unit in units:
        assert capture.pipeline.drain(unit).quarantined == ()


def test_a_view_that_is_broken_stops_nothing(any_server, database, tmp_path):
    """Views are not captured."""
    capture = capturing(any_server, database, tmp_path, on_error="stop")
    capture.execute("CREATE TABLE base (id INT PRIMARY KEY)")
    capture.execute("CREATE VIEW seen AS SELECT id FROM base")
    capture.execute("DROP TABLE base")
    assert drained(capture) == []
    connection = connect(capture.config.server, capture.credentials)
    try:
        assert (database, "seen") not in InformationSchema(connection).tables()
    finally:
        connection.close()
