"""Snapshots that are read over several runs, in every mode: the other tables of the source are merged in each run."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from cdc_lib import requests
from cdc_lib.model.cursor import DRAIN, LAKE
from tests.harness.binlog.capture import SOURCE
from tests.harness.lake.rounds import merge_round
from tests.harness.lake.verify import Compared

MODES = {"m": "mirror", "s": "soft_delete", "h": "scd2", "l": "append"}
OVER = datetime(2000, 1, 1, tzinfo=UTC)
"""A time at which reading ends: each run reads one chunk of each table, or of each range."""

READ = {"whole": {"chunk_rows": 2}, "in ranges": {"chunk_rows": 1, "range_bytes": 1, "max_ranges": 2}}


@pytest.fixture(params=READ)
def source(request, any_server, database, tmp_path, lake):
    modes = [{"tables": f"{database}.{name}", "mode": mode} for name, mode in MODES.items()]
    source = Compared(any_server, database, tmp_path, lake, modes=modes, snapshot=READ[request.param])
    for name in (*MODES, "small"):
        source.execute(f"CREATE TABLE {name} (id INT PRIMARY KEY, v VARCHAR(20), n INT)")
        source.execute(f"INSERT INTO {name} VALUES (1, 'begun', 0)")
    rows = [f"({2 * key}, 'begun', 0)" for key in range(1, 13)]
    for name in MODES:
        source.execute(f"INSERT INTO {name} VALUES {', '.join(rows)}")
        source.execute(f"ANALYZE TABLE {name}")
    source.ranges = READ[request.param].get("max_ranges", 0)
    return source


def run(source):
    """Do one run of the DAG that is over before the second chunk; returns the cut's position."""
    for unit in source.capture.pipeline.plan(by="test"):
        source.capture.pipeline.drain(unit, until=OVER)
    source.capture.pipeline.ack_drain(by="test")
    merge_round(source.capture, source.lake)
    return source.capture.pipeline.cursors.load(SOURCE, LAKE).position


def change(source, *statements):
    """Run statements for each table, in one session."""
    with source.server.connect() as connection, connection.cursor() as cursor:
        cursor.execute(f"USE {source.database}")
        for name in (*MODES, "small"):
            for statement in statements:
                cursor.execute(statement.format(t=name))
        connection.commit()


def differences(source, *names):
    """Return the tables that are compared and differ, and those that are not compared."""
    report = source.report(*(f"{source.database}.{name}" for name in names))
    found = [(one.table.table, one.skipped, one.rows) for one in report.tables if one.skipped or not one.clean]
    return [one for one in found if not one[1]], {name: why for name, why, _ in found if why}


def read_to_the_end(source, changes):
    """Run until no table is read or held, with a change before each run; the cut moves in each. Returns the number of runs."""
    for number in range(1, 12):
        source.execute("UPDATE small SET n = n + 1")
        if changes:
            change(source, *changes.pop(0))
        cursors = source.capture.pipeline.cursors
        before = cursors.load(SOURCE, LAKE).position
        assert before < run(source)
        reading = {task.table for task in cursors.load(SOURCE, DRAIN).open_snapshots}
        held = {one.table.table for one in cursors.load(SOURCE, LAKE).held}
        if not reading | held:
            return number
        if number == 2:
            assert reading == held == MODES.keys()
            tasks = cursors.load(SOURCE, DRAIN).open_snapshots
            assert {len(task.ranges) for task in tasks} == {source.ranges}
            wrong, skipped = differences(source)
            assert (wrong, skipped.keys()) == ([], held)
    raise AssertionError(number)


CHANGES = [
    # Rows before and after what is read: changed, deleted, inserted, moved, deleted and inserted again.
    ["UPDATE {t} SET v = 'one' WHERE id IN (1, 2, 12)", "DELETE FROM {t} WHERE id IN (4, 10)", "INSERT INTO {t} VALUES (3, 'new', 1)"],
    ["UPDATE {t} SET id = 40 WHERE id = 2", "UPDATE {t} SET id = 0 WHERE id = 12", "INSERT INTO {t} VALUES (4, 'again', 2)"],
    # A list of changes has no row yet that an incomplete image of a later chunk's row could be completed from.
    ["SET SESSION binlog_row_image = IF('{t}' = 'l', 'FULL', 'MINIMAL')", "UPDATE {t} SET n = 3 WHERE id IN (1, 6, 8)"],
    ["ALTER TABLE {t} ADD COLUMN w INT DEFAULT 9", "DELETE FROM {t} WHERE id IN (4, 40)", "UPDATE {t} SET w = 1 WHERE id = 6"],
]  # fmt: skip


def test_tables_of_every_mode_are_read_over_runs_and_then_equal_the_source(source):
    """First for the first time, then again; a table is not compared while it is read, and the others are as of each cut."""
    run(source)
    assert read_to_the_end(source, list(CHANGES)) >= len(CHANGES)
    run(source)
    assert differences(source) == ([], {})
    source.execute("DELETE FROM small")
    requests.resnapshot(
        source.capture.pipeline, [f"{source.database}.{name}" for name in MODES], by="test", why="to be sure"
    )
    again = [["UPDATE {t} SET v = 'again', n = 9 WHERE id IN (1, 8)", "DELETE FROM {t} WHERE id IN (0, 6)"],
             ["INSERT INTO {t} (id, v, n) VALUES (6, 'back', 1), (30, 'late', 1)"]]  # fmt: skip
    assert read_to_the_end(source, again) > 2
    run(source)
    assert differences(source) == ([], {})


def test_a_table_that_is_emptied_while_it_is_read_has_what_came_later(source):
    """TRUNCATE is merged with the snapshot, in its place among the changes."""
    run(source)
    change(source, "TRUNCATE TABLE {t}", "INSERT INTO {t} VALUES (2, 'later', 1), (9, 'later', 1)")
    read_to_the_end(source, [["UPDATE {t} SET n = 2"]])
    run(source)
    assert differences(source) == ([], {})


@pytest.mark.parametrize("source", ["in ranges"], indirect=True)
def test_a_table_that_is_replaced_while_it_is_read_has_the_rows_of_the_new_one(source):
    """DROP and CREATE are merged with the snapshot too; what is read afterwards is of the new table."""
    run(source)
    change(
        source,
        "DROP TABLE {t}",
        "CREATE TABLE {t} (id INT PRIMARY KEY, v VARCHAR(20), n INT)",
        "INSERT INTO {t} VALUES (2, 'new', 1), (8, 'new', 1), (90, 'new', 1)",
    )
    read_to_the_end(source, [["UPDATE {t} SET n = 2 WHERE id = 8"]])
    run(source)
    assert differences(source) == ([], {})
