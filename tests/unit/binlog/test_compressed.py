"""Compressed events of MariaDB made by hand: between plain ones, larger than any buffer, and wrong."""

from __future__ import annotations

import contextlib
import random

import numpy as np
import pytest

from cdc_lib.binlog import reader
from cdc_lib.binlog.framing.packets import LONGEST_EVENT
from cdc_lib.binlog.rows.inflate_buffer import InflateBuffer
from cdc_lib.binlog.rows.mariadb_compressed import inflated_size
from cdc_lib.errors import CdcError, DecodeError, TableReplaced
from tests.harness.binlog.streams import Binlog, read


@pytest.mark.parametrize("size", [16, 100, 1 << 12])
@pytest.mark.parametrize("portion", [97, 1 << 20])
def test_compressed_and_plain_rows_keep_their_order(monkeypatch, size, portion):
    """However small the buffer is that they are brought to."""
    monkeypatch.setattr(reader, "InflateBuffer", lambda: InflateBuffer(size))
    values = [(key, random.Random(key).randbytes(key * 11 % 500)) for key in range(90)]
    binlog = Binlog().mariadb_gtid(1).query(b"BEGIN").table_map()
    for at in range(0, 90, 3):
        add = binlog.deflated_insert if at % 2 else binlog.insert
        add(*values[at : at + 3])
    rows, _ = read(binlog.xid(), flavor="mariadb", portion=portion)
    assert [(row["id"], row["v"]) for row in rows] == values
    assert [row["_row"] for row in rows] == [0, 1, 2] * 30


def test_rows_of_both_versions_are_inflated():
    """Version 2 has a block of extra data before the number of columns."""
    binlog = Binlog().mariadb_gtid(1).query(b"BEGIN").table_map()
    old = Binlog(bare=True).deflated_insert((1, b"x" * 300)).wire[19:]
    binlog.event(166, bytes(old)).event(169, bytes(old[:8]) + b"\5\0abc" + bytes(old[8:]))
    rows, _ = read(binlog.xid(), flavor="mariadb")
    assert [row["v"] for row in rows] == [b"x" * 300] * 2


def transaction(change):
    return change(Binlog().mariadb_gtid(1).query(b"BEGIN").table_map())


@pytest.mark.parametrize(
    "binlog",
    [
        pytest.param(transaction(lambda b: b.deflated_insert((1, b"x"), size=7)), id="says too little"),
        pytest.param(transaction(lambda b: b.deflated_insert((1, b"x"), size=9)), id="says too much"),
        pytest.param(transaction(lambda b: b.deflated_insert((1, b"x"), size=0xFFFFFFFF)), id="says 4 GiB"),
        pytest.param(transaction(lambda b: b.deflated_insert((1, b"x"), more=b"\0")), id="a byte after"),
        pytest.param(transaction(lambda b: b.event(166, bytes([7, 0, 0, 0, 0, 0, 1, 0]))), id="no columns"),
        pytest.param(transaction(lambda b: b.event(169, bytes([7, 0, 0, 0, 0, 0, 1, 0, 255, 255]))), id="extra leaves"),
        pytest.param(
            transaction(lambda b: b.event(166, bytes([7, 0, 0, 0, 0, 0, 1, 0, 2, 3, 0x94, 0, 0, 0, 1, 0]))),
            id="algorithm 1",
        ),
        pytest.param(
            transaction(lambda b: b.event(166, bytes([7, 0, 0, 0, 0, 0, 1, 0, 2, 3, 0x81, 3, 1, 2, 3]))), id="no zlib"
        ),
        pytest.param(transaction(lambda b: b.deflated_query(b"CREATE TABLE x (id INT)", size=5)), id="statement"),
        pytest.param(transaction(lambda b: b.event(165, bytes(13))), id="no statement"),
        pytest.param(transaction(lambda b: b.event(165, bytes(3))), id="short"),
    ],
)
def test_a_corrupt_compressed_event_stops_the_window(binlog):
    """At the place of the event."""
    start = binlog.starts[-1]
    with pytest.raises(DecodeError) as caught:
        read(binlog.xid(), flavor="mariadb")
    assert caught.value.context["offset"] == start


@pytest.mark.parametrize("size", [LONGEST_EVENT + 1, (1 << 31) - 1, (1 << 32) - 1])
def test_rows_that_inflate_to_more_than_cells_can_be_found_in_are_refused(size):
    """Though the compressed bytes could make as much; one byte less may."""
    fronts = [np.frombuffer(b"\x84" + n.to_bytes(4, "big"), np.uint8) for n in (size, LONGEST_EVENT)]
    assert [inflated_size(front, 0, 1 << 23) for front in fronts] == [(-1, -1), (LONGEST_EVENT, 5)]


def test_a_compressed_statement_is_looked_at():
    """One that takes rows away is recorded, or stops the window."""
    binlog = Binlog().mariadb_gtid(1).deflated_query(b"ALTER TABLE a TRUNCATE PARTITION p /* %s */" % (b"why " * 100))
    with pytest.raises(TableReplaced, match="TRUNCATE"):
        read(binlog, flavor="mariadb")
    binlog = Binlog().mariadb_gtid(1).deflated_query(b"TRUNCATE TABLE a /* %s */" % (b"why " * 100))
    _, summary = read(binlog.xid(), flavor="mariadb")
    assert [(one.kind, one.table.rpartition(".")[2]) for one in summary.statements] == [("truncate", "a")]
    _, summary = read(Binlog().mariadb_gtid(1).deflated_query(b"ALTER TABLE a ADD w INT").xid(), flavor="mariadb")
    assert [ddl.statement for ddl in summary.ddl] == ["ALTER TABLE a ADD w INT"]


@pytest.mark.parametrize("seed", range(200))
def test_changed_bytes_in_compressed_rows_never_crash_the_reader(seed):
    """Each ends in an error of the tree, or in rows."""
    chosen = random.Random(seed)
    binlog = Binlog(checksum=False).mariadb_gtid(1).query(b"BEGIN").table_map()
    start = len(binlog.wire)
    binlog.deflated_insert((1, b"x" * 40), (2, b"y")).xid()
    wire = bytearray(binlog.wire)
    for _ in range(chosen.randint(1, 3)):
        wire[chosen.randrange(start + 24, len(wire))] = chosen.choice([0, 1, 127, 128, 250, 252, 253, 254, 255])
    with contextlib.suppress(CdcError):
        read(binlog, data=bytes(wire), flavor="mariadb")
