"""Hundreds of tables in one window, row by row in turn: one file each, the same whatever the wire's portions."""

from __future__ import annotations

import random

import pytest

from cdc_lib.store import layout
from tests.harness.binlog.capture import Capture
from tests.harness.binlog.drain_process import through
from tests.harness.network.tcp_proxy import TcpProxy


def interleaved(capture, tables: int, statements: int):
    """Inserts and updates of random tables, one or a few rows at a time, also several tables in one transaction."""
    chosen = random.Random(tables)
    with capture.server.connect(database=capture.database, autocommit=False) as session, session.cursor() as cursor:
        for number in range(tables):
            cursor.execute(f"CREATE TABLE t{number:03d} (id INT PRIMARY KEY AUTO_INCREMENT, v VARCHAR(100), n INT)")
        start = capture.head()
        for _ in range(statements):
            table = f"t{chosen.randrange(tables):03d}"
            if chosen.random() < 0.2:
                cursor.execute(f"UPDATE {table} SET n = {chosen.randrange(100)}")
            else:
                values = ",".join([f"('{chosen.random()}', NULL)"] * chosen.randint(1, 4))
                cursor.execute(f"INSERT INTO {table} (v, n) VALUES {values}")
            if chosen.random() < 0.4:
                session.commit()
        session.commit()
    return capture.window_from(start)


@pytest.mark.parametrize(
    ("tables", "statements"), [(40, 400), pytest.param(500, 6000, marks=[pytest.mark.slow, pytest.mark.timeout(1200)])]
)
def test_many_tables_in_turn_give_the_same_files_in_any_portions(any_server, database, tmp_path, tables, statements):
    """Names, row groups and bytes; and each table's rows are those that SELECT counts, in the order of the binlog."""
    capture = Capture(any_server, database, tmp_path / "undisturbed", drain={"row_group_rows": 50})
    window = interleaved(capture, tables, statements)
    once = capture.drain(window)
    for portion in (1 << 16, 1448, 61):
        with TcpProxy(any_server.host, any_server.port, portion=portion) as proxy:
            other = through(capture, proxy, tmp_path / str(portion))
            assert other.drain(window).files == once.files
        for file in once.files:
            key = layout.beside(layout.manifest_key(window), file.path)
            assert other.store.get(key) == capture.store.get(key)
    assert len({file.path for file in once.files}) == len(once.files) == len({file.table for file in once.files})
    for file in once.files[:: max(1, tables // 20)]:
        name = file.table.partition(".")[2]
        changes = capture.rows(once, name)
        order = [(row["_epoch"], row["_binlog"], row["_offset"], row["_row"]) for row in changes]
        assert order == sorted(set(order))
        last = {row["id"]: (row["v"], row["n"]) for row in changes}
        assert last == {row[0]: row[1:] for row in capture.execute(f"SELECT id, v, n FROM {name}")}
