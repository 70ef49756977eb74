"""Facts about mysql-replication in ``docs/comparison.md``, checked with the locked version."""

from __future__ import annotations

import re
from importlib.metadata import version
from pathlib import Path

import pytest
from pymysqlreplication import BinLogStreamReader
from pymysqlreplication.row_event import WriteRowsEvent

from tests.bench.workloads import binlog_range
from tests.harness.binlog.capture import row_metadata

pytestmark = pytest.mark.filterwarnings("ignore:.*is deprecated, use:DeprecationWarning")  # of mysql-replication

PAGE = Path(__file__).parents[2] / "docs" / "comparison.md"


def read(server, start, table):
    """Return the rows that it reads of a table, and its last position."""
    stream = BinLogStreamReader(
        connection_settings={
            "host": server.host, "port": server.port, "user": server.cdc_user, "password": server.cdc_password
        },
        server_id=4_000_000_003,
        log_file=start.file,
        log_pos=start.offset,
        resume_stream=True,
        blocking=False,
        only_events=[WriteRowsEvent],
    )  # fmt: skip
    try:
        values = [list(row["values"].values()) for event in stream if event.table == table for row in event.rows]
        return values, (stream.log_file, stream.log_pos)
    finally:
        stream.close()


def test_the_page_names_the_installed_version():
    assert set(re.findall(r"mysql-replication (\d[\d.]*)", PAGE.read_text())) == {version("mysql-replication")}


def test_it_drops_the_rows_of_compressed_transactions_while_its_position_advances(mysql_server, mysql_database):
    mysql_server.execute("CREATE TABLE t (id INT PRIMARY KEY)", database=mysql_database)

    def work():
        with mysql_server.connect(database=mysql_database) as session, session.cursor() as sql:
            sql.execute("INSERT INTO t VALUES (1)")
            sql.execute("SET binlog_transaction_compression = ON")
            sql.execute("INSERT INTO t VALUES (2)")

    start, stop = binlog_range(mysql_server, work)
    rows, came_to = read(mysql_server, start, "t")
    assert rows == [[1]]
    assert came_to == (stop.file, stop.offset)


def test_it_reads_unsigned_integers_as_signed_with_minimal_metadata(mysql_server, mysql_database):
    mysql_server.execute("CREATE TABLE t (id INT UNSIGNED PRIMARY KEY)", database=mysql_database)
    with row_metadata(mysql_server, "MINIMAL"):
        start, _ = binlog_range(
            mysql_server, lambda: mysql_server.execute("INSERT INTO t VALUES (4000000000)", database=mysql_database)
        )
        rows, _ = read(mysql_server, start, "t")
    assert rows == [[4_000_000_000 - 2**32]]
