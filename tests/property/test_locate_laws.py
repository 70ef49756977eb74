"""Searches by time over histories of commits, rotations and clocks: what is left out is known to be earlier."""

from __future__ import annotations

from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdc_lib.config import Credentials, ServerConfig
from cdc_lib.errors import BinlogIncomplete, PositionNotFound
from cdc_lib.model.commit import Commit
from cdc_lib.model.gtid import GtidSet
from cdc_lib.model.server_identity import ServerIdentity
from cdc_lib.mysql.server_facts import ServerFacts
from cdc_lib.plan.locate import SET_BACK, BinlogSearch
from tests.harness.binlog.binlog_files import BinlogFiles, Transaction

FIRST = 1_700_000_000
HOUR = int(SET_BACK.total_seconds())
FALLBACK = 60
OLD, NEW, THIRD = 1, 2, 3
"""The primary that was read, the standby that takes over, and a server that neither of them is."""


def at(second):
    return datetime.fromtimestamp(second, UTC)


@contextmanager
def seeker(files, gtid_mode="OFF"):
    """A search in these files."""
    facts = ServerFacts(
        ServerIdentity("mysql", "one", NEW), (9, 7, 4), {"gtid_mode": gtid_mode, "binlog_checksum": "NONE"},
        files.head, "", files.sizes,
    )  # fmt: skip

    @contextmanager
    def dump(_server, _credentials, _identity, start):
        yield files.sent(start)

    with patch("cdc_lib.plan.locate.binlog_dump", dump), patch("cdc_lib.plan.file_ends.binlog_dump", dump):
        yield BinlogSearch(
            "shop", ServerConfig(host="localhost", user="a", password_env="UNUSED"), Credentials("a", "b"), facts
        )


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["commit", "commit", "commit", "rotate", "restart", "clock"]),
        st.integers(0, 2 * HOUR),  # what passes before
        st.integers(-3 * HOUR, 3 * HOUR),  # a clock's new fault, or what the next file says of its making
        st.sampled_from([NEW, NEW, OLD, THIRD]),
    ),
    max_size=25,
)


def history(steps, bound):
    """Write one server's binlog; its clock is set back by no more than ``bound`` seconds in all."""
    files = BinlogFiles().new_file(FIRST, at_start=True)
    now, fault, most = FIRST + 10, 0, 0
    for kind, passes, value, origin in steps:
        now += passes
        if kind == "commit":
            time = now + fault
            # What another server committed first came some time later, and that clock is wrong as well.
            original = time if origin == NEW else min(time, now - passes // 2 + value)
            files.write(Transaction(origin, time, original))
        elif kind == "clock":
            fault = max(value, most - bound)
            most = max(most, fault)
        else:
            # A statement's beginning, or another clock's time, is no more than a number.
            files.new_file(max(1, now + value), at_start=kind == "restart")
    return files


def readings(files):
    return [max(one.time, one.original) for _, one in files.transactions]


@given(STEPS, st.integers(FIRST + 11, FIRST + 30 * HOUR))
def test_a_search_by_time_ends_at_the_first_transaction_of_that_time_or_later(steps, wanted):
    """No matter what files say of their making, and clocks that are set back by an hour in all."""
    files = history(steps, HOUR)
    with seeker(files) as found:
        place = found.by_time(at(wanted))
    late = [where for where, one in files.transactions if max(one.time, one.original) >= wanted]
    assert place.position == (late[0] if late else files.head)


@given(STEPS, st.integers(FIRST + 11, FIRST + 30 * HOUR))
def test_a_clock_set_back_by_more_never_gives_a_position_after_the_end_or_within_a_transaction(steps, wanted):
    """What is left out then committed before a transaction that the clock says is old."""
    files = history(steps, 100 * HOUR)
    with seeker(files) as found:
        place = found.by_time(at(wanted))
    assert place.position in {files.head, *(where for where, _ in files.transactions)}
    for (where, _), reading in zip(files.transactions, readings(files), strict=True):
        if where < place.position and reading >= wanted:
            later = [r for (w, _), r in zip(files.transactions, readings(files), strict=True) if where < w]
            assert min(later) < reading - HOUR


@st.composite
def failovers(draw):
    """A primary's transactions, how many were read, and the binlog of the standby that has some of them and then its own."""
    clock, now, fault = [], FIRST + 10, 0
    for step, jump in draw(st.lists(st.tuples(st.integers(0, 1000), st.sampled_from([0, 0, 0, -50, 40])), max_size=25)):
        now += step
        fault += jump  # the clock of the primary, by fits and starts; that of the standby is wrong by hours
        clock.append(now + fault)
    read = draw(st.integers(0, len(clock)))
    has = draw(st.integers(0, len(clock)))
    skew = draw(st.integers(-5 * HOUR, 5 * HOUR))
    files, wrong = BinlogFiles(), st.integers(-3 * HOUR, 3 * HOUR)
    files.new_file(FIRST + skew, at_start=True)
    for number, original in enumerate(clock[:has]):
        if draw(st.integers(0, 3)) == 0:
            files.new_file(original + draw(wrong), at_start=draw(st.booleans()))
        files.write(Transaction(OLD, original + skew, original))
        if draw(st.integers(0, 9)) == 0:  # somebody wrote to the standby, before what follows
            files.write(Transaction(NEW, original + skew, original + skew))
        assert number < has
    unread = [where for where, one in files.transactions if one.origin == OLD][read:]
    for _ in range(draw(st.integers(0, 4))):
        now += draw(st.integers(0, HOUR))
        if draw(st.integers(0, 2)) == 0:
            files.new_file(now + draw(wrong), at_start=draw(st.booleans()))
        unread.append(files.head)
        files.write(Transaction(NEW, now + skew, now + skew))
    return files, clock[:read], unread


@given(failovers())
def test_after_a_failover_everything_unread_is_after_the_position(given_):
    """No matter what the clocks of both servers show, and whether or not the standby has what was read last."""
    files, read, unread = given_
    if not read:
        return
    with seeker(files) as found:
        try:
            place = found.by_commit(Commit(OLD, at(read[-1] - FALLBACK)))
        except PositionNotFound:
            # Nothing of the primary in it is known to be earlier.
            early = [one for _, one in files.transactions if one.origin == OLD and one.original < read[-1] - FALLBACK]
            assert not early or early[0] is not next(one for _, one in files.transactions if one.origin == OLD)
            return
    assert all(place.position <= where for where in unread)


def test_a_file_that_lost_its_end_stops_the_search_and_a_crash_does_not():
    """GTIDs of the next file name what is missing; a crash's follower was made by a start."""
    uuid = bytes(15) + b"\1"

    def before(last):
        return (1).to_bytes(8, "little") + uuid + (1).to_bytes(8, "little") + (1).to_bytes(8, "little") + (last + 1).to_bytes(8, "little")  # fmt: skip

    def files(last, **settings):
        made = BinlogFiles().new_file(FIRST, at_start=True)
        for number in (1, 2, 3):
            made.write(Transaction(NEW, FIRST + number, FIRST + number, number))
        made.new_file(FIRST + 4, close=False, before=before(last), **settings)
        return made.write(Transaction(NEW, FIRST + 9, FIRST + 9, last + 1))

    name = "00000000-0000-0000-0000-000000000001"
    for at_start in (True, False):
        for wanted in (at(FIRST + 5), GtidSet.parse("mysql", f"{name}:1-3")):
            with seeker(files(7, at_start=at_start), "ON") as found, pytest.raises(BinlogIncomplete) as refused:
                found.checkpoint(found._scan("binlog.000001", wanted))
            assert f"{name}:4-7" in refused.value.message
            assert refused.value.context["file"] == "binlog.000001"
            assert "cdc cursor rewind shop --position binlog.000002:4" in refused.value.hint
    with seeker(files(3, at_start=True), "ON") as found:
        assert found.by_time(at(FIRST + 5)).position == files(3, at_start=True).transactions[-1][0]
    torn = BinlogFiles().new_file(FIRST, at_start=True).new_file(FIRST, at_start=False, close=False)
    with seeker(torn) as found, pytest.raises(BinlogIncomplete, match="no start of the server made the next file"):
        found.by_time(at(FIRST + 5))


def test_purged_files_are_skipped_only_if_they_are_known_to_be_earlier():
    """A file that a rotation made tells when the statement began, and the purged transaction committed after that."""
    for at_start, refuses in ((True, False), (False, True)):
        files = BinlogFiles().new_file(FIRST, at_start=at_start).write(Transaction(NEW, FIRST + 500, FIRST + 500))
        with seeker(files) as found:
            if refuses:
                with pytest.raises(PositionNotFound, match="the oldest binlog file was made at"):
                    found.by_time(at(FIRST + 100))
            else:
                assert found.by_time(at(FIRST + 100)).position == files.transactions[0][0]
            assert found.by_time(at(FIRST + 500) + timedelta(microseconds=1)).position == files.head
