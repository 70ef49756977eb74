"""The reader for DDL alone steps over rows, and into what is compressed."""

from __future__ import annotations

from cdc_lib.binlog.statement_reader import read_statements
from cdc_lib.binlog.stream_facts import StreamFacts
from cdc_lib.model.position import Position
from cdc_lib.model.window import Window
from tests.harness.binlog.streams import FILE, Binlog, Wire, body


def statements(binlog, flavor):
    window = Window("shop", 1, Position(FILE, 4), Position(FILE, binlog.offset))
    facts = StreamFacts(flavor, checksum=True, charsets={})
    return [(position.offset, one.text) for position, one in read_statements(window, Wire(bytes(binlog.wire)), facts)]


def test_ddl_is_found_among_compressed_transactions_and_tagged_gtids():
    """A window may end after a compressed transaction."""
    inner = Binlog(bare=True).query(b"CREATE TABLE b (id INT) START TRANSACTION").table_map().insert((1, b"x")).xid()
    binlog = Binlog().tagged(1, b"blue").query(b"ALTER TABLE a ADD w INT").gtid(2).payload(bytes(inner.wire))
    binlog.transaction(3, (1, b"x")).gtid(4).payload(bytes(body((2, b"y")).wire))
    assert statements(binlog, "mysql") == [
        (binlog.starts[1], "ALTER TABLE a ADD w INT"),
        (binlog.starts[3], "CREATE TABLE b (id INT) START TRANSACTION"),
    ]


def test_compressed_ddl_of_mariadb_is_found():
    """Between compressed rows."""
    binlog = Binlog().mariadb_gtid(1).query(b"BEGIN").table_map().deflated_insert((1, b"x" * 50)).xid()
    long = b"ALTER TABLE a ADD w INT /* %s */" % (b"why " * 100)
    standalone = Binlog.mariadb_gtid
    binlog = standalone(binlog, 2).deflated_query(long).query(b"COMMIT")
    assert statements(binlog, "mariadb") == [(binlog.starts[-2], long.decode())]
