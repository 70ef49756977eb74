"""Where a cursor continues, against a model of servers with binlog files, GTIDs, purges, resets and failovers."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from cdc_lib.errors import (
    PositionNotFound,
    PositionPurged,
    ReplicatedChangesNotLogged,
    ServerChanged,
    TransactionsMissing,
)
from cdc_lib.model.commit import Commit
from cdc_lib.model.cursor import DRAIN, Cursor
from cdc_lib.model.gtid import GtidSet
from cdc_lib.model.missing_transactions import MissingTransactions
from cdc_lib.model.position import Position
from cdc_lib.model.server_facts import ServerState
from cdc_lib.model.server_identity import ServerIdentity
from cdc_lib.plan.resume import ByGtid, FailoverRules, Fallback, Initial, Refuse, Resume, decide

EPOCH = datetime(2026, 1, 1, tzinfo=UTC)
UUID = "3e11fa47-71ca-11e1-9e33-c80aa9429562"
STEP = 10
"""Bytes of a transaction in the model."""


@dataclass
class Server:
    """A model of a server: transactions by number, in files; a purge removes them from the files only.

    Args:
        identity: who it is.
        gtids: whether its transactions have GTIDs.
        files: of each file its number, when it was made, and its transactions in order.
        purged: transactions that are in no file any more.
    """

    identity: ServerIdentity
    gtids: bool
    files: list[tuple[int, int, list[int]]] = field(default_factory=lambda: [(1, 0, [])])
    purged: list[int] = field(default_factory=list)

    def write(self, number):
        self.files[-1][2].append(number)

    def flush(self, time):
        self.files.append((self.files[-1][0] + 1, time, []))

    def purge(self, count):
        for _ in range(min(count, len(self.files) - 1)):
            self.purged += self.files.pop(0)[2]

    def reset(self, time, *, data_stays):
        everything = self.executed
        self.files, self.purged = [(1, time, [])], everything if data_stays else []

    @property
    def executed(self):
        return [*self.purged, *(n for _, _, held in self.files for n in held)]

    def set_of(self, numbers):
        return str(GtidSet.of("mysql", [(UUID, (n, n)) for n in numbers])) if self.gtids else ""

    def position(self, file, count):
        return Position(f"binlog.{file:06d}", 4 + STEP * count)

    def cursor(self, file, count, known=True):
        """A cursor of this server after so many transactions of a file."""
        number, made, held = next(one for one in self.files if one[0] == file)
        before = [*self.purged, *(n for f, _, h in self.files if f < number for n in h), *held[:count]]
        at = self.position(number, count)
        times = {at.file: EPOCH + timedelta(seconds=made)} if known else {}
        last = EPOCH + timedelta(seconds=before[-1]) if before else None
        return Cursor(
            "shop", DRAIN, 1, 1, self.identity, at, self.set_of(before), last,
            gtids_known=self.gtids and bool(before), file_times=times,
        ), before  # fmt: skip

    def state(self, cursor):
        made = {f"binlog.{f:06d}": EPOCH + timedelta(seconds=t) for f, t, _ in self.files}
        files = tuple((f"binlog.{f:06d}", 4 + STEP * len(held)) for f, _, held in self.files)
        return ServerState(
            self.identity, files, self.gtids, self.set_of(self.executed), self.set_of(self.purged),
            made.get(cursor.position.file), made[files[0][0]],
        )  # fmt: skip


RULES = FailoverRules(timedelta(seconds=60), "fail")
ACTIONS = st.lists(st.sampled_from(["write", "write", "write", "flush", "purge"]), max_size=25)


def run(server, actions, clock):
    for action in actions:
        clock += 1
        if action == "write":
            server.write(clock)
        elif action == "flush":
            server.flush(clock)
        else:
            server.purge(1)
    return clock


def here(uuid="one", server_id=1):
    return ServerIdentity("mysql", uuid, server_id)


@st.composite
def cursors(draw):
    """A server with a past, and a cursor somewhere in what it has, with all that was read before it."""
    server = Server(here(), draw(st.booleans()))
    clock = run(server, draw(ACTIONS), 0)
    file = draw(st.sampled_from([f for f, _, _ in server.files]))
    held = next(h for f, _, h in server.files if f == file)
    cursor, read = server.cursor(file, draw(st.integers(0, len(held))), known=draw(st.booleans()))
    return server, cursor, read, clock


def left_behind(server, decision, cursor, read):
    """Return what the server has, was not read, and would never be read from the place that was decided for."""
    unread = set(server.executed) - set(read)
    if isinstance(decision, Resume):
        seen = {n for f, _, h in server.files for i, n in enumerate(h) if cursor.position <= server.position(f, i)}
    elif isinstance(decision, ByGtid):
        order = [n for _, _, held in server.files for n in held]
        first = next((i for i, n in enumerate(order) if n not in read), len(order))
        seen = set(order[first:])
    elif isinstance(decision, Fallback):
        order = [n for _, _, held in server.files for n in held]
        second = int((decision.last.time - EPOCH).total_seconds())
        seen = {n for i, n in enumerate(order) if any(m >= second for m in order[: i + 1])}
        if not any(t < second for _, t, _ in server.files[:1]):
            return set()  # the search refuses: no file is old enough
    else:
        return set()
    return unread - seen


@given(cursors(), ACTIONS)
def test_the_same_server_continues_at_the_cursor_until_its_file_is_purged(past, later):
    """Or until all of what was purged had been read. Nothing is left out."""
    server, cursor, read, clock = past
    run(server, later, clock)
    decision = decide(cursor, server.state(cursor), RULES)
    if cursor.position.file in dict(server.state(cursor).files):
        assert isinstance(decision, Resume)
    elif cursor.gtids_known and set(server.purged) == set(read):
        assert isinstance(decision, ByGtid)
    else:
        assert isinstance(decision, Refuse)
        assert isinstance(decision.error, PositionPurged)
        assert "cdc cursor rewind" in decision.error.hint
        assert "new snapshot" in decision.error.hint
    assert not left_behind(server, decision, cursor, read)


@given(cursors(), st.booleans(), ACTIONS)
def test_a_reset_binlog_is_never_read_on_silently(past, data_stays, later):
    """With any content and size of the files that have the same names now."""
    server, cursor, read, clock = past
    cursor = replace(cursor, file_times=server.cursor(cursor.position.file_number, 0)[0].file_times)
    server.reset(clock + 1, data_stays=data_stays)
    run(server, later, clock + 1)
    decision = decide(cursor, server.state(cursor), RULES)
    if isinstance(decision, ByGtid):
        assert data_stays
        assert set(server.purged) == set(read)
        assert not left_behind(server, decision, cursor, read)
        return
    assert isinstance(decision, Refuse), "a server that was reset may give the same GTIDs to other transactions"
    assert isinstance(decision.error, PositionNotFound | PositionPurged)


@given(cursors(), ACTIONS, ACTIONS, st.integers(0, 5), st.booleans(), st.sampled_from(["fail", "ignore", "ask"]))
def test_another_server_leaves_nothing_out(past, more, later, lag, gtids, lost):
    """It has what was replicated to it, in files of its own, of which it may have purged some."""
    server, cursor, read, clock = past
    clock = run(server, more, clock)
    standby = Server(here("two", 2), gtids and server.gtids)
    everything = server.executed
    for number in everything[: len(everything) - lag]:
        standby.write(number)
        if number % 4 == 0:
            standby.flush(number)
    run(standby, later, clock + 1)
    decision = decide(cursor, standby.state(cursor), replace(RULES, on_missing_transactions=lost))
    assert not isinstance(decision, Resume | Initial)
    known = cursor.gtids_known and standby.gtids
    if known and not set(read) <= set(standby.executed):
        assert isinstance(decision, Fallback if lost == "ignore" else Refuse)
    elif known and not set(standby.purged) <= set(read):
        assert isinstance(decision, Refuse)
        assert isinstance(decision.error, PositionPurged)
    elif known:
        assert isinstance(decision, ByGtid)
    elif cursor.event_time is not None:
        assert isinstance(decision, Fallback)
        assert decision.last == Commit(cursor.identity.server_id, cursor.event_time - timedelta(seconds=60))
        assert decision.gtids is None
    assert not left_behind(standby, decision, cursor, read)


@given(cursors(), st.integers(1, 5), st.sampled_from(["fail", "ask"]))
def test_a_person_accepts_what_was_shown_and_nothing_else(past, lag, rule):
    """Fewer transactions may be missing by then, but no others, and no other server may answer."""
    _, cursor, read, _ = past
    assume(cursor.gtids_known)
    there, lost = read[:-lag], read[-lag:]
    standby = Server(here("two", 2), gtids=True)
    for number in there:
        standby.write(number)
    state, rules = standby.state(cursor), replace(RULES, on_missing_transactions=rule)
    refused = decide(cursor, state, rules)
    assert is_missing(refused)
    assert ("asks" in refused.error.hint) == (rule == "ask")
    shown = MissingTransactions(str(refused.error.context["server"]), str(refused.error.context["missing"]))
    assert shown.gtid_set == standby.set_of(lost)
    rules = replace(rules, accepted=shown)
    taken = decide(cursor, state, rules)
    assert isinstance(taken, Fallback)
    assert f"accepted that it never had {shown.gtid_set}" in taken.why
    assert is_missing(decide(cursor, replace(state, identity=here("three", 3)), rules))
    assert is_missing(decide(cursor, replace(state, gtid_set=""), rules)) == bool(there)
    standby.write(lost[0])  # it catches up by one
    assert not is_missing(decide(cursor, standby.state(cursor), rules))


def is_missing(decision):
    return isinstance(decision, Refuse) and isinstance(decision.error, TransactionsMissing)


@given(cursors(), st.text(alphabet="abcdef", min_size=1))
def test_a_decision_is_a_function_of_what_it_is_given(past, uuid):
    """The same twice, and never an exception."""
    server, cursor, _, _ = past
    for identity in (server.identity, here(uuid, 7), ServerIdentity("mariadb", "", 1)):
        state = replace(server.state(cursor), identity=identity)
        one, two = decide(cursor, state, RULES), decide(cursor, state, RULES)
        assert type(one) is type(two)
        if isinstance(one, Refuse):
            assert str(one.error) == str(two.error)
        else:
            assert one == two


def test_without_a_cursor_the_source_file_decides():
    """There is nothing to continue with."""
    server = Server(here(), gtids=True)
    assert decide(None, server.state(server.cursor(1, 0)[0]), RULES) == Initial()


def test_another_flavor_is_refused_with_the_reason():
    """Positions, GTIDs and row images differ."""
    server = Server(here(), gtids=True)
    cursor, _ = server.cursor(1, 0)
    refused = decide(cursor, replace(server.state(cursor), identity=ServerIdentity("mariadb", "", 1)), RULES)
    assert isinstance(refused, Refuse)
    assert isinstance(refused.error, ServerChanged)
    assert "MySQL and MariaDB differ" in refused.error.hint


def test_a_binlog_that_is_shorter_younger_or_called_otherwise_is_another_one():
    """Each fault is named."""
    server = Server(here(), gtids=False)
    for number in range(1, 6):
        server.write(number)
    cursor, _ = server.cursor(1, 5)
    state = server.state(cursor)
    for files, time, fault in (
        ((("binlog.000001", 20),), state.file_time, "has only 20 bytes"),
        (state.files, EPOCH + timedelta(seconds=9), "was made at"),
        ((("mysql-bin.000001", 99),), None, "called otherwise"),
        ((), None, "no files"),
    ):
        refused = decide(cursor, replace(state, files=files, file_time=time), RULES)
        assert isinstance(refused, Refuse)
        assert isinstance(refused.error, PositionNotFound)
        assert fault in refused.error.message


def test_mariadb_servers_are_distinguished_by_server_id_and_domain():
    """It has no uuid."""
    one = ServerIdentity("mariadb", "", 1, 0)
    cursor = Cursor("shop", DRAIN, 1, 1, one, Position("b.000001", 4), "0-1-7", EPOCH, gtids_known=True)
    state = ServerState(one, (("b.000001", 900),), True, "0-1-9", "", None, EPOCH)
    assert isinstance(decide(cursor, state, RULES), Resume)
    for other in (replace(one, server_id=2), replace(one, gtid_domain=5)):
        assert isinstance(decide(cursor, replace(state, identity=other), RULES), ByGtid)
    lacking = replace(state, identity=replace(one, server_id=2), gtid_set="0-1-6,0-2-9")
    assert isinstance(decide(cursor, lacking, RULES), Refuse)


def test_another_server_without_replicated_changes_in_its_binlog_is_refused():
    """With GTIDs too; at the cursor's own server the variable alone is no reason."""
    one = ServerIdentity("mariadb", "", 1, 0)
    cursor = Cursor("shop", DRAIN, 1, 1, one, Position("b.000001", 4), "0-1-7", EPOCH, gtids_known=True)
    state = ServerState(one, (("b.000001", 900),), True, "0-1-9", "", None, EPOCH, logs_replicated=False)
    assert isinstance(decide(cursor, state, RULES), Resume)
    refused = decide(cursor, replace(state, identity=replace(one, server_id=2)), RULES)
    assert isinstance(refused, Refuse)
    assert isinstance(refused.error, ReplicatedChangesNotLogged)


@pytest.mark.parametrize("known", [True, False])
def test_without_a_time_and_without_gtids_the_position_is_unknown(known):
    """So it is refused."""
    cursor = Cursor("shop", DRAIN, 1, 1, here(), Position("binlog.000001", 4), gtids_known=known)
    server = Server(here("two"), gtids=True)
    assert isinstance(decide(cursor, server.state(cursor), RULES), Refuse)
