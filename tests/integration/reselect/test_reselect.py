"""Rows read back by key: exactly those that are asked for, with the watermark of their reads."""

from __future__ import annotations

import threading
import time
from dataclasses import replace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cdc_lib.drain.columns import shape_of
from cdc_lib.model.position import SNAPSHOT_ROW, Point
from cdc_lib.mysql.connection import connect
from cdc_lib.mysql.information_schema import InformationSchema
from cdc_lib.mysql.lookup_session import watermark_after
from cdc_lib.mysql.watermark import low_watermark
from cdc_lib.reselect import rows as reselecting
from cdc_lib.reselect.result import Refused, Reread
from cdc_lib.reselect.rows import Reselector
from cdc_lib.store import layout
from tests.harness.binlog.capture import Capture

BEGIN = Point(1, 0, 0)


@pytest.fixture
def capture(any_server, database, tmp_path):
    return Capture(any_server, database, tmp_path)


@pytest.fixture
def at_rest(monkeypatch):
    """Nobody writes: no commit needs time to settle, which takes seconds where there are no GTIDs."""
    monkeypatch.setitem(low_watermark.__kwdefaults__, "settle", 0.01)


def schema_of(capture, table="t"):
    connection = connect(capture.config.server, capture.credentials)
    try:
        found = InformationSchema(connection).schema(capture.database, table)
    finally:
        connection.close()
    assert found is not None
    return capture.config.values.applied(found)


def reselector(capture, **changed):
    config = capture.config.model_copy(update=changed)
    return Reselector(replace(capture.pipeline, config=config), capture.facts().identity, 1)


def rows_of(capture, reread):
    found = []
    for file in reread.batch.manifest.files:
        with capture.store.open_read(layout.beside(reread.batch.key, file.path)) as data:
            found += pq.read_table(data).to_pylist()
    return found


def keys_in(capture, table="t"):
    """The keys of every row, as a snapshot brings them into the lake."""
    manifest = capture.snapshot(table)[0]
    schema = schema_of(capture, table)
    whole = pa.concat_tables(capture.tables(manifest, table))
    return whole.select(list(schema.primary_key)), whole


KEYS = {
    "INT": ("1", "-5", "2147483647"),
    "BIGINT UNSIGNED": ("0", "18446744073709551615"),
    "DECIMAL(20,12)": ("0.000000000001", "-12345678.5", "0"),
    "DECIMAL(60,30)": ("0.000000000000000000000000000001", "123456789012345678901234567890"),
    "DATE": ("'0001-01-01'", "'2024-02-29'"),
    "DATETIME(6)": ("'2024-01-01 00:00:00.000001'", "'9999-12-31 23:59:59'"),
    "TIMESTAMP(3)": ("'2024-03-31 01:30:00.5'", "'1970-01-02 00:00:01'"),
    "TIME(2)": ("'-838:59:59'", "'00:00:00.25'"),
    "YEAR": ("1901", "2155", "0"),
    "BIT(64)": ("0", "18446744073709551615", "5"),
    "BIT(9)": ("0", "511"),
    "ENUM('a','Ö','')": ("'a'", "'Ö'", "''"),
    "SET('p','q')": ("'p'", "'p,q'", "''"),
    "FLOAT": ("0.1", "-1.5e-10", "0"),
    "DOUBLE": ("0.1", "1e300", "-0.0000001"),
    "DOUBLE(12,2)": ("0.1", "-1234567.25"),
    "FLOAT(9,3)": ("0.1", "-12.345"),
    "CHAR(6)": ("'a'", "'ö x'", "''"),
    "VARCHAR(20)": ("'a''b\\\\'", "'日本'", "'😀'"),
    "VARCHAR(20) COLLATE utf8mb4_bin": ("'a'", "'A'", "'a\\0'"),
    "VARCHAR(20) CHARACTER SET latin1": ("'é'", "'x'"),
    "VARCHAR(20) CHARACTER SET sjis": ("'日本'", "'x'"),
    "VARCHAR(20) CHARACTER SET cp932": ("x'FA5C'", "'x'"),
    "VARCHAR(20) CHARACTER SET ucs2": ("'é'", "'x'"),
    "BINARY(4)": ("x'00'", "x'FF00'"),
    "VARBINARY(9)": ("x''", "x'00'", "x'0000'", "'\\''"),
}


@pytest.mark.usefixtures("at_rest")
@pytest.mark.parametrize(
    "kind",
    [
        *KEYS,
        "INET6",
        *(pytest.param(one, marks=pytest.mark.needs("UUID and INET4 columns")) for one in ("UUID", "INET4")),
    ],
)
def test_every_kind_of_key_finds_its_row(capture, kind):
    """What the lake holds of a key is enough to find the row again; a key that is gone is missing, no other is."""
    own = {
        "INET6": ("'::1'", "'2001:db8::'"),
        "UUID": ("'123e4567-e89b-12d3-a456-426655440000'",),
        "INET4": ("'1.2.3.4'",),
    }
    if kind in own and capture.server.flavor == "mysql":
        pytest.skip("a type of MariaDB")
    values = own.get(kind) or KEYS[kind]
    capture.execute(f"CREATE TABLE t (k {kind} NOT NULL PRIMARY KEY, v INT)")
    for n, value in enumerate(values):
        capture.execute(f"INSERT INTO t VALUES ({value}, {n})".replace("%", "%%"))
    keys, whole = keys_in(capture)
    found = reselector(capture).read(schema_of(capture), keys, BEGIN)
    assert isinstance(found, Reread)
    assert (found.rows, found.missing) == (len(values), 0)
    wanted = {repr(row["k"]): row["v"] for row in whole.to_pylist()}
    assert {repr(row["k"]): row["v"] for row in rows_of(capture, found)} == wanted
    capture.execute("DELETE FROM t WHERE v = 0")
    found = reselector(capture).read(schema_of(capture), keys, BEGIN)
    assert isinstance(found, Reread)
    assert (found.rows, found.missing) == (len(values) - 1, 1)
    [gone] = [row for row in rows_of(capture, found) if row["_op"] == "d"]
    assert repr(gone["k"]) not in {repr(row["k"]) for row in rows_of(capture, found) if row["_op"] == "r"}
    assert wanted[repr(gone["k"])] == 0


@pytest.mark.usefixtures("at_rest")
@pytest.mark.parametrize("kind", ["FLOAT", "DOUBLE"])
@pytest.mark.parametrize("key", ["k", "k, v", "v, k"])
def test_keys_with_more_digits_than_they_are_shown_with_find_their_rows(any_server, database, tmp_path, kind, key):
    """Servers round what they compare with the index, not what it has: chunks after a key began with it, without an end."""
    capture = Capture(any_server, database, tmp_path, snapshot={"chunk_rows": 2})
    capture.execute(f"CREATE TABLE t (k {kind}, v INT, PRIMARY KEY ({key}))")
    capture.execute("INSERT INTO t VALUES (1.231, 1), (1.232, 2), (1.233, 3), (1.2341, 4), (2.5, 5)")
    capture.execute(f"ALTER TABLE t MODIFY k {kind}(10,2) NOT NULL")
    assert [str(shown) for (shown,) in capture.execute("SELECT CAST(k AS CHAR) FROM t ORDER BY v")] == ["1.23"] * 4 + [
        "2.50"
    ]
    keys, whole = keys_in(capture)
    assert sorted(row["v"] for row in whole.to_pylist()) == [1, 2, 3, 4, 5]
    assert len({row["k"] for row in whole.to_pylist()}) == 5
    found = reselector(capture).read(schema_of(capture), keys, BEGIN)
    assert isinstance(found, Reread)
    assert (found.rows, found.missing) == (5, 0)


@pytest.mark.usefixtures("at_rest")
@pytest.mark.parametrize("kinds", [list(KEYS)[:14], list(KEYS)[14:]], ids=["numbers and dates", "texts"])
def test_every_kind_of_column_finds_its_row_as_a_part_of_a_key(capture, kinds):
    """Tuples are compared by other rules than single values."""
    for i, kind in enumerate(kinds):
        capture.execute(f"CREATE TABLE t{i} (n INT, k {kind} NOT NULL, PRIMARY KEY (n, k))")
        for n, value in enumerate(KEYS[kind]):
            capture.execute(f"INSERT INTO t{i} VALUES ({n}, {value})".replace("%", "%%"))
        keys, _ = keys_in(capture, f"t{i}")
        found = reselector(capture).read(schema_of(capture, f"t{i}"), keys, BEGIN)
        assert isinstance(found, Reread)
        assert (kind, found.rows, found.missing) == (kind, len(KEYS[kind]), 0)


@pytest.mark.usefixtures("at_rest")
def test_keys_of_several_columns_find_their_rows(capture):
    """Neither column alone is taken for the key."""
    capture.execute("CREATE TABLE t (a INT, b VARCHAR(9), c DATETIME(3), v INT, PRIMARY KEY (b, a, c))")
    rows = ", ".join(f"({a}, '{b}', '2024-01-0{c} 00:00:00.125', {a})" for a in (1, 2) for b in "xy" for c in (1, 2))
    capture.execute(f"INSERT INTO t VALUES {rows}")
    keys, _ = keys_in(capture)
    capture.execute("DELETE FROM t WHERE a = 1 AND b = 'x'")
    found = reselector(capture).read(schema_of(capture), keys, BEGIN)
    assert isinstance(found, Reread)
    assert (found.rows, found.missing) == (6, 2)
    gone = sorted((row["a"], row["b"], row["c"].day) for row in rows_of(capture, found) if row["_op"] == "d")
    assert gone == [(1, "x", 1), (1, "x", 2)]


@pytest.mark.usefixtures("at_rest")
@pytest.mark.parametrize(("state", "asked"), [("A", "a"), ("a ", "a"), ("é", "e")])
def test_a_row_that_a_collation_takes_for_the_key_is_not_its_row(capture, state, asked):
    """The server finds it; its bytes are another key's."""
    collation = "utf8mb4_general_ci"  # ignores case, accents and trailing blanks
    capture.execute(f"CREATE TABLE t (k VARCHAR(9) COLLATE {collation} PRIMARY KEY, v INT)")
    capture.execute("INSERT INTO t VALUES (%s, 1)", [state])
    found = reselector(capture).read(schema_of(capture), pa.table({"k": [asked]}), BEGIN)
    assert isinstance(found, Reread)
    assert (found.rows, found.missing) == (0, 1)
    found = reselector(capture).read(schema_of(capture), pa.table({"k": [state]}), BEGIN)
    assert isinstance(found, Reread)
    assert (found.rows, found.missing) == (1, 0)


@pytest.mark.usefixtures("at_rest")
def test_a_key_finds_no_row_with_a_second_code_of_its_characters(capture):
    """Two byte sequences of cp932 are one text of Unicode; the lake takes one of them in a key."""
    capture.execute("CREATE TABLE t (k VARCHAR(9) CHARACTER SET cp932 PRIMARY KEY, v INT)")
    capture.execute("INSERT INTO t VALUES (x'FA5C', 2), ('x', 3)")
    keys = keys_in(capture)[0]
    capture.execute("INSERT INTO t VALUES (x'ED40', 1)")
    found = reselector(capture).read(schema_of(capture), keys, BEGIN)
    assert isinstance(found, Reread)
    assert (found.missing, sorted(row["v"] for row in rows_of(capture, found))) == (0, [2, 3])


@pytest.mark.usefixtures("at_rest")
def test_a_hundred_thousand_keys_are_found_over_two_connections(capture):
    """Half of them; the others are missing. The lake's type of the key may be a wider one."""
    capture.execute("CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(30))")
    digits = " CROSS JOIN ".join(
        f"(SELECT 0 d UNION ALL {' UNION ALL '.join(f'SELECT {n}' for n in range(1, 10))}) d{i}" for i in range(5)
    )
    number = " + ".join(f"d{i}.d * {10**i}" for i in range(5))
    capture.execute(f"INSERT INTO t SELECT 2 * ({number}), CONCAT('row ', 2 * ({number})) FROM {digits} LIMIT 50000")
    capture.execute("DELETE FROM t WHERE id >= 100000")
    keys = pa.table({"ID": pa.array(range(100_000), pa.int64())})
    found = reselector(capture).read(schema_of(capture), keys, BEGIN)
    assert isinstance(found, Reread)
    rows = rows_of(capture, found)
    there = [row for row in rows if row["_op"] == "r"]
    assert found.rows == len(there) == capture.execute("SELECT COUNT(*) FROM t")[0][0]
    assert all(row["v"] == f"row {row['id']}" for row in there)
    assert sorted(row["id"] for row in rows) == list(range(100_000))


@pytest.mark.usefixtures("at_rest")
def test_rows_bear_a_watermark_before_which_they_hold_everything(capture):
    """And none that is before what the merge already has."""
    capture.execute("CREATE TABLE t (id INT PRIMARY KEY, v INT)")
    capture.execute("INSERT INTO t VALUES (1, 1)")
    head = capture.head()
    found = reselector(capture).read(schema_of(capture), pa.table({"id": [1, 2]}), Point.at(1, head))
    assert isinstance(found, Reread)
    assert found.reach.low >= Point.at(1, head)
    assert found.reach.high >= found.reach.low
    places = {(row["_epoch"], row["_binlog"], row["_offset"], row["_row"]) for row in rows_of(capture, found)}
    assert places == {(*found.reach.low, SNAPSHOT_ROW)}


@pytest.mark.usefixtures("at_rest")
def test_a_server_that_is_behind_the_merge_is_refused_for_now(capture, monkeypatch):
    """A replica that lags could give a row older than what the log tells."""
    monkeypatch.setitem(watermark_after.__kwdefaults__, "patience", 0.0)
    capture.execute("CREATE TABLE t (id INT PRIMARY KEY, v INT)")
    ahead = Point.at(1, capture.head())._replace(offset=10**9)
    found = reselector(capture).read(schema_of(capture), pa.table({"id": [1]}), ahead)
    assert isinstance(found, Refused)
    assert found.again
    assert "before the end of the merge" in found.why
    # What an earlier server had lies before everything of this one.
    found = reselector(capture).read(schema_of(capture), pa.table({"id": [1]}), ahead._replace(epoch=0))
    assert isinstance(found, Reread)


@pytest.mark.usefixtures("at_rest")
def test_another_server_is_refused(capture):
    """Its positions are not those of the epoch."""
    capture.execute("CREATE TABLE t (id INT PRIMARY KEY, v INT)")
    there = capture.facts().identity
    other = replace(there, server_uuid="6f9619ff-8b86-d011-b42d-00cf4fc964ff", server_id=there.server_id + 1)
    found = Reselector(capture.pipeline, other, 1).read(schema_of(capture), pa.table({"id": [1]}), BEGIN)
    assert isinstance(found, Refused)
    assert found.again


@pytest.mark.usefixtures("at_rest")
@pytest.mark.parametrize(
    ("statement", "why"),
    [
        ("DROP TABLE t", "no longer at the source"),
        ("ALTER TABLE t ADD COLUMN w INT FIRST", "altered"),
        ("ALTER TABLE t MODIFY v BIGINT", "altered"),
        ("ALTER TABLE t DROP PRIMARY KEY, ADD PRIMARY KEY (v)", "altered"),
    ],
)
@pytest.mark.parametrize("when", ["before", "meanwhile"])
def test_a_table_that_is_another_one_is_refused(capture, monkeypatch, statement, why, when):
    """Its rows could lack changes of columns that the merge does not know yet; no file of them is left."""
    capture.execute("CREATE TABLE t (id INT PRIMARY KEY, v INT NOT NULL)")
    capture.execute("INSERT INTO t VALUES (1, 1)")
    schema, one = schema_of(capture), reselector(capture)
    if when == "before":
        capture.execute(statement)
    else:
        real = reselecting.look_up_session

        def altered(*arguments):
            capture.execute(statement)
            return real(*arguments)

        monkeypatch.setattr(reselecting, "look_up_session", altered)
    found = one.read(schema, pa.table({"id": [1]}), BEGIN)
    assert isinstance(found, Refused)
    assert why in found.why
    assert not found.again
    assert not [key for key in capture.visible() if "reselect" in key]


@pytest.mark.usefixtures("at_rest")
def test_keys_that_the_lake_could_not_hold_are_refused(capture):
    """Zero dates are null there, and bytes that are no text are U+FFFD."""
    capture.execute("CREATE TABLE t (id DATE PRIMARY KEY, v INT)")
    found = reselector(capture).read(schema_of(capture), pa.table({"id": pa.array([None], pa.date32())}), BEGIN)
    assert isinstance(found, Refused)
    capture.execute("CREATE TABLE u (id VARCHAR(9) PRIMARY KEY, v INT)")
    replacing = reselector(capture, invalid_text="replace")
    found = replacing.read(schema_of(capture, "u"), pa.table({"id": ["x\ufffd"]}), BEGIN)
    assert isinstance(found, Refused)


@pytest.mark.usefixtures("at_rest")
def test_columns_that_are_left_out_or_masked_are_read_as_the_source_file_says(any_server, database, tmp_path):
    """What a mask hides is in no file of rows that are read back either."""
    capture = Capture(
        any_server, database, tmp_path,
        columns=[{"tables": f"{database}.t", "exclude": ["secret"]}],
        masks=[{"tables": f"{database}.t", "columns": ["mail"], "mask": "redact", "text": "gone"}],
    )  # fmt: skip
    capture.execute("CREATE TABLE t (id INT PRIMARY KEY, mail VARCHAR(20), secret INT, v INT)")
    capture.execute("INSERT INTO t VALUES (1, 'a@b', 7, 2)")
    schema = shape_of(capture.config, capture.credentials).of(schema_of(capture)).schema
    found = reselector(capture).read(schema, pa.table({"id": [1]}), BEGIN)
    assert isinstance(found, Reread)
    [row] = rows_of(capture, found)
    assert {name: value for name, value in row.items() if not name.startswith("_")} == {"id": 1, "mail": "gone", "v": 2}


def test_rows_under_writes_are_never_older_than_their_watermark(capture):
    """A counter that grows with each transaction: what is read is at least what the binlog has before the watermark."""
    capture.execute("CREATE TABLE t (id INT PRIMARY KEY, v INT)")
    capture.execute("INSERT INTO t VALUES (1, 0)")
    schema, one, stopping = schema_of(capture), reselector(capture), threading.Event()

    def write():
        with capture.server.connect(database=capture.database) as session, session.cursor() as cursor:
            while not stopping.is_set():
                cursor.execute("UPDATE t SET v = v + 1 WHERE id = 1")
                session.commit()

    start = capture.head()
    writer = threading.Thread(target=write)
    writer.start()
    try:
        reads = []
        for _ in range(4):
            time.sleep(0.05)
            reads.append(one.read(schema, pa.table({"id": [1]}), BEGIN))
    finally:
        stopping.set()
        writer.join()
    changes = capture.rows(capture.drain(capture.window_from(start)), "t")
    for read in reads:
        assert isinstance(read, Reread)
        [row] = rows_of(capture, read)
        places = [(Point(c["_epoch"], c["_binlog"], c["_offset"]), c["v"]) for c in changes]
        assert row["v"] >= max((v for at, v in places if at < read.reach.low), default=0)
        assert row["v"] <= max((v for at, v in places if at < read.reach.high), default=0)
