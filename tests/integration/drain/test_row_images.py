"""Rows whose images lack columns hold what the binlog tells, and say of each cell whether it does."""

from __future__ import annotations

import pytest

from cdc_lib.model.manifest import ABSENT
from cdc_lib.status.overview import status_of
from tests.harness.binlog.capture import Capture
from tests.harness.lake.rounds import drain_round
from tests.harness.servers.features import has

SETTING = "SET SESSION binlog_row_image = '{}'"


@pytest.fixture
def capture(any_server, database, tmp_path):
    return Capture(any_server, database, tmp_path)


def in_session(capture, image, *statements):
    with capture.server.connect(database=capture.database) as session, session.cursor() as cursor:
        cursor.execute(SETTING.format(image))
        for statement in statements:
            cursor.execute(statement)


def changes_of(capture, start, table="a"):
    """Of each change: op, values in the order of the columns, and which cells are there."""
    manifest = capture.drain(capture.window_from(start))
    [schema] = {one.table: one for one in manifest.schemas.values() if one.table == table}.values()
    names = [column.name for column in schema.columns]
    rows = capture.rows(manifest, table)
    return [(row["_op"], *(row[name] for name in names), row.get(ABSENT)) for row in rows]


def test_a_minimal_update_holds_the_key_and_what_changed(capture):
    """NULL that was assigned is distinguished from a cell that is not there; a delete has its key."""
    capture.execute("CREATE TABLE a (id INT PRIMARY KEY, v VARCHAR(20), n INT)")
    capture.execute("INSERT INTO a VALUES (1, 'x', 10), (2, 'y', 20)")
    start = capture.head()
    in_session(capture, "MINIMAL", "UPDATE a SET v = NULL WHERE id = 1", "DELETE FROM a WHERE id = 2")
    assert changes_of(capture, start) == [("u", 1, None, None, "++-"), ("d", 2, None, None, "+--")]


def test_a_minimal_insert_lacks_what_took_its_default(capture):
    """Literal defaults are not logged, those of expressions are, and texts have no literal ones: without them they are NULL."""
    capture.execute(
        "CREATE TABLE a (id INT PRIMARY KEY, n INT DEFAULT 5, e TEXT DEFAULT ('abc'), t TEXT, w TEXT NOT NULL)"
    )
    start = capture.head()
    in_session(
        capture, "MINIMAL", "INSERT INTO a (id, w) VALUES (1, 'w')", "INSERT INTO a VALUES (2, 3, 'e', 't', 'w')"
    )
    assert changes_of(capture, start) == [("c", 1, None, "abc", None, "w", "+-+++"), ("c", 2, 3, "e", "t", "w", None)]


@pytest.mark.parametrize("columns", ["n INT UNSIGNED NOT NULL DEFAULT 2 PRIMARY KEY", "n INT DEFAULT 2, v INT"])
def test_a_table_is_read_again_after_an_insert_of_which_mysql_logs_nothing(
    mysql_server, mysql_database, tmp_path, columns
):
    """Such an event has no byte of a row, so it does not say how many there are."""
    capture = Capture(mysql_server, mysql_database, tmp_path)
    capture.execute(f"CREATE TABLE a ({columns})")
    drain_round(capture)
    in_session(capture, "MINIMAL", "INSERT INTO a () VALUES ()")
    drain_round(capture)
    assert [one.table for one in status_of(capture.pipeline).drain.tables_to_resnapshot] == ["a"]
    drain_round(capture)
    assert len(status_of(capture.pipeline).drain.snapshots) == 2
    assert not status_of(capture.pipeline).drain.quarantined_tables


@pytest.mark.parametrize("image", ["MINIMAL", "NOBLOB"])
def test_columns_that_a_replace_gives_their_defaults_are_never_taken_for_unchanged(
    mariadb_server, mariadb_database, tmp_path, image
):
    """MariaDB makes an update of a REPLACE, and leaves them out of its image: also of one in a trigger, or with blanks in front."""
    capture = Capture(mariadb_server, mariadb_database, tmp_path)
    capture.execute("CREATE TABLE a (id INT PRIMARY KEY, v INT, n INT, t TEXT)")
    capture.execute("CREATE TABLE beside (id INT PRIMARY KEY, n INT)")
    capture.execute("INSERT INTO a VALUES (1, 2, 3, 'one'), (2, 3, 4, 'two')")
    capture.execute("INSERT INTO beside VALUES (1, 1)")
    statements = [
        ("UPDATE a SET n = 5 WHERE id = 1", "-"),
        ("INSERT INTO a (id, n) VALUES (1, 6) ON DUPLICATE KEY UPDATE n = 6", "-"),
        (" \t/* UPDATE */ replace INTO a (id, n) VALUES (1, 7)", "?"),
        ("/*!100000 REPLACE */ INTO a (id, n) VALUES (1, 8)", "?"),
        ("UPDATE a, beside SET a.n = 9, beside.n = 9 WHERE a.id = 1", "?"),
        ("/* REPLACE */ update a SET n = 10 WHERE id = 1", "-"),
    ]
    start = capture.head()
    in_session(capture, image, *(one for one, _ in statements))
    capture.execute(
        "CREATE TRIGGER beside_of BEFORE UPDATE ON beside FOR EACH ROW REPLACE INTO a (id, n) VALUES (2, NEW.n)"
    )
    in_session(capture, image, "UPDATE beside SET n = 11")
    in_session(capture, image, "SET SESSION binlog_annotate_row_events = OFF", "UPDATE a SET n = 12 WHERE id = 1")
    rest = ["?", "?"]
    found = changes_of(capture, start)
    n = [row[3] for row in found]
    assert n == [5, 6, 7, 8, 9, 10, 11, 12]
    marks = [mark for _, mark in statements] + rest
    shape = "+{0}+{0}" if image == "MINIMAL" else "+++{0}"
    for row, mark in zip(found, marks, strict=True):
        assert row[-1] == shape.format(mark), row


def test_a_changed_key_becomes_delete_of_the_old_and_update_of_the_new(capture):
    """What did not change is in neither image."""
    capture.execute("CREATE TABLE a (x INT, y VARCHAR(9), v INT, PRIMARY KEY (y, x))")
    capture.execute("INSERT INTO a VALUES (1, 'p', 7), (2, 'q', 8)")
    start = capture.head()
    in_session(capture, "MINIMAL", "UPDATE a SET x = 5 WHERE x = 1", "UPDATE a SET v = 0 WHERE x = 2")
    assert changes_of(capture, start) == [
        ("d", 1, "p", None, "++-"),
        ("u", 5, "p", None, "++-"),
        ("u", 2, "q", 0, None),
    ]


def test_rows_without_a_key_are_whole_in_both_images(capture):
    """The server logs all of the old row, and the new one is the old with what changed."""
    capture.execute("CREATE TABLE a (n INT, v VARCHAR(20), t TEXT)")
    capture.execute("INSERT INTO a VALUES (1, 'x', 'long'), (2, 'y', NULL)")
    for image in ("MINIMAL", "NOBLOB"):
        start = capture.head()
        in_session(capture, image, f"UPDATE a SET v = '{image}' WHERE n = 1")
        before, after = changes_of(capture, start)
        assert (before[0], before[3], before[4]) == ("d", "long", None)
        assert after == ("u", 1, image, "long", None)
    start = capture.head()
    in_session(capture, "MINIMAL", "DELETE FROM a WHERE n = 2")
    assert changes_of(capture, start) == [("d", 2, "y", None, None)]


def test_noblob_lacks_texts_that_did_not_change(capture):
    """All else is in the images."""
    capture.execute("CREATE TABLE a (id INT PRIMARY KEY, v INT, t TEXT, b BLOB)")
    start = capture.head()
    in_session(
        capture,
        "NOBLOB",
        "INSERT INTO a (id, v, t) VALUES (1, 1, 'one')",
        "UPDATE a SET v = 2",
        "UPDATE a SET b = x'00', t = NULL",
        "DELETE FROM a",
    )
    assert changes_of(capture, start) == [
        ("c", 1, 1, "one", None, None),
        ("u", 1, 2, None, None, "++--"),
        ("u", 1, 2, None, b"\0", None),
        ("d", 1, 2, None, None, "++--"),
    ]


def test_a_unique_key_finds_rows_of_a_table_without_a_primary_key(capture):
    """The images then have it and what changed."""
    capture.execute("CREATE TABLE a (n INT, k INT NOT NULL, v INT, UNIQUE (k))")
    capture.execute("INSERT INTO a VALUES (1, 2, 3)")
    start = capture.head()
    in_session(capture, "MINIMAL", "UPDATE a SET v = 4", "DELETE FROM a")
    assert changes_of(capture, start) == [("u", None, 2, 4, "-++"), ("d", None, 2, None, "-+-")]


def test_snapshot_and_binlog_agree_on_the_key_of_a_table_without_a_primary_key(capture):
    """The server takes a unique key without NULL for it, and not one of a part of a column or one that allows NULL."""
    keys = {
        "a": "UNIQUE n1 (n), UNIQUE u2 (m, k), UNIQUE u1 (z), UNIQUE u3 (s(5))",
        "b": "UNIQUE n1 (n), UNIQUE u3 (s(5))",
        "c": "PRIMARY KEY (k, m), UNIQUE u1 (z)",
    }
    for name, declared in keys.items():
        columns = "n INT, k INT NOT NULL, m INT NOT NULL, z INT NOT NULL, s VARCHAR(20) NOT NULL"
        capture.execute(f"CREATE TABLE {name} ({columns}, {declared})")
    start = capture.head()
    for name in keys:
        capture.execute(f"INSERT INTO {name} VALUES (1, 2, 3, 4, 'five')")
    window = capture.drain(capture.window_from(start))
    found = {schema.table: schema.primary_key for schema in window.schemas.values()}
    assert found == {"a": ("m", "k"), "b": (), "c": ("k", "m")}
    for name in keys:
        (chunk,) = capture.snapshot(name)
        assert [schema.id for schema in window.schemas.values() if schema.table == name] == list(chunk.schemas)


def test_a_session_may_change_its_row_image_in_mid_stream(capture, tmp_path):
    """Whole rows and others lie in files of their own; the same window drained twice gives the same bytes."""
    capture.execute("CREATE TABLE a (id INT PRIMARY KEY, v INT, n INT)")
    start = capture.head()
    capture.execute("INSERT INTO a VALUES (1, 0, 9), (2, 0, 9)")
    for turn in range(1, 4):
        in_session(capture, "MINIMAL", f"UPDATE a SET v = {turn} WHERE id = 1")
        in_session(capture, "FULL", f"UPDATE a SET v = {turn} WHERE id = 2")
    window = capture.window_from(start)
    manifest = capture.drain(window)
    again = Capture(capture.server, capture.database, tmp_path / "again")
    assert again.drain(window).files == manifest.files
    whole, partial = manifest.files
    assert (whole.rows, whole.partial_rows, partial.rows, partial.partial_rows) == (5, 0, 3, 3)
    marks = [(row["id"], row["v"], row["n"], row.get(ABSENT)) for row in capture.rows(manifest, "a")]
    assert marks[2:4] == [(1, 1, None, "++-"), (2, 1, 9, None)]
    assert marks[-2:] == [(1, 3, None, "++-"), (2, 3, 9, None)]


def test_generated_columns_have_values_or_are_marked_as_unknown(capture):
    """MariaDB leaves out a changed virtual column that no index needs, and 11.8 a stored one too."""
    capture.execute("CREATE TABLE a (id INT PRIMARY KEY, n INT, g INT AS (n + 1) VIRTUAL, s INT AS (n + 2) STORED)")
    capture.execute("INSERT INTO a (id, n) VALUES (1, 1)")
    start = capture.head()
    in_session(capture, "MINIMAL", "UPDATE a SET n = 8")
    mysql, omitted = capture.server.flavor == "mysql", has(capture.server, "row images without generated columns")
    stored, marks = (None, "++??") if omitted else (10, None if mysql else "++?+")
    assert changes_of(capture, start) == [("u", 1, 8, 9 if mysql else None, stored, marks)]


@pytest.mark.parametrize("image", ["MINIMAL", "NOBLOB"])
def test_default_texts_of_mariadb_are_in_the_image(mariadb_server, mariadb_database, tmp_path, image):
    """It allows literal ones for texts, and logs them as it does expressions; triggers too may fill a text."""
    capture = Capture(mariadb_server, mariadb_database, tmp_path)
    capture.execute("CREATE TABLE a (id INT PRIMARY KEY, t TEXT DEFAULT 'abc', j JSON DEFAULT '{}', b BLOB, n TEXT)")
    capture.execute("CREATE TRIGGER f BEFORE INSERT ON a FOR EACH ROW SET NEW.b = CONCAT('b', NEW.id)")
    start = capture.head()
    in_session(capture, image, "INSERT INTO a (id) VALUES (1)", "INSERT INTO a (id, t) VALUES (2, DEFAULT)")
    assert changes_of(capture, start) == [("c", i, "abc", "{}", f"b{i}".encode(), None, None) for i in (1, 2)]


@pytest.mark.parametrize("image", ["MINIMAL", "NOBLOB"])
def test_generated_texts_are_right_or_marked(capture, image):
    """They are BLOBs to the server, and NULL is not their default."""
    columns = "v TEXT AS (CONCAT('v', n)) VIRTUAL, s TEXT AS (CONCAT('s', n)) STORED"
    capture.execute(f"CREATE TABLE a (id INT PRIMARY KEY, n INT, {columns})")
    start = capture.head()
    in_session(capture, image, "INSERT INTO a (id, n) VALUES (1, 1)", "UPDATE a SET n = 2", "UPDATE a SET n = NULL")
    found = changes_of(capture, start)
    assert [row[2] for row in found] == [1, 2, None]
    omitted = has(capture.server, "row images without generated columns")
    for (op, *_, v, s, absent), wanted in zip(found, [1, 2, None], strict=True):
        marks = absent or "++++"
        right = {name: None if wanted is None else f"{name}{wanted}" for name in "vs"}
        assert marks[3] == ("?" if omitted and op == "u" else "+"), found
        unknown = "?" if op == "u" else "-"  # "-" of an update is the value of the row before
        for name, value, mark in zip("vs", (v, s), marks[2:], strict=True):
            assert value == right[name] if mark == "+" else (mark, capture.server.flavor) == (unknown, "mariadb"), found


@pytest.mark.needs("row images without duplicates")
def test_full_nodup_is_whole(mariadb_server, mariadb_database, tmp_path):
    """MariaDB's image without what did not change, which the old row holds."""
    capture = Capture(mariadb_server, mariadb_database, tmp_path)
    capture.execute("CREATE TABLE a (id INT PRIMARY KEY, n INT, t TEXT)")
    start = capture.head()
    in_session(capture, "FULL_NODUP", "INSERT INTO a VALUES (1, 2, 't')", "UPDATE a SET n = 3", "DELETE FROM a")
    assert changes_of(capture, start) == [("c", 1, 2, "t", None), ("u", 1, 3, "t", None), ("d", 1, 3, "t", None)]
