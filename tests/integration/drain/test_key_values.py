"""No value of a key becomes null or another's on its way, in windows and in snapshots alike."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest

from cdc_lib import requests
from cdc_lib.errors import DateInKey, UnsupportedValue
from cdc_lib.model.cursor import DRAIN
from cdc_lib.model.position import Point
from cdc_lib.model.table_name import TableName
from cdc_lib.reselect.result import Reread
from cdc_lib.reselect.rows import Reselector
from cdc_lib.snapshot import key_dates
from cdc_lib.store import layout
from tests.harness.binlog.capture import Capture
from tests.harness.binlog.lax_session import lax
from tests.harness.lake.rounds import drain_round

INVALID = ["0000-00-00", "2024-00-10", "2024-02-31"]


@pytest.fixture
def capture(any_server, database, tmp_path):
    """Chunks of two rows begin and end at such keys."""
    return Capture(any_server, database, tmp_path, snapshot={"chunk_rows": 2})


def cursor_of(capture):
    return capture.pipeline.cursors.load(capture.config.source, DRAIN)


def snapshot_rows(capture, table):
    """The rows of the last snapshot of a table."""
    task = [one for one in cursor_of(capture).snapshots if one.table == table and not one.cancelled][-1]
    chunks = capture.chunks(task)
    return [row for chunk in chunks for one in capture.tables(chunk, table) for row in one.to_pylist()]


def last_window(capture):
    """Drain a round, and return the manifest of its last window."""
    units = capture.pipeline.plan(by="test")
    for unit in units:
        capture.pipeline.drain(unit)
    capture.pipeline.ack_drain(by="test")
    return capture.manifest(layout.manifest_key(units[-1]))


def test_a_snapshot_holds_dates_that_are_no_days_as_text_only_where_a_key_has_them(capture):
    """Of the key: other columns keep their type, where such a date is null, and so do keys without such a date."""
    lax(
        capture,
        "CREATE TABLE wrong (d DATE, at DATETIME(3), seen DATE, PRIMARY KEY (d, at))",
        *(f"INSERT INTO wrong VALUES ('{day}', '{day} 01:02:03.040', '{day}')" for day in INVALID),
        "CREATE TABLE days (d DATE PRIMARY KEY)",
        "INSERT INTO days VALUES ('2024-02-29')",
    )
    drain_round(capture)
    assert cursor_of(capture).text_keys == (TableName(capture.database, "wrong"),)
    rows = [(row["d"], row["at"], row["seen"]) for row in snapshot_rows(capture, "wrong")]
    assert rows == [(day, f"{day} 01:02:03.040", None) for day in INVALID]
    assert [str(row["d"]) for row in snapshot_rows(capture, "days")] == ["2024-02-29"]
    assert [type(row["d"]) for row in snapshot_rows(capture, "days")] != [str]


def test_a_window_with_such_a_date_leaves_the_table_out_and_a_snapshot_with_texts_follows(capture):
    """Also with on_error: stop; the rows of other tables stay, and later windows have the texts of both images."""
    lax(
        capture,
        "CREATE TABLE t (d DATE PRIMARY KEY, v INT)",
        "INSERT INTO t VALUES ('2024-01-01', 1)",
        "CREATE TABLE other (id INT PRIMARY KEY)",
    )
    drain_round(capture)
    lax(capture, "INSERT INTO t VALUES ('0000-00-00', 2)", "INSERT INTO other VALUES (7)")
    found = last_window(capture)
    assert [(one.table.table, one.fault.code) for one in found.quarantined] == [("t", DateInKey.code)]
    assert [one.table.table for one in found.files] == ["other"]
    drain_round(capture)
    assert sorted(row["d"] for row in snapshot_rows(capture, "t")) == ["0000-00-00", "2024-01-01"]
    assert cursor_of(capture).quarantined_tables == ()
    lax(capture, "UPDATE t SET d = '2024-00-10' WHERE d = '0000-00-00'", "DELETE FROM t WHERE d = '2024-01-01'")
    found = last_window(capture)
    assert found.quarantined == ()
    rows = [(row["_op"], row["d"]) for one in capture.tables(found, "t") for row in one.to_pylist()]
    assert rows == [("d", "0000-00-00"), ("u", "2024-00-10"), ("d", "2024-01-01")]


def test_a_date_that_a_plan_did_not_see_is_held_as_text_by_the_next_snapshot(capture, monkeypatch):
    """A plan looks at the first rows only."""
    monkeypatch.setattr(key_dates, "ROWS", 1)
    lax(
        capture,
        "CREATE TABLE t (id INT, d TIMESTAMP, PRIMARY KEY (id, d))",
        "INSERT INTO t VALUES (1, '2024-01-01'), (2, 0)",
    )
    drain_round(capture)
    assert [task.cancelled for task in cursor_of(capture).snapshots] == [True]
    drain_round(capture)
    assert [row["d"] for row in snapshot_rows(capture, "t")] == ["2024-01-01 00:00:00", "0000-00-00 00:00:00"]


def test_the_unique_key_of_a_table_without_a_primary_key_is_a_key(capture):
    lax(capture, "CREATE TABLE t (d DATE NOT NULL UNIQUE, v DATE)", "INSERT INTO t VALUES (0, 0)")
    drain_round(capture)
    assert [(row["d"], row["v"]) for row in snapshot_rows(capture, "t")] == [("0000-00-00", None)]


def test_zero_dates_error_stops_at_such_a_date_in_a_key(any_server, database, tmp_path):
    capture = Capture(any_server, database, tmp_path, zero_dates="error")
    lax(capture, "CREATE TABLE t (d DATE PRIMARY KEY)", "INSERT INTO t VALUES (0)")
    with pytest.raises(UnsupportedValue, match="column d: a date with a zero or impossible part"):
        drain_round(capture)


@pytest.mark.parametrize("images", [False, True], ids=["snapshot", "window"])
def test_invalid_text_of_a_key_is_not_replaced(any_server, database, tmp_path, images):
    """Two keys could become one; in other columns it is replaced."""
    capture = Capture(any_server, database, tmp_path, invalid_text="replace")
    one = "VARCHAR(9) CHARACTER SET cp1250"
    capture.execute(f"CREATE TABLE t (k {one} PRIMARY KEY, v {one})")
    if images:
        drain_round(capture)
    capture.execute("INSERT INTO t VALUES ('a', _cp1250 X'81'), (_cp1250 X'81', 'b'), (_cp1250 X'83', 'c')")
    with pytest.raises(UnsupportedValue, match="column k: bytes that are not valid") as error:
        drain_round(capture)
    assert "does not apply to keys" in error.value.hint


def test_rows_are_selected_again_by_dates_of_keys_that_are_no_days(capture):
    """Each key finds its own row, and a key without one is missing."""
    days = [*INVALID, "2024-02-29"]
    lax(
        capture,
        "CREATE TABLE t (d DATE, at DATETIME(3), PRIMARY KEY (d, at))",
        *(f"INSERT INTO t VALUES ('{day}', '{day}')" for day in days),
    )
    drain_round(capture)
    keys = pa.table({"d": [*days, "2024-00-00"], "at": [f"{day} 00:00:00.000" for day in [*days, "2024-00-00"]]})
    (task,) = cursor_of(capture).snapshots
    (schema,) = next(iter(capture.chunks(task))).schemas.values()
    found = Reselector.of(capture.pipeline).read(schema, keys, Point(1, 0, 0))
    assert isinstance(found, Reread)
    assert (found.rows, found.missing) == (4, 1)


def test_a_table_that_no_snapshot_can_replace_is_not_read_again(any_server, database, tmp_path):
    """Its key has a mask: the error says what to set, and a quarantine waits for a person."""
    mask = {"tables": f"{database}.t", "columns": ["d"], "mask": "hash"}
    settings = {"start": "latest", "masks": [mask], "mask_key_env": "UNUSED"}
    captures = []
    for on_error in ("stop", "quarantine"):
        capture = Capture(any_server, database, tmp_path / on_error, on_error=on_error, **settings)
        secret = replace(capture.credentials, mask_key="a key that is long enough")
        capture.pipeline = replace(capture.pipeline, credentials=secret)
        captures.append(capture)
    lax(capture, "CREATE TABLE t (d DATE PRIMARY KEY)")
    for one in captures:
        drain_round(one)
    lax(capture, "INSERT INTO t VALUES (0)")
    with pytest.raises(UnsupportedValue, match="a date with a zero") as error:
        drain_round(captures[0])
    assert "zero_dates: string" in error.value.hint
    (left_out,) = last_window(captures[1]).quarantined
    assert left_out.fault.code == UnsupportedValue.code
    assert cursor_of(captures[1]).text_keys == ()


ALIKE = {
    "error_value": ("ENUM('a', '')", "'', 'a'", "0"),
    "latin1": ("ENUM('é', '') CHARACTER SET latin1", "'', 'é'", "0"),
    "no_empty_member": ("ENUM('a', 'b')", "0, 'a'", None),
    "set": ("SET('a', '')", "0, 1, 3", "2"),
    "no_empty_member_of_a_set": ("SET('a', 'b')", "0, 1, 3", None),
}


@pytest.mark.parametrize("images", [False, True], ids=["snapshot", "window"])
@pytest.mark.parametrize(("declared", "values", "wrong"), ALIKE.values(), ids=ALIKE)
def test_a_key_that_select_shows_like_another_is_refused(capture, images, declared, values, wrong):
    """Each of the others is a key of its own; outside of a key both are the text that SELECT shows."""
    lax(capture, f"CREATE TABLE t (k {declared} PRIMARY KEY, v {declared})")
    insert = "INSERT INTO t VALUES {}".format(", ".join(f"({one}, {wrong or 0})" for one in values.split(", ")))
    if images:
        drain_round(capture)
    lax(capture, insert)
    if images:
        rows = [row for one in capture.tables(last_window(capture), "t") for row in one.to_pylist()]
    else:
        drain_round(capture)
        rows = snapshot_rows(capture, "t")
    shown = capture.execute("SELECT k, v FROM t ORDER BY k")
    assert sorted((row["k"], row["v"]) for row in rows) == sorted(shown)
    assert len({row["k"] for row in rows}) == len(shown)
    if wrong is not None:
        lax(capture, f"INSERT INTO t VALUES ({wrong}, 1)")
        if not images:
            requests.resnapshot(capture.pipeline, [f"{capture.database}.t"], by="test", why="a test")
        with pytest.raises(UnsupportedValue, match="column k: a value of ENUM or SET that looks like another") as error:
            drain_round(capture)
        assert "cdc snapshot" in error.value.hint


def test_a_member_that_was_declared_twice_is_refused_in_a_key(capture):
    """Sessions without strict mode may declare one."""
    lax(capture, "CREATE TABLE t (k ENUM('a', 'b', 'a') PRIMARY KEY)", "INSERT INTO t VALUES ('a'), ('b')")
    drain_round(capture)
    lax(capture, "INSERT INTO t VALUES (3)")
    with pytest.raises(UnsupportedValue, match="column k: a value of ENUM or SET that looks like another"):
        drain_round(capture)


@pytest.mark.parametrize("images", [False, True], ids=["snapshot", "window"])
@pytest.mark.parametrize(
    ("charset", "codes"),
    [("cp932", ("81BE", "879C")), ("cp932", ("FBFC", "EEE0")), ("eucjpms", ("ADEA", "8FF4AB")), ("armscii8", ("28", "A5")), ("sjis", ("815F", "5C")), ("sjis", ("41815F", "415C"))],
)  # fmt: skip
def test_a_second_code_of_a_character_is_refused_in_a_key(capture, images, charset, codes):
    """Both are distinct keys of the source; outside of a key both are the character."""
    one = f"VARCHAR(9) CHARACTER SET {charset} COLLATE {charset}_bin"
    first, second = codes
    capture.execute(f"CREATE TABLE t (k {one} PRIMARY KEY, v {one})")
    if images:
        drain_round(capture)
    capture.execute(f"INSERT INTO t VALUES (X'{first}', X'{second}')")
    if images:
        rows = [row for each in capture.tables(last_window(capture), "t") for row in each.to_pylist()]
    else:
        drain_round(capture)
        rows = snapshot_rows(capture, "t")
    assert [(row["k"], row["v"]) for row in rows] == [tuple(capture.execute("SELECT k, v FROM t")[0])]
    assert rows[0]["k"] == rows[0]["v"]
    capture.execute(f"INSERT INTO t VALUES (X'{second}', '')")
    if not images:
        requests.resnapshot(capture.pipeline, [f"{capture.database}.t"], by="test", why="a test")
    with pytest.raises(UnsupportedValue, match=f"column k: bytes that are not valid in the character set {charset}"):
        drain_round(capture)


def test_a_key_over_the_beginning_of_a_column_is_read_in_chunks(capture):
    """No index has its rows in the order of whole columns; servers take the beginning of a name for an index if only one begins so."""
    capture.execute("CREATE TABLE t (k TINYTEXT NOT NULL, n INT, PRIMARY KEY (k(3), n), KEY (n))")
    rows = [(f"{'ab' * 3}{i}" if i % 2 else f"b{i}", i) for i in range(7)]
    capture.execute(f"INSERT INTO t VALUES {', '.join(map(str, rows))}")
    drain_round(capture)
    assert sorted((row["k"], row["n"]) for row in snapshot_rows(capture, "t")) == sorted(rows)


@pytest.mark.parametrize("images", [False, True], ids=["snapshot", "window"])
def test_a_backslash_of_a_session_in_utf8_is_taken_in_a_key_of_sjis(capture, images):
    """Servers write it as the pair 0x815F; 0x5C as the second byte of another character is no backslash."""
    capture.execute("CREATE TABLE t (k VARCHAR(9) CHARACTER SET sjis COLLATE sjis_bin PRIMARY KEY, v INT)")
    if images:
        drain_round(capture)
    keys = ["C:\\x", "\u8868", "\u30bd\\"]
    for key in keys:
        capture.execute(f"INSERT INTO t VALUES (CONVERT(_utf8mb4 X'{key.encode().hex()}' USING sjis), 1)")
    if images:
        rows = [row for each in capture.tables(last_window(capture), "t") for row in each.to_pylist()]
    else:
        drain_round(capture)
        rows = snapshot_rows(capture, "t")
    assert sorted(row["k"] for row in rows) == sorted(keys)
