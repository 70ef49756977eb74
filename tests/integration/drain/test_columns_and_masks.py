"""Columns that are left out and values that are masked, on real servers: the drain and the snapshot agree."""

from __future__ import annotations

import hashlib
import hmac
from dataclasses import replace

import pytest

from cdc_lib.drain.window import Drainer
from cdc_lib.errors import CdcError, ConfigError
from cdc_lib.snapshot.reader import SnapshotReader
from cdc_lib.status.overview import findings_of
from cdc_lib.store import layout
from tests.harness.binlog.capture import Capture
from tests.harness.store.stored_values import everything

KEY = "a key that is long enough"

COLUMNS = """
    id INT PRIMARY KEY, mail VARCHAR(80) CHARACTER SET latin1, phone VARCHAR(30), pin INT, rate DECIMAL(9,3), ratio DOUBLE,
    share FLOAT, born DATE, seen DATETIME(3), at_ TIMESTAMP(6) NULL, run TIME(2), kind ENUM('a','bü'), tags SET('x','y'),
    doc JSON, raw VARBINARY(20), fix BINARY(6), bits BIT(9), y YEAR, note TEXT, huge DECIMAL(65,2)
"""
ROWS = [
    (1, "grün@x.de", "0171 234567", 4711, "12.500", 0.1, 1.5, "2001-02-03", "2024-01-02 03:04:05.120",
     "2024-01-02 03:04:05.000001", "-12:30:00.50", "bü", "x,y", '{"a": 1.0}', b"\x00\xff", b"ab", 257, 1999, "secret-1", 1),
    (2, "", "1", -1, "-0.100", 1e20, 0.1, "1000-01-01", "9999-12-31 23:59:59.999", "1971-01-01 00:00:01", "838:59:59.00",
     "a", "", "[]", b"", b"", 0, 2155, "secret-2", 2),
    (3, *[None] * 19),
]  # fmt: skip
MASKS = [
    {"columns": ["mail", "pin", "rate", "ratio", "share", "born", "seen", "at_", "run", "kind", "tags", "doc", "raw", "fix",
                 "bits", "y"], "mask": "hash"},
    {"columns": ["phone"], "mask": "keep_last", "characters": 3},
    {"columns": ["note"], "mask": "redact", "text": "[gone]"},
]  # fmt: skip


def captured(any_server, database, folder, masks=MASKS, columns=(), **settings):
    """Return a capture whose masks and columns are those of the table t."""
    capture = Capture(
        any_server,
        database,
        folder,
        masks=[{"tables": f"{database}.t", **mask} for mask in masks],
        columns=[{"tables": f"{database}.*", **rule} for rule in columns],
        mask_key_env="CDC_TEST_MASK_KEY",
        **settings,
    )
    credentials = replace(capture.credentials, mask_key=KEY)
    capture.pipeline = replace(capture.pipeline, credentials=credentials)
    capture.drainer = Drainer(capture.pipeline)
    return capture


def insert(capture, rows):
    marks = ", ".join(["%s"] * len(rows[0]))
    for row in rows:
        capture.execute(f"INSERT INTO t VALUES ({marks})", row)


def hashed(text):
    value = text if isinstance(text, bytes) else text.encode()
    return hmac.new(KEY.encode(), value, hashlib.sha256).hexdigest()


def own(row):
    return {name: value for name, value in row.items() if not name.startswith("_")}


def test_masks_and_left_out_columns_are_the_same_in_the_drain_and_the_snapshot(any_server, database, tmp_path):
    """Of every type; a DECIMAL(65), which the lake cannot hold, does no harm when it is left out."""
    capture = captured(any_server, database, tmp_path, columns=[{"exclude": ["HUGE", "bits"]}])
    capture.execute(f"CREATE TABLE t ({COLUMNS})")
    start = capture.head()
    insert(capture, ROWS)
    drained = {row["id"]: own(row) for row in capture.rows(capture.drain(capture.window_from(start)), "t")}
    [chunk] = capture.snapshot("t")
    selected = {row["id"]: own(row) for row in capture.rows(chunk, "t")}
    assert drained == selected
    assert not {"bits", "huge"} & drained[1].keys()
    assert drained[3] == {"id": 3, **dict.fromkeys(set(drained[3]) - {"id"})}
    first = drained[1]
    assert first["phone"] == "********567"
    assert drained[2]["phone"] == "*"
    assert first["note"] == "[gone]"
    shown = {"mail": "grün@x.de", "pin": "4711", "rate": "12.5", "ratio": "0.1", "share": "1.5", "born": "2001-02-03",
             "seen": "2024-01-02 03:04:05.12", "at_": "2024-01-02 03:04:05.000001", "run": "-12:30:00.5", "kind": "bü",
             "tags": "x,y", "raw": b"\x00\xff", "fix": b"ab\0\0\0\0", "y": "1999"}  # fmt: skip
    assert {name: first[name] for name in shown} == {name: hashed(value) for name, value in shown.items()}
    [schema] = chunk.schemas.values()
    assert {column.name: column.type.lake_type for column in schema.columns if column.name != "id"} == dict.fromkeys(
        set(first) - {"id"}, "string"
    )


def test_masked_values_are_in_no_object_of_the_store(any_server, database, tmp_path):
    """Not in rows before or after a change, not in statements, not in the manifests."""
    masks = [{"columns": ["mail", "pin"], "mask": "hash"}, {"columns": ["note", "more*", "/^n$/"], "mask": "redact"}]
    capture = captured(any_server, database, tmp_path, masks, [{"exclude": ["phone"]}])
    capture.execute("CREATE TABLE t (mail VARCHAR(80), phone VARCHAR(30), pin INT, note TEXT)")  # no key: images before
    start = capture.head()
    capture.execute("INSERT INTO t VALUES ('someone@secret.example', '555-0100', 987654321, 'classified')")
    capture.execute("UPDATE t SET mail = 'other@secret.example', pin = 987654322")
    capture.execute("DELETE FROM t")
    manifest = capture.drain(capture.window_from(start))
    start = capture.head()
    capture.execute(
        "ALTER TABLE t ADD COLUMN more VARCHAR(30) DEFAULT 'classified-too', ADD COLUMN n INT DEFAULT 987654323"
    )
    capture.drain(capture.window_from(start))
    capture.execute("INSERT INTO t (mail, pin) VALUES ('third@secret.example', 987654324)")
    capture.snapshot("t")
    rows = capture.rows(manifest, "t")
    assert [row["_op"] for row in rows] == ["c", "d", "u", "d"]
    assert rows[0]["mail"] == rows[1]["mail"] == hashed("someone@secret.example")
    assert rows[2]["pin"] == rows[3]["pin"] == hashed("987654322")
    assert {row["note"] for row in rows} == {None}
    text = everything(capture.store)
    assert "varchar(30)" in text.lower()  # statements stay readable
    for secret in ("secret.example", "555-0100", "98765432", "classified"):
        assert secret not in text


def test_a_masked_cell_that_cannot_be_read_is_not_shown_in_the_error(any_server, database, tmp_path):
    """Nor is one in the statement that stopped the window."""
    capture = captured(
        any_server, database, tmp_path, [{"columns": ["mail", "born"], "mask": "hash"}], zero_dates="error"
    )
    capture.execute("CREATE TABLE t (id INT PRIMARY KEY, mail VARCHAR(80), born DATE)")
    with capture.server.connect() as connection, connection.cursor() as cursor:
        cursor.execute("SET SESSION sql_mode = ''")
        cursor.execute(f"INSERT INTO {database}.t VALUES (1, 'x', '1987-00-17')")
        connection.commit()
    with pytest.raises(CdcError) as caught:
        capture.snapshot("t")
    assert "born" in str(caught.value)
    assert "1987" not in str(caught.value)


def test_a_hashed_key_is_refused_in_chunks_and_taken_from_the_binlog(any_server, database, tmp_path):
    """A chunk's manifest would show the key; the rows of the binlog keep one hash through insert, update and delete."""
    capture = captured(any_server, database, tmp_path, [{"columns": ["id"], "mask": "hash"}])
    capture.execute("CREATE TABLE t (id VARCHAR(20) PRIMARY KEY, n INT)")
    start = capture.head()
    capture.execute("INSERT INTO t VALUES ('person-7', 1)")
    capture.execute("UPDATE t SET n = 2")
    capture.execute("DELETE FROM t")
    manifest = capture.drain(capture.window_from(start))
    assert capture.ops(manifest, "t") == [(op, hashed("person-7")) for op in "cud"]
    [schema] = manifest.schemas.values()
    assert schema.primary_key == ("id",)
    with pytest.raises(ConfigError, match="manifests") as caught:
        capture.snapshot("t")
    assert caught.value.context["table"] == f"{database}.t"


def test_a_key_column_that_is_left_out_stops_the_window_and_the_plan(any_server, database, tmp_path):
    """The error names table and column; nothing is stored."""
    capture = captured(any_server, database, tmp_path, [], [{"include": ["n"]}])
    capture.execute("CREATE TABLE t (id INT PRIMARY KEY, n INT)")
    start = capture.head()
    capture.execute("INSERT INTO t VALUES (1, 1)")
    for work in (lambda: capture.drain(capture.window_from(start)), lambda: capture.pipeline.plan(by="test")):
        with pytest.raises(ConfigError, match="column id belongs to the primary key") as caught:
            work()
        assert caught.value.context["table"] == f"{database}.t"
    assert capture.visible() == []
    assert any("column id belongs" in finding.what for finding in findings_of(capture.pipeline))


def test_a_masked_column_that_was_renamed_is_left_out_with_its_table(any_server, database, tmp_path):
    """Under its new name it would be stored as it is."""
    capture = captured(any_server, database, tmp_path, [{"columns": ["mail"], "mask": "redact"}])
    capture.execute("CREATE TABLE t (id INT PRIMARY KEY, email VARCHAR(30))")
    start = capture.head()
    capture.execute("INSERT INTO t VALUES (1, 'someone')")
    manifest = capture.drain(capture.window_from(start))
    [quarantined] = manifest.quarantined
    assert (quarantined.table, quarantined.fault.code) == (f"{database}.t", "mask_lost")
    assert "masks name the column mail" in quarantined.fault.reason
    assert quarantined.fault.position.file == start.file
    assert "someone" not in everything(capture.store)


def test_doctor_warns_of_copies_and_of_generated_columns(any_server, database, tmp_path):
    """By the names of columns; a column that is masked there as well is no finding."""
    capture = captured(any_server, database, tmp_path, [{"columns": ["mail"], "mask": "redact"}])
    generated = "domain VARCHAR(80) GENERATED ALWAYS AS (SUBSTRING_INDEX(CONCAT('a', mail), '@', -1)) VIRTUAL"
    capture.execute(f"CREATE TABLE t (id INT PRIMARY KEY, mail VARCHAR(80), {generated})")
    capture.execute("CREATE TABLE bak_2026 (id INT PRIMARY KEY, Mail VARCHAR(80))")
    capture.execute("CREATE TABLE other (id INT PRIMARY KEY)")
    found = [one.what for one in findings_of(capture.pipeline) if one.level == "warning" and "as it is" in one.what]
    assert found == [
        f"{database}.bak_2026 stores Mail as it is, which is masked or left out in {database}.t",
        f"column domain of {database}.t is generated from mail, masked or left out, and is stored as it is",
    ]


def test_hashes_without_a_long_key_are_refused(any_server, database, tmp_path):
    """An empty variable is no secret."""
    capture = captured(any_server, database, tmp_path, [{"columns": ["n"], "mask": "hash"}])
    capture.execute("CREATE TABLE t (id INT PRIMARY KEY, n INT)")
    reader = SnapshotReader(replace(capture.pipeline, credentials=replace(capture.credentials, mask_key="short")))
    with pytest.raises(ConfigError, match="can be guessed"):
        reader.read(capture.task("t"), capture.facts().identity)


def test_a_window_with_masks_drains_twice_to_the_same_bytes(any_server, database, tmp_path):
    """The hashes depend on the values and the key alone."""
    digests = []
    for name in ("one", "two"):
        capture = captured(any_server, database, tmp_path / name)
        if not digests:
            capture.execute(f"CREATE TABLE t ({COLUMNS.replace(', huge DECIMAL(65,2)', '')})")
            start = capture.head()
            insert(capture, [row[:-1] for row in ROWS])
            window = capture.window_from(start)
        manifest = capture.drain(window)
        digests.append([(file.path, file.sha256) for file in manifest.files])
        assert layout.key_of(manifest) == layout.manifest_key(window)
    assert digests[0] == digests[1]


def test_a_statement_that_stops_a_window_shows_no_value_of_a_source_with_masks(mysql_server, mysql_database, tmp_path):
    """The error says what kind of statement it was, and where it is."""
    capture = captured(mysql_server, mysql_database, tmp_path, [{"columns": ["mail"], "mask": "redact"}])
    capture.execute("CREATE TABLE t (id INT PRIMARY KEY, mail VARCHAR(40))")
    start = capture.head()
    with mysql_server.connect() as connection, connection.cursor() as cursor:
        cursor.execute("SET SESSION binlog_format = 'STATEMENT'")
        cursor.execute(f"INSERT INTO {mysql_database}.t VALUES (1, 'someone@secret.example')")
        connection.commit()
    with pytest.raises(CdcError, match="INSERT INTO") as caught:
        capture.drain(capture.window_from(start))
    assert "secret" not in str(caught.value)
    assert caught.value.context["file"] == start.file


def test_images_without_all_columns_keep_masks_and_left_out_columns(mysql_server, mysql_database, tmp_path):
    """The marks of absent cells are those of the kept columns, and differences of a document are masked as the whole."""
    masks = [{"columns": ["doc", "mail"], "mask": "hash"}]
    capture = captured(mysql_server, mysql_database, tmp_path, masks, [{"exclude": ["out*"]}])
    capture.execute("CREATE TABLE t (out_1 INT, id INT PRIMARY KEY, mail VARCHAR(40), out_2 JSON, doc JSON, n INT)")
    capture.execute("INSERT INTO t VALUES (7, 1, 'someone', '{}', '{\"a\": \"first document\", \"b\": 1}', 1)")
    start = capture.head()
    with mysql_server.connect() as connection, connection.cursor() as cursor:
        cursor.execute("SET SESSION binlog_row_image = 'MINIMAL'")
        cursor.execute(f"UPDATE {mysql_database}.t SET mail = 'other', out_1 = 8 WHERE id = 1")
        cursor.execute(f"UPDATE {mysql_database}.t SET out_1 = 9 WHERE id = 1")
        cursor.execute("SET SESSION binlog_row_image = 'FULL', binlog_row_value_options = 'PARTIAL_JSON'")
        cursor.execute(f"UPDATE {mysql_database}.t SET doc = JSON_SET(doc, '$.b', 2) WHERE id = 1")
        connection.commit()
    first, second, third = capture.rows(capture.drain(capture.window_from(start)), "t")
    assert not {"out_1", "out_2"} & first.keys()
    assert (first["_absent"], first["mail"]) == ("++--", hashed("other"))  # id, mail, doc, n
    assert second["_absent"] == "+---"
    assert third["_absent"] is None
    assert third["doc"] == hashed('{"a": "first document", "b": 2}')
    text = everything(capture.store)
    assert "first document" not in text
    assert "other" not in text


@pytest.mark.needs("compressed transactions")
def test_rows_of_xa_transactions_and_of_compressed_ones_are_masked(mysql_server, mysql_database, tmp_path):
    """They wait in files of their own, or come inside another event; no value is in any of them."""
    masks = [{"columns": ["mail"], "mask": "hash"}]
    capture = captured(mysql_server, mysql_database, tmp_path, masks, [{"exclude": ["out"]}])
    capture.execute("CREATE TABLE t (`out` VARCHAR(40), id INT PRIMARY KEY, mail VARCHAR(40))")
    start = capture.head()
    with mysql_server.connect() as connection, connection.cursor() as cursor:
        cursor.execute(f"XA START '{mysql_database}'")
        cursor.execute(f"INSERT INTO {mysql_database}.t VALUES ('left out', 1, 'prepared@secret.example')")
        cursor.execute(f"XA END '{mysql_database}'")
        cursor.execute(f"XA PREPARE '{mysql_database}'")
        cursor.execute(f"XA COMMIT '{mysql_database}'")
        cursor.execute("SET SESSION binlog_transaction_compression = ON")
        cursor.execute(f"INSERT INTO {mysql_database}.t VALUES ('left out', 2, 'compressed@secret.example')")
        connection.commit()
    manifest = capture.drain(capture.window_from(start))
    assert [(row["id"], row["mail"]) for row in capture.rows(manifest, "t")] == [
        (2, hashed("compressed@secret.example"))
    ]
    [prepared] = manifest.prepared_files
    assert prepared.rows == 1
    text = everything(capture.store)
    assert hashed("prepared@secret.example") in text
    assert "secret.example" not in text
    assert "left out" not in text
