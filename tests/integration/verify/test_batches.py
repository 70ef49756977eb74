"""Drained windows decoded a second time, on real servers: equal, falsified, and not comparable."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from typer.testing import CliRunner

from cdc_lib.cli.main import app
from cdc_lib.cli.output import plain
from cdc_lib.cli.verify.windows import show
from cdc_lib.config.server import TlsConfig
from cdc_lib.errors import CorruptBatch
from cdc_lib.model.backfill import Period
from cdc_lib.pipeline import Pipeline
from cdc_lib.status.daily_checks import daily_findings
from cdc_lib.store.batch_checks import daily_checks
from cdc_lib.store.cursors import ObjectCursorStore
from cdc_lib.store.objects.s3 import S3Store
from cdc_lib.verify.batches.daily import DailyVerification
from cdc_lib.verify.batches.windows import BatchVerification, Choice
from tests.harness.binlog.capture import SOURCE, Capture, row_metadata
from tests.harness.store.stores import options

pytestmark = pytest.mark.filterwarnings("ignore:.*is deprecated, use:DeprecationWarning")  # of mysql-replication

COLUMNS = {
    "a": ("TINYINT", "-128"), "b": ("SMALLINT UNSIGNED", "65535"), "c": ("MEDIUMINT UNSIGNED", "16777215"),
    "d": ("INT UNSIGNED", "4000000000"), "e": ("BIGINT UNSIGNED", "18446744073709551615"), "f": ("DECIMAL(20,5)", "-12345.6"),
    "g": ("DECIMAL(50,20)", "123456789012345678901234.5"), "h": ("FLOAT", "1.1"), "i": ("DOUBLE", "-0.1"), "j": ("BIT(10)", "513"),
    "k": ("VARCHAR(20)", "'日本😀 x'"), "l": ("VARCHAR(90) CHARACTER SET latin1", "'ä€'"), "m": ("TEXT", "''"),
    "n": ("BINARY(8)", "x'01020000'"), "o": ("VARBINARY(30)", "x'010200'"), "p": ("BLOB", "x''"), "q": ("DATE", "'2024-02-29'"),
    "r": ("DATETIME(3)", "'0001-01-01 00:00:00.001'"), "s": ("TIMESTAMP(6) NULL", "'2037-01-01 01:02:03.000004'"),
    "t": ("TIME", "'-838:59:59'"), "u": ("TIME(3)", "'100:00:00.125'"), "v": ("YEAR", "1901"),
    "w": ("ENUM('x','yé')", "'yé'"), "x": ("SET('x','yé')", "'x,yé'"), "y": ("SET('x','yé')", "''"), "z": ("POINT", "POINT(1, 2)"),
}  # fmt: skip


@pytest.fixture
def capture(any_server, database, tmp_path):
    return Capture(any_server, database, tmp_path, start="latest")


LAST = Choice(last=1)


def verify(capture, choice=LAST):
    return BatchVerification(capture.pipeline).run(choice)


def drain(capture, work):
    """Begin at the end of the binlog, do the work, and drain it as a run does."""
    pipeline = capture.pipeline
    pipeline.plan(by="test")
    work()
    for unit in pipeline.plan(by="test"):
        pipeline.drain(unit)
    pipeline.ack_drain(by="test")


def insert_all_types(execute):
    values = {name: value for name, (_, value) in COLUMNS.items()}
    execute(f"INSERT INTO t (id, {', '.join(values)}) VALUES (1, {', '.join(values.values())})")
    execute("INSERT INTO t (id) VALUES (2), (3)")
    execute("UPDATE t SET a = 5, w = NULL WHERE id = 1")
    execute("UPDATE t SET id = id + 10 WHERE id > 1 ORDER BY id DESC")
    execute("DELETE FROM t WHERE id = 13")
    execute("INSERT INTO no_key VALUES (1), (1)")
    execute("UPDATE no_key SET a = 2")


def create_tables(capture):
    capture.execute(f"CREATE TABLE t (id INT PRIMARY KEY, {', '.join(f'{n} {t}' for n, (t, _) in COLUMNS.items())})")
    capture.execute("CREATE TABLE no_key (a INT)")


def test_all_common_types_are_equal(capture, capsys):
    """Every operation, with and without a key, and a bounded choice of windows."""
    create_tables(capture)
    drain(capture, lambda: insert_all_types(capture.execute))
    report = verify(capture)
    (window,) = report.windows
    assert report.clean, window.differences
    assert (window.changes, window.equal, window.not_comparable) == (15, 15, ())
    assert verify(capture, Choice(windows=(window.window,))).windows[0].equal == 15
    assert verify(capture, Choice(last=None, period=Period())).windows[0].equal == 15
    show(report)
    assert "equal" in capsys.readouterr().out


def test_without_column_names_numbers_are_compared_and_labels_are_not(mysql_server, mysql_database, tmp_path):
    """With MySQL's default binlog_row_metadata."""
    capture = Capture(mysql_server, mysql_database, tmp_path, start="latest")
    create_tables(capture)
    with row_metadata(mysql_server, "MINIMAL"):
        drain(capture, lambda: insert_all_types(capture.execute))
        (window,) = verify(capture).windows
    assert (window.differing, window.equal) == (0, 15), window.differences
    assert {one.column for one in window.not_comparable} == {"l", "n", "o", "p", "w", "x", "y", "z"}


def test_a_falsified_batch_is_reported_with_its_exact_place(capture):
    """A changed cell, a lost change and an additional one, each with file, offset, row and Parquet file."""
    capture.execute("CREATE TABLE t (id INT PRIMARY KEY, name VARCHAR(20))")
    drain(capture, lambda: capture.execute("INSERT INTO t VALUES (1, 'a'), (2, 'b'), (3, 'c')"))
    key = next(key for key in capture.visible() if key.endswith("part-00000.parquet"))
    changed = falsified(capture, key, lambda rows: [{**rows[0], "name": "z"}, rows[1], {**rows[2], "_row": 7}])
    report = verify(capture)
    found = report.windows[0].differences
    place = (changed[0]["_binlog"], changed[0]["_offset"])
    assert not report.clean
    assert sorted((one.kind, one.file, one.offset, one.row) for one in found) == [
        ("extra", *place, 7), ("missing", *place, 2), ("values", *place, 0)
    ]  # fmt: skip
    (cells,) = (one for one in found if one.kind == "values")
    assert [(c.column, c.decoded, c.stored) for c in cells.cells] == [("name", "a", "z")]
    assert key.endswith(cells.part)
    assert json.dumps(plain(report))


def test_compressed_transactions_are_decoded_too(mysql_server, mysql_database, tmp_path):
    """In two files of the binlog, also from the raw archive; a falsified cell and a lost row are found, with their places."""
    capture = Capture(mysql_server, mysql_database, tmp_path, start="latest", raw_archive=True)
    create_tables(capture)
    capture.execute("CREATE TABLE short (a TINYINT)")  # rows of less bytes than a checksum

    def work():
        capture.execute("INSERT INTO t (id) VALUES (20)")
        with mysql_server.connect(database=mysql_database) as session, session.cursor() as sql:
            sql.execute("SET binlog_transaction_compression = ON")
            for _ in range(2):
                sql.execute("BEGIN")
                insert_all_types(sql.execute)
                sql.execute("DELETE FROM t WHERE id < 20")
                sql.execute("DELETE FROM no_key")
                sql.execute("COMMIT")
                sql.execute("INSERT INTO t (id) VALUES (21), (22)")
                sql.execute("INSERT INTO short VALUES (1), (2), (3)")
                sql.execute("DELETE FROM t WHERE id > 20")
                sql.execute("FLUSH BINARY LOGS")

    drain(capture, work)
    (window,) = verify(capture).windows
    assert (window.equal, window.differences, window.not_comparable) == (window.changes, (), ())
    assert window.changes > 40

    key = next(key for key in capture.visible() if key.endswith("part-00000.parquet") and ".t/" in key)
    stored = falsified(capture, key, lambda rows: [rows[0], {**rows[1], "e": 7}, *rows[2:-1]])
    for archived in ("", "binlog purged"):
        if archived:
            mysql_server.execute(f"PURGE BINARY LOGS TO '{capture.head().file}'")
        (window,) = verify(capture).windows
        wrong = {one.kind: one for one in window.differences}
        assert (window.archived, set(wrong), window.differing) == (archived, {"values", "missing"}, 2)
        assert [cell.column for cell in wrong["values"].cells] == ["e"]
        assert (wrong["values"].offset, wrong["values"].row) == (stored[1]["_offset"], stored[1]["_row"])
        assert (wrong["missing"].file, wrong["missing"].offset) == (stored[-1]["_binlog"], stored[-1]["_offset"])


def test_rows_of_a_compressed_transaction_after_an_event_that_is_not_read_are_not_comparable(
    mysql_server, mysql_database, tmp_path
):
    """Those before it are compared; they have no numbers of their own."""
    capture = Capture(mysql_server, mysql_database, tmp_path, start="latest")
    capture.execute("CREATE TABLE t (id INT PRIMARY KEY, j JSON, v INT)")
    document = json.dumps({"a": 1, "b": "x" * 500})

    def work():
        with mysql_server.connect(database=mysql_database) as session, session.cursor() as sql:
            sql.execute("SET binlog_transaction_compression = ON, binlog_row_value_options = PARTIAL_JSON")
            sql.execute("BEGIN")
            sql.execute(f"INSERT INTO t VALUES (1, '{document}', 1), (2, '{document}', 2)")
            sql.execute("UPDATE t SET j = JSON_SET(j, '$.a', 2)")
            sql.execute("UPDATE t SET v = 3")
            sql.execute("INSERT INTO t VALUES (4, NULL, 4)")
            sql.execute("COMMIT")
            sql.execute("INSERT INTO t VALUES (3, NULL, 3)")

    drain(capture, work)
    (window,) = verify(capture).windows
    assert (window.equal, window.differing, window.uncomparable) == (3, 0, 5), window.differences
    assert {one.why.split(" (")[0] for one in window.not_comparable if not one.column} == {
        "mysql-replication reads partial JSON updates"
    }


def test_a_purged_binlog_is_not_comparable(mysql_server, mysql_database, tmp_path, monkeypatch):
    """The window is named, and nothing of it counts: a comparison of no window is no success."""
    capture = Capture(mysql_server, mysql_database, tmp_path, start="latest")
    capture.execute("CREATE TABLE t (id INT PRIMARY KEY)")
    drain(capture, lambda: capture.execute("INSERT INTO t VALUES (1)"))
    capture.execute("FLUSH BINARY LOGS")
    capture.server.execute(f"PURGE BINARY LOGS TO '{capture.head().file}'")
    report = verify(capture)
    (window,) = report.windows
    assert (window.skipped, window.changes) == ("binlog purged", 0)
    assert (report.clean, report.compared_nothing) == (True, True)
    assert not replace(
        report, windows=(*report.windows, replace(window, skipped=""))
    ).compared_nothing  # without changes
    assert replace(report, windows=(replace(window, skipped="", uncomparable=2),)).compared_nothing
    monkeypatch.setenv("UNUSED", mysql_server.cdc_password)
    (tmp_path / "sources").mkdir()
    (tmp_path / "sources" / f"{SOURCE}.yaml").write_text(
        yaml.safe_dump(capture.config.model_dump(mode="json", exclude={"source"}, exclude_unset=True))
    )
    done = CliRunner().invoke(app, ["--sources", str(tmp_path / "sources"), "verify", "windows", SOURCE])
    assert (done.exit_code, "no window was compared" in done.output) == (1, True), done.output


def test_a_purged_window_is_decoded_from_its_raw_archive(any_server, database, tmp_path, capsys):
    """All types, packets beyond 16 MiB and more than one binlog file; a falsified batch is found, and the report says what was read."""
    capture = Capture(any_server, database, tmp_path, start="latest", raw_archive=True)
    create_tables(capture)
    capture.execute("CREATE TABLE big (id INT PRIMARY KEY, v LONGBLOB, w LONGBLOB)")

    def work():
        insert_all_types(capture.execute)
        any_server.execute("FLUSH BINARY LOGS")
        capture.execute("INSERT INTO big VALUES (1, REPEAT('x', 9000000), REPEAT('y', 9000000))")

    drain(capture, work)
    (direct,) = verify(capture).windows
    capture.execute("FLUSH BINARY LOGS")
    any_server.execute(f"PURGE BINARY LOGS TO '{capture.head().file}'")
    report = verify(capture)
    (window,) = report.windows
    assert (direct.archived, window.archived, window.skipped) == ("", "binlog purged", "")
    assert (window.equal, window.changes) == (16, 16) == (direct.equal, direct.changes), window.differences
    show(report)
    assert "was decoded from its raw archive, not from the server: binlog purged" in " ".join(
        capsys.readouterr().out.split()
    )
    falsified(capture, next(key for key in capture.visible() if ".t/" in key and key.endswith(".parquet")))
    assert verify(capture).windows[0].differing
    raw = next(key for key in capture.visible() if "/raw/" in key and key.endswith(".zst"))
    capture.store.delete([raw])
    with pytest.raises(CorruptBatch):
        verify(capture)


def test_rows_of_xa_transactions_are_not_comparable(capture):
    """Their rows get their place when they are committed: they are named with the reason, and the changes beside them are equal."""
    capture.execute("CREATE TABLE t (id INT PRIMARY KEY, v INT)")
    capture.execute("CREATE TABLE other (id INT PRIMARY KEY)")

    def work():
        with capture.server.connect(database=capture.database) as session, session.cursor() as sql:
            sql.execute("XA START 'a'")
            sql.execute("INSERT INTO t VALUES (1, 1), (2, 2)")
            sql.execute("XA END 'a'")
            sql.execute("XA PREPARE 'a'")
            sql.execute("XA COMMIT 'a'")
        capture.execute("INSERT INTO other VALUES (1), (2)")

    drain(capture, work)
    (window,) = verify(capture).windows
    assert (window.differing, window.changes) == (0, 4), window.differences
    assert (window.equal, window.uncomparable) == (2, 2)
    assert [(str(one.table), "XA transaction" in one.why) for one in window.not_comparable] == [
        (f"{capture.database}.t", True)
    ]


def test_compressed_events_of_mariadb_are_decoded_too(mariadb_server, mariadb_database, tmp_path):
    """Rows and statements, inside and outside of a transaction; a rollback to a savepoint is seen, and a falsified cell is found."""
    capture = Capture(mariadb_server, mariadb_database, tmp_path, start="latest")
    create_tables(capture)
    capture.execute("CREATE TABLE kept (id INT PRIMARY KEY, v VARCHAR(200)) ENGINE=MyISAM")
    capture.execute("CREATE TABLE short (a VARCHAR(200))")  # rows of less bytes than a checksum

    def work():
        capture.execute("INSERT INTO t (id) VALUES (20)")
        mariadb_server.execute("SET GLOBAL log_bin_compress = ON, log_bin_compress_min_len = 10")
        try:
            with mariadb_server.connect(database=mariadb_database) as session, session.cursor() as sql:
                insert_all_types(sql.execute)
                sql.execute("INSERT INTO short VALUES (REPEAT('x', 150)), (''), ('')")
                sql.execute("BEGIN")
                sql.execute("INSERT INTO t (id, m) VALUES (21, REPEAT('x', 150))")
                sql.execute("SAVEPOINT a_longer_name_than_ten_letters")
                sql.execute("INSERT INTO t (id, m) VALUES (22, REPEAT('x', 150))")
                sql.execute("INSERT INTO kept VALUES (1, REPEAT('x', 150))")
                sql.execute("ROLLBACK TO SAVEPOINT a_longer_name_than_ten_letters")
                sql.execute("UPDATE t SET m = REPEAT('y', 150) WHERE id = 21")
                sql.execute("COMMIT")
        finally:
            mariadb_server.execute("SET GLOBAL log_bin_compress = OFF, log_bin_compress_min_len = 256")

    drain(capture, work)
    (window,) = verify(capture).windows
    assert (window.differing, window.equal > 15) == (0, True), window.differences
    key = next(key for key in capture.visible() if key.endswith("part-00000.parquet") and ".t/" in key)
    falsified(capture, key, lambda rows: [rows[0], {**rows[1], "e": 7}, *rows[2:]])
    (window,) = verify(capture).windows
    assert [[cell.column for cell in one.cells] for one in window.differences] == [["e"]]


def test_a_source_over_tls_and_a_store_on_s3_are_read_by_the_second_decoder_too(
    any_server, database, tmp_path, bucket, s3_server
):
    """It logs in as the drain does, and reads the same files."""
    capture = Capture(any_server, database, tmp_path, start="latest")
    server = capture.config.server.model_copy(update={"tls": TlsConfig(verify=False)})
    capture.config = capture.config.model_copy(update={"server": server})
    capture.store = S3Store(bucket, "p", options(s3_server))
    capture.pipeline = Pipeline(capture.config, capture.credentials, capture.store, ObjectCursorStore(capture.store))
    capture.execute("CREATE TABLE t (id INT PRIMARY KEY)")
    drain(capture, lambda: capture.execute("INSERT INTO t VALUES (1), (2)"))
    (window,) = verify(capture).windows
    assert (window.equal, window.differing) == (2, 0), window


def test_windows_of_a_day_are_chosen_once_at_random_and_compared_again_only_if_they_differ(capture):
    """Each day others, until all were compared; a falsified batch is found, and stays a finding."""
    capture.execute("CREATE TABLE t (id INT PRIMARY KEY)")
    for number in range(5):
        drain(capture, lambda number=number: capture.execute(f"INSERT INTO t VALUES ({number})"))
    today = datetime(2026, 1, 1, 3, tzinfo=UTC)

    def daily(days, count=2):
        verification = BatchVerification(capture.pipeline)
        return DailyVerification(verification, count, lambda: today + timedelta(days=days)).run()

    first = [one.window for one in daily(0).windows]
    assert len(first) == 2
    assert daily(0).windows == ()
    second = [one.window for one in daily(1).windows]
    assert not set(first) & set(second)
    rest = {name.split("/")[-2] for name in capture.visible() if name.endswith("manifest.json")} - {*first, *second}
    for key in [name for name in capture.visible() if name.endswith(".parquet") and name.split("/")[-3] in rest]:
        falsified(capture, key)
    third = daily(2, count=10)
    assert {one.window for one in third.windows} <= rest
    wrong = {one.window for one in third.windows if one.differing}
    assert wrong
    assert {one.window for one in daily(2).windows} == wrong
    known = daily_checks(capture.store, "shop")
    findings = list(daily_findings("shop", known))
    assert len(findings) == len(wrong)
    assert all(one.level == "error" and "--window" in one.hint for one in findings)
    assert daily(3).windows == ()


def falsified(capture, key, change=lambda rows: [{**row, "id": 99} for row in rows]):
    """Replace the rows of a Parquet file; return those that it had."""
    with capture.store.open_read(key) as data:
        rows = pq.read_table(data)
    sink = pa.BufferOutputStream()
    pq.write_table(pa.Table.from_pylist(change(rows.to_pylist()), rows.schema), sink)
    capture.store.delete([key])
    with capture.store.open_write(key) as out:
        out.write(sink.getvalue().to_pybytes())
    return rows.to_pylist()
