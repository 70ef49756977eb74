"""A snapshot is read whole without TLS and with it, whatever the size of its chunks: after a result nothing more comes."""

from __future__ import annotations

from dataclasses import replace

import pytest

import cdc_lib.mysql.connection
from cdc_lib.drain.window import Drainer
from tests.harness.binlog.capture import Capture
from tests.harness.network.tcp_proxy import TcpProxy

SIZES = (1, 9, 40, 100, 400, 1000, 3000)
"""Rows of 1000 bytes: less than one read of the wire, one, several, and more than one buffer's half."""


@pytest.mark.parametrize("tls", [False, True])
def test_chunks_of_every_size_end_where_their_rows_do(any_server, database, tmp_path, monkeypatch, tls):
    """The reader never waits for bytes after the last row, which would end in an error after two minutes."""
    monkeypatch.setattr(cdc_lib.mysql.connection, "SILENCE_SECONDS", 10.0)
    with TcpProxy(any_server.host, any_server.port) as proxy:  # it takes TLS out of what the server offers
        capture = Capture(any_server, database, tmp_path, snapshot={"chunk_rows": 5000})
        if not tls:
            server = capture.config.server.model_copy(update={"port": proxy.own_port})
            capture.drainer = _over(capture, server)
        capture.execute("CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(2000) CHARACTER SET ascii)")
        for number, size in enumerate(SIZES):
            first = sum(SIZES[:number])
            values = ", ".join(f"({first + i}, REPEAT('x', 1000))" for i in range(size))
            capture.execute(f"INSERT INTO t VALUES {values}")
            name = f"copy_{number}"
            capture.execute(f"CREATE TABLE {name} (id INT PRIMARY KEY, v VARCHAR(2000) CHARACTER SET ascii)")
            capture.execute(f"INSERT INTO {name} SELECT * FROM t WHERE id >= {first}")
            (chunk,) = capture.snapshot(name)
            assert [row["id"] for row in capture.rows(chunk, name)] == list(range(first, first + size))


def _over(capture, server):
    config = capture.config.model_copy(update={"server": server})
    return Drainer(replace(capture.pipeline, config=config))
