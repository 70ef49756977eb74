"""A new snapshot that a plan cannot begin quarantines its table: the plan goes on with the others."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cdc_lib import requests
from cdc_lib.errors import ConfigError, TableUnreadable
from tests.harness.binlog.capture import row_metadata
from tests.harness.shop.quarantine import LOSSY, capturing, cursor, rounds

UNREADABLE = (
    "CREATE TABLE part (id INT NOT NULL, v VARCHAR(9), KEY (id)) ENGINE=MyISAM",
    "DROP TABLE bad",
    "CREATE TABLE bad (id INT NOT NULL, v VARCHAR(9), KEY (id)) ENGINE=MERGE UNION=(part)",
    "DROP TABLE part",
)


def change(capture, number):
    """Change both tables, and another one that may be routed to the same lake table."""
    for table in ("bad", "good", "beside"):
        capture.execute(f"INSERT INTO {table} (id, v) VALUES ({number}, 'new')")


def fault_of_bad(capture):
    """Run, and return why `bad` is quarantined; the drain has everything of the other tables."""
    rounds(capture, 2)
    assert cursor(capture).position == capture.head()
    (record,) = cursor(capture).quarantined_tables
    assert record.table == f"{capture.database}.bad"
    assert record.fault is not None
    return record.fault


def resumed(capture):
    """Resume `bad`; returns the ids that its new snapshot has."""
    requests.resume_table(capture.pipeline, f"{capture.database}.bad", by="test")
    assert rounds(capture, 2).quarantined == ()
    (task,) = (one for one in cursor(capture).snapshots if one.table == "bad" and not one.cancelled)
    return [row["id"] for chunk in capture.chunks(task) for row in capture.rows(chunk, "bad")]


@pytest.fixture
def made(any_server, database, tmp_path):
    """Return what captures the tables `bad`, `good` and `beside`."""

    def make(**settings):
        any_server.execute("CREATE TABLE beside (id INT PRIMARY KEY, v VARCHAR(9))", database=database)
        capture = capturing(any_server, database, tmp_path, **settings)
        capture.execute("DO SLEEP(1.1)")  # so that the next definition has a later second
        assert not capture.pipeline.plan(by="test")
        return capture

    with row_metadata(any_server, "MINIMAL"):
        yield make


def changed_unseen(made, database, **settings):
    """Capture `bad` and `beside` into one lake table, and change `bad` without a statement."""
    route = {"tables": f"{database}.b*", "into": f"{database}.all", "keys": ["schema"]}
    capture = made(routes=[route], **settings)
    change(capture, 1)
    with capture.server.connect(database=database, autocommit=True) as session, session.cursor() as sql:
        sql.execute("SET SESSION sql_log_bin = 0")
        sql.execute("ALTER TABLE bad MODIFY v VARCHAR(9) CHARACTER SET cp1250 FIRST")
    change(capture, 2)
    return capture


def test_rows_that_show_no_origin_quarantine_their_table(made, database):
    """The record says what the route lacks; with it the table is resumed."""
    capture = changed_unseen(made, database)
    fault = fault_of_bad(capture)
    assert fault.code == ConfigError.code
    assert f"rows of {database}.bad cannot be distinguished from those of {database}.beside" in fault.reason
    change(capture, 3)
    assert fault_of_bad(capture) == fault
    with pytest.raises(ConfigError, match="cannot be distinguished"):
        requests.resume_table(capture.pipeline, f"{database}.bad", by="test")
    routes = tuple(route.model_copy(update={"keys": ("table",)}) for route in capture.config.routes)
    capture.pipeline = replace(capture.pipeline, config=capture.config.model_copy(update={"routes": routes}))
    assert resumed(capture) == [1, 2, 3]


def test_without_quarantine_the_plan_names_the_table(made, database):
    capture = changed_unseen(made, database, on_error="stop")
    with pytest.raises(ConfigError, match=rf"rows of {database}\.bad cannot be distinguished"):
        capture.pipeline.plan(by="test")


def test_a_table_that_the_server_cannot_open_is_quarantined_when_its_snapshot_is_planned(made):
    """A statement asked for the snapshot, and another table took the name before it began."""
    capture = made()
    change(capture, 1)
    capture.execute(LOSSY)
    rounds(capture)
    assert cursor(capture).tables_to_resnapshot == (f"{capture.database}.bad",)
    for statement in UNREADABLE:
        capture.execute(statement)
    capture.execute("INSERT INTO good VALUES (2, 'new')")
    assert fault_of_bad(capture).code == TableUnreadable.code
    capture.execute(UNREADABLE[0])
    capture.execute("INSERT INTO part VALUES (7, 'part')")
    assert resumed(capture) == [7]
