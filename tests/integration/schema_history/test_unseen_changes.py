"""Tables that are changed without a statement in the binlog, at a server that leaves columns unnamed."""

from __future__ import annotations

import pytest

from cdc_lib import requests
from cdc_lib.config.start import StartAt
from cdc_lib.store import layout
from tests.harness.binlog.capture import Capture, row_metadata

BEFORE = "CREATE TABLE a (id INT PRIMARY KEY, x INT NOT NULL, y INT NOT NULL, e ENUM('new', 'old') NOT NULL)"

UNSEEN = {
    "columns change places": "ALTER TABLE a MODIFY y INT NOT NULL AFTER id",
    "columns change names": "ALTER TABLE a CHANGE x y INT NOT NULL, CHANGE y x INT NOT NULL",
    "labels change places": "ALTER TABLE a MODIFY e ENUM('old', 'new') NOT NULL",
    "another key": "ALTER TABLE a DROP PRIMARY KEY, ADD PRIMARY KEY (x)",
}


@pytest.fixture
def capture(any_server, database, tmp_path):
    """A source with a table whose rows are read and merged up to now; its definition is older than a second."""
    with row_metadata(any_server, "MINIMAL"):
        capture = Capture(any_server, database, tmp_path, start="latest")
        capture.execute(BEFORE)
        capture.execute("CREATE TABLE other (id INT PRIMARY KEY)")
        capture.execute("DO SLEEP(1.1)")
        assert not capture.pipeline.plan(by="test")
        yield capture


def unseen(capture, statement):
    """Run a statement that the binlog does not have."""
    with capture.server.connect(database=capture.database, autocommit=True) as session, session.cursor() as cursor:
        cursor.execute("SET SESSION sql_log_bin = 0")
        cursor.execute(statement)


def drained(capture):
    """Plan, drain and acknowledge; returns the manifests of windows and of chunks."""
    units = capture.pipeline.plan(by="test")
    for unit in units:
        capture.pipeline.drain(unit)
    capture.pipeline.ack_drain(by="test")
    windows = [capture.manifest(layout.manifest_key(unit)) for unit in units if hasattr(unit, "stop")]
    return windows, [chunk for unit in units if not hasattr(unit, "stop") for chunk in capture.chunks(unit)]


def cells(capture, manifests):
    """The rows of the table, as a SELECT of named columns shows them."""
    rows = [row for manifest in manifests for row in capture.rows(manifest, "a")]
    return [(row["id"], row["x"], row["y"], row["e"]) for row in rows]


def at_source(capture):
    return list(capture.execute("SELECT id, x, y, e FROM a ORDER BY id"))


@pytest.mark.parametrize("statement", UNSEEN.values(), ids=UNSEEN)
def test_rows_around_an_unseen_change_come_from_a_new_snapshot(capture, statement):
    """Rows before the change and after it lie in one window, which leaves the table out; other tables are read."""
    capture.execute("INSERT INTO a VALUES (1, 10, 20, 'new')")
    unseen(capture, statement)
    capture.execute("INSERT INTO a (id, x, y, e) VALUES (2, 11, 21, 'old')")
    capture.execute("INSERT INTO other VALUES (1)")
    windows, chunks = drained(capture)
    assert cells(capture, windows) == []
    assert [row["id"] for row in capture.rows(windows[0], "other")] == [1]
    assert sorted(cells(capture, chunks)) == at_source(capture)
    capture.execute("INSERT INTO a (id, x, y, e) VALUES (3, 12, 22, 'old')")
    windows, chunks = drained(capture)
    assert cells(capture, windows) == [(3, 12, 22, "old")]
    assert not chunks


@pytest.mark.parametrize("statement", UNSEEN.values(), ids=UNSEEN)
def test_an_unseen_change_is_noticed_while_nothing_else_happens(capture, statement):
    """The binlog ends where the table's last version begins: the new definition holds from there on."""
    for _ in range(2):
        unseen(capture, statement)
        windows, chunks = drained(capture)
        assert not cells(capture, windows)
        assert sorted(cells(capture, chunks)) == at_source(capture)
        capture.execute("DO SLEEP(1.1)")
        assert not drained(capture)[1]
        if statement == UNSEEN["another key"]:
            break
        statement = BACK.get(statement, statement)
    capture.execute("INSERT INTO a (id, x, y, e) VALUES (3, 12, 22, 'old')")
    windows, chunks = drained(capture)
    assert cells(capture, windows) == [(3, 12, 22, "old")]


@pytest.mark.parametrize("noticed", [True, False])
@pytest.mark.parametrize("back", [False, True])
@pytest.mark.parametrize("statement", UNSEEN.values(), ids=UNSEEN)
def test_a_rewind_over_an_unseen_change_reads_no_row_with_the_other_definition(capture, statement, noticed, back):
    """Whether a plan had noticed the change before or not, and also if a second one took it back: the rows come from a new snapshot."""
    if back and (statement not in BACK or not noticed):
        pytest.skip("no plan can know of it")
    start = str(capture.head())
    capture.execute("INSERT INTO a VALUES (1, 10, 20, 'new')")
    capture.execute("INSERT INTO other VALUES (1)")
    assert cells(capture, drained(capture)[0]) == [(1, 10, 20, "new")]
    for change in (statement, *([BACK[statement]] if back else [])):
        unseen(capture, change)
        capture.execute(
            "INSERT INTO a (id, x, y, e) SELECT COALESCE(MAX(id), 0) + 1, 11 + MAX(id), 21 + MAX(id), 'old' FROM a"
        )
        if noticed:
            assert drained(capture)[1]
            capture.execute("DO SLEEP(1.1)")
            drained(capture)
    requests.rewind(capture.pipeline, StartAt(position=start), by="test", why="to read again")
    windows, chunks = drained(capture)
    assert cells(capture, windows) == []
    assert [row["id"] for window in windows for row in capture.rows(window, "other")] == [1]
    chunks += drained(capture)[1]  # the window left the table out, so that the next plan reads it
    assert sorted(cells(capture, chunks)) == at_source(capture)
    capture.execute("INSERT INTO a (id, x, y, e) VALUES (30, 120, 220, 'old')")
    assert cells(capture, drained(capture)[0]) == [(30, 120, 220, "old")]


def test_a_rewind_over_a_statement_reads_each_row_with_its_definition(capture):
    """No new snapshot is needed for a table of which all changes are in the binlog."""
    start = str(capture.head())
    capture.execute("INSERT INTO a VALUES (1, 10, 20, 'new')")
    drained(capture)
    requests.rewind(capture.pipeline, StartAt(position=start), by="test", why="to read again")
    windows, chunks = drained(capture)
    assert (cells(capture, windows), chunks) == ([(1, 10, 20, "new")], [])


@pytest.mark.parametrize("after", ["ALTER TABLE a ADD z INT", "DROP TABLE a"])
def test_rows_before_a_statement_are_read_by_what_the_epoch_before_knew(capture, after):
    """A rewind leads to before the statement; the server tells what the table is after it."""
    start = str(capture.head())
    capture.execute("INSERT INTO a VALUES (1, 10, 20, 'new')")
    capture.execute("ALTER TABLE a MODIFY y INT NOT NULL AFTER id")
    capture.execute("INSERT INTO a (id, x, y, e) VALUES (2, 11, 21, 'old')")
    capture.execute(after)
    capture.execute("INSERT INTO other VALUES (1)")
    first, _ = drained(capture)
    requests.rewind(capture.pipeline, StartAt(position=start), by="test", why="to read again")
    windows, chunks = drained(capture)
    rows = [(1, 10, 20, "new"), (2, 11, 21, "old")]
    assert (cells(capture, first), cells(capture, windows), chunks) == (rows, rows, [])
    assert not capture.pipeline.plan(by="test")


@pytest.mark.parametrize("statement", UNSEEN.values(), ids=UNSEEN)
def test_a_change_that_no_plan_noticed_before_a_statement_and_a_rewind_is_no_ones_definition(capture, statement):
    """The statements do not lead from what the epoch before knew to what the server has."""
    start = str(capture.head())
    capture.execute("INSERT INTO a VALUES (1, 10, 20, 'new')")
    drained(capture)
    unseen(capture, statement)
    capture.execute("INSERT INTO a (id, x, y, e) VALUES (2, 11, 21, 'old')")
    capture.execute("ALTER TABLE a ADD z INT")
    requests.rewind(capture.pipeline, StartAt(position=start), by="test", why="to read again")
    windows, chunks = drained(capture)
    assert cells(capture, windows) == []
    chunks += drained(capture)[1]
    assert sorted(cells(capture, chunks)) == at_source(capture)


BACK = {
    UNSEEN["columns change places"]: "ALTER TABLE a MODIFY y INT NOT NULL AFTER x",
    UNSEEN["labels change places"]: "ALTER TABLE a MODIFY e ENUM('new', 'old') NOT NULL",
}
