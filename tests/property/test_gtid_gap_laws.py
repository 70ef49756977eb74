"""GTIDs that a file names and that were not read before it: found in every window that holds the file, and never where all were read."""

from __future__ import annotations

import re
import struct
from contextlib import contextmanager
from dataclasses import dataclass
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdc_lib.binlog.reader import WindowReader
from cdc_lib.binlog.rows.captured_tables import CapturedTables
from cdc_lib.binlog.rows.row_groups import WindowSinks
from cdc_lib.binlog.stream_facts import StreamFacts
from cdc_lib.config import Credentials, ServerConfig
from cdc_lib.errors import BinlogIncomplete
from cdc_lib.model.gtid import GtidSet
from cdc_lib.model.position import Position
from cdc_lib.model.server_identity import ServerIdentity
from cdc_lib.model.window import Window
from cdc_lib.mysql.server_facts import ServerFacts
from cdc_lib.plan.file_ends import check_gtids
from tests.harness.binlog.binlog_files import BinlogFiles, Transaction
from tests.harness.binlog.streams import Rows

UUID = "00000000-0000-0000-0000-000000000001"
FIRST = 1_700_000_000


def gtids(numbers):
    return GtidSet.of("mysql", [(UUID, (number, number)) for number in numbers])


def previous(numbers):
    """Return the body of a PREVIOUS_GTIDS."""
    runs = gtids(numbers).runs.get(UUID, ())
    body = struct.pack("<Q", bool(runs))
    if runs:
        body += bytes(15) + b"\1" + struct.pack("<Q", len(runs))
    return body + b"".join(struct.pack("<qq", first, last + 1) for first, last in runs)


@dataclass
class History:
    """Files of one server.

    Args:
        files: as the server has them.
        read: the numbers in each file.
        named: the numbers that each file names before it.
        missing: number of the file that lacks a transaction, and the transaction's number.
    """

    files: BinlogFiles
    read: list[list[int]]
    named: list[set[int]]
    missing: tuple[int, int] | None = None

    @property
    def boundaries(self):
        starts = [Position(self.files.name(number), 4) for number in range(1, len(self.read) + 1)]
        return sorted({*starts, self.files.head, *(where for where, _ in self.files.transactions)})

    def before(self, position):
        """Return the numbers of the transactions that are in files before a position."""
        early = [one.number for where, one in self.files.transactions if where < position and one.number]
        return set(early) | self.named[0]


@st.composite
def histories(draw, *, with_gap=False):
    """Files with transactions; the last GTID of a file may be named only by the file after the next one."""
    sizes = draw(st.lists(st.integers(0, 4), min_size=2, max_size=5))
    purged = draw(st.integers(0, 3))
    numbers = set(range(1, purged + 1))
    gap = None
    if with_gap:
        file = draw(st.integers(0, len(sizes) - 2))
        sizes[file] += 1
        gap = file, draw(st.integers(0, sizes[file] - 1))
    files, read, named, missing, late, next_ = BinlogFiles(), [], [], None, set(), purged + 1
    for file, size in enumerate(sizes):
        named.append(numbers - late)
        files.new_file(FIRST + file, at_start=draw(st.booleans()), before=previous(named[-1]))
        read.append([])
        late = set()
        for index in range(size):
            lost = gap == (file, index)
            if not lost and draw(st.integers(0, 4)) == 0:
                files.write(Transaction(1, FIRST + file, FIRST + file))  # anonymous
                continue
            numbers.add(next_)
            if lost:
                missing = file + 1, next_
            else:
                files.write(Transaction(1, FIRST + file, FIRST + file, next_))
                read[-1].append(next_)
                late = {next_} if draw(st.booleans()) else set()
            next_ += 1
    return History(files, read, named, missing)


@contextmanager
def server_with(files):
    @contextmanager
    def dump(_server, _credentials, _identity, start):
        yield files.sent(start)

    with patch("cdc_lib.plan.file_ends.binlog_dump", dump):
        yield ServerFacts(
            ServerIdentity("mysql", "one", 1), (9, 7, 4), {"gtid_mode": "ON", "binlog_checksum": "NONE"},
            files.head, "", files.sizes,
        )  # fmt: skip


def drain(history, start, stop, *, known):
    """Read a window and check it; ``known`` says whether the cursor's GTIDs are given."""
    window = Window("shop", 1, start, stop)
    facts = StreamFacts("mysql", checksum=False, charsets={255: "utf8mb4"})
    before = gtids(history.before(start)) if known else None
    captured, sinks = CapturedTables(lambda *_: True), WindowSinks(Rows(), Rows())
    summary = WindowReader(window, history.files.sent(start), facts, captured, sinks, before=before).run()
    with server_with(history.files) as server:
        address = ServerConfig(host="localhost", user="a", password_env="UNUSED")
        check_gtids(address, Credentials("a", "b"), server, window, summary.gtid_gaps, summary.gtids_read)


@given(st.data(), st.booleans())
def test_a_window_of_files_that_have_all_transactions_passes(data, known):
    """From any boundary to any other, anonymous transactions in between, and GTIDs that a file names one file late."""
    history = data.draw(histories())
    start, stop = sorted(data.draw(st.lists(st.sampled_from(history.boundaries), min_size=2, max_size=2)))
    drain(history, start, stop, known=known)


@given(st.data())
def test_a_missing_transaction_is_found_by_every_window_that_reads_over_its_file(data):
    """From the file's start, or from a place in it where the GTIDs before are known; the error names file and GTID."""
    history = data.draw(histories(with_gap=True))
    number, lost = history.missing
    follower = Position(history.files.name(number + 1), 4)
    begin = Position(history.files.name(number), 4)
    inside = [one for one in history.boundaries if begin <= one < follower]
    start = data.draw(st.sampled_from(inside))
    stop = data.draw(st.sampled_from([one for one in history.boundaries if one.file_number > number]))
    with pytest.raises(BinlogIncomplete, match=f"missing from {re.escape(begin.file)} that {follower.file}") as caught:
        drain(history, start, stop, known=start != begin)
    assert str(gtids([lost])) in caught.value.message
    assert caught.value.context["file"] == begin.file
    assert f"--position {follower}" in caught.value.hint


@given(st.data())
def test_a_window_after_the_file_passes(data):
    """So the way out that the error names leads on."""
    history = data.draw(histories(with_gap=True))
    after = [one for one in history.boundaries if one.file_number > history.missing[0]]
    start, stop = sorted(data.draw(st.lists(st.sampled_from(after), min_size=2, max_size=2)))
    drain(history, start, stop, known=False)
