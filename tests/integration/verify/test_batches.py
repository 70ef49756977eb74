"""Drained windows decoded a second time, on real servers: equal, falsified, and not comparable."""

from __future__ import annotations

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cdc_lib.cli.batch_check import show
from cdc_lib.cli.output import plain
from cdc_lib.model.backfill import Period
from cdc_lib.verify.batches.run import BatchVerification, Choice
from tests.harness.capture import Capture, row_metadata

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
    return BatchVerification(capture.config, capture.credentials, capture.store, capture.pipeline.cursors).run(choice)


def drain(capture, work):
    """Begin at the end of the binlog, do the work, and drain it as a run does."""
    pipeline = capture.pipeline
    pipeline.plan(by="test")
    work()
    for unit in pipeline.plan(by="test"):
        pipeline.drain(unit)
    pipeline.ack_drain(by="test")


def insert_all_types(capture):
    names = ", ".join(COLUMNS)
    capture.execute(f"INSERT INTO t (id, {names}) VALUES (1, {', '.join(value for _, value in COLUMNS.values())})")
    capture.execute("INSERT INTO t (id) VALUES (2), (3)")
    capture.execute("UPDATE t SET a = 5, w = NULL WHERE id = 1")
    capture.execute("UPDATE t SET id = id + 10 WHERE id > 1 ORDER BY id DESC")
    capture.execute("DELETE FROM t WHERE id = 13")
    capture.execute("INSERT INTO no_key VALUES (1), (1)")
    capture.execute("UPDATE no_key SET a = 2")


def create_tables(capture):
    capture.execute(f"CREATE TABLE t (id INT PRIMARY KEY, {', '.join(f'{n} {t}' for n, (t, _) in COLUMNS.items())})")
    capture.execute("CREATE TABLE no_key (a INT)")


def test_all_common_types_are_equal(capture, capsys):
    """Every operation, with and without a key, and a bounded choice of windows."""
    create_tables(capture)
    drain(capture, lambda: insert_all_types(capture))
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
        drain(capture, lambda: insert_all_types(capture))
        (window,) = verify(capture).windows
    assert (window.differing, window.equal) == (0, 15), window.differences
    assert {one.column for one in window.not_comparable} == {"l", "n", "o", "p", "w", "x", "y", "z"}


def test_a_falsified_batch_is_reported_with_its_exact_place(capture):
    """A changed cell, a lost change and an additional one, each with file, offset, row and Parquet file."""
    capture.execute("CREATE TABLE t (id INT PRIMARY KEY, name VARCHAR(20))")
    drain(capture, lambda: capture.execute("INSERT INTO t VALUES (1, 'a'), (2, 'b'), (3, 'c')"))
    key = next(key for key in capture.visible() if key.endswith("part-00000.parquet"))
    with capture.store.open_read(key) as data:
        rows = pq.read_table(data)
    changed = rows.to_pylist()
    changed[0]["name"] = "z"
    changed[2]["_row"] = 7
    sink = pa.BufferOutputStream()
    pq.write_table(pa.Table.from_pylist(changed, rows.schema), sink)
    capture.store.delete([key])
    with capture.store.open_write(key) as out:
        out.write(sink.getvalue().to_pybytes())
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


def test_compressed_transactions_are_not_comparable(mysql_server, mysql_database, tmp_path):
    """They are named with the reason; the change beside them is compared."""
    capture = Capture(mysql_server, mysql_database, tmp_path, start="latest")
    capture.execute("CREATE TABLE t (id INT PRIMARY KEY)")

    def work():
        with mysql_server.connect(database=mysql_database) as session, session.cursor() as sql:
            sql.execute("INSERT INTO t VALUES (1)")
            sql.execute("SET binlog_transaction_compression = ON")
            sql.execute("INSERT INTO t VALUES (2), (3)")

    drain(capture, work)
    (window,) = verify(capture).windows
    assert (window.equal, window.differing, window.uncomparable) == (1, 0, 2)
    assert ["compressed transactions" in one.why for one in window.not_comparable] == [True]


def test_a_purged_binlog_is_not_comparable(mysql_server, mysql_database, tmp_path):
    """The window is named, and nothing of it counts."""
    capture = Capture(mysql_server, mysql_database, tmp_path, start="latest")
    capture.execute("CREATE TABLE t (id INT PRIMARY KEY)")
    drain(capture, lambda: capture.execute("INSERT INTO t VALUES (1)"))
    capture.execute("FLUSH BINARY LOGS")
    capture.server.execute(f"PURGE BINARY LOGS TO '{capture.head().file}'")
    (window,) = verify(capture).windows
    assert (window.skipped, window.changes) == ("binlog purged", 0)
