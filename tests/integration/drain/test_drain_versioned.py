"""Tables WITH SYSTEM VERSIONING (MariaDB): no row of the past comes among those of now."""

from __future__ import annotations

import pytest

from cdc_lib.errors import UnsupportedServer, UnsupportedValue
from cdc_lib.model.window import Window
from cdc_lib.status.overview import findings_of
from tests.harness.binlog.capture import Capture
from tests.harness.shop.quarantine import cursor, manifest_of, rounds


def test_a_table_with_system_versioning_stops_the_plan_and_the_window(mariadb_server, mariadb_database, tmp_path):
    """A DELETE of it is an UPDATE in the binlog; no row of the past may pass for one of now."""
    capture = Capture(mariadb_server, mariadb_database, tmp_path / "stop", start="latest")
    quarantining = Capture(
        mariadb_server, mariadb_database, tmp_path / "quarantine", start="latest", on_error="quarantine"
    )
    capture.execute(
        "CREATE TABLE b (id INT PRIMARY KEY, row_start TIMESTAMP(6) NOT NULL, row_end TIMESTAMP(6) NOT NULL)"
    )
    assert not capture.pipeline.plan(by="test")
    capture.execute("CREATE TABLE a (id INT PRIMARY KEY, v INT) WITH SYSTEM VERSIONING")
    capture.execute("CREATE TABLE c (id INT PRIMARY KEY, s TIMESTAMP(6) AS ROW START, e TIMESTAMP(6) AS ROW END, "
                    "PERIOD FOR SYSTEM_TIME (s, e)) WITH SYSTEM VERSIONING")  # fmt: skip
    start = capture.head()
    capture.execute("INSERT INTO b VALUES (1, NOW(6), NOW(6))")
    assert capture.ops(capture.drain(capture.window_from(start)), "b") == [("c", 1)]
    capture.execute("INSERT INTO a VALUES (1, 1)")
    capture.execute("DELETE FROM a")
    with pytest.raises(
        UnsupportedServer, match=rf"{mariadb_database}\.a, {mariadb_database}\.c.*SYSTEM VERSIONING.*Exclude"
    ):
        capture.pipeline.plan(by="test")
    (finding,) = [one for one in findings_of(capture.pipeline) if "SYSTEM VERSIONING" in one.what]
    assert finding.level == "error"
    window = capture.window_from(start)
    with pytest.raises(UnsupportedValue, match="SYSTEM VERSIONING") as caught:
        capture.drain(window)
    assert caught.value.context["table"] == f"{mariadb_database}.a"
    manifest = quarantining.drain(window)
    assert [one.table for one in manifest.quarantined] == [f"{mariadb_database}.a"]
    assert quarantining.ops(manifest, "b") == [("c", 1)]


_PERIODS = {
    "implicit": "v INT",
    "keyless": "v INT, s TIMESTAMP(6) AS ROW START, e TIMESTAMP(6) AS ROW END, PERIOD FOR SYSTEM_TIME (s, e)",
    "first": "e TIMESTAMP(6) AS ROW END INVISIBLE, s TIMESTAMP(6) AS ROW START INVISIBLE, v INT, PRIMARY KEY (id), "
    "PERIOD FOR SYSTEM_TIME (s, e)",
}


@pytest.mark.parametrize("begins", ["latest", "snapshot"])
@pytest.mark.parametrize("columns", _PERIODS)
def test_a_plan_quarantines_the_tables_with_system_versioning(
    mariadb_server, mariadb_database, tmp_path, columns, begins
):
    """A period's columns have any names and any place: their rows do not show what they are."""
    capture = Capture(mariadb_server, mariadb_database, tmp_path, start=begins, on_error="quarantine")
    capture.execute("CREATE TABLE b (id INT PRIMARY KEY)")
    rounds(capture)
    for table in "ac":
        capture.execute(f"CREATE TABLE {table} (id INT, {_PERIODS[columns]}) WITH SYSTEM VERSIONING")
        capture.execute(f"INSERT INTO {table} (id) VALUES (1), (2)")
        capture.execute(f"DELETE FROM {table} WHERE id = 1")
        capture.execute("INSERT INTO b VALUES (%s)", (ord(table),))
        windows = [unit for unit in capture.pipeline.plan(by="test") if isinstance(unit, Window)]
        rounds(capture)
        manifests = [manifest_of(capture, window) for window in windows]
        assert [op for one in manifests for op in capture.ops(one, "b")] == [("c", ord(table))]
        assert [op for one in manifests for op in capture.ops(one, table)] == []
    now = cursor(capture)
    records = {one.table.pair[1]: one.fault for one in now.quarantined_tables}
    assert records.keys() == {"a", "c"}
    assert all(fault is not None and "SYSTEM VERSIONING" in fault.reason for fault in records.values())
    assert {task.table for task in now.snapshots} <= {"b"}


def test_rows_of_the_past_that_went_within_a_window_cost_a_snapshot(mariadb_server, mariadb_database, tmp_path):
    """The table is an ordinary one again when the plan looks."""
    capture = Capture(mariadb_server, mariadb_database, tmp_path, on_error="quarantine")
    capture.execute("CREATE TABLE a (id INT PRIMARY KEY)")
    rounds(capture)
    capture.execute(
        "ALTER TABLE a ADD s TIMESTAMP(6) AS ROW START, ADD e TIMESTAMP(6) AS ROW END, "
        "ADD PERIOD FOR SYSTEM_TIME (s, e), ADD SYSTEM VERSIONING"
    )
    capture.execute("INSERT INTO a (id) VALUES (1), (2)")
    capture.execute("DELETE FROM a WHERE id = 1")
    capture.execute(
        "SET STATEMENT system_versioning_alter_history = KEEP FOR "
        "ALTER TABLE a DROP s, DROP e, DROP PERIOD FOR SYSTEM_TIME, DROP SYSTEM VERSIONING"
    )
    rounds(capture, 3)
    again = [task for task in cursor(capture).snapshots if task.table == "a"][-1]
    assert [op for chunk in capture.chunks(again) for op in capture.ops(chunk, "a")] == [("r", 2)]
