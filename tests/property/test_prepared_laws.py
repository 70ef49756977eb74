"""However the binlog is cut into windows and merges, a commit brings the rows of its own transaction, once."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from cdc_lib.errors import MergeError
from cdc_lib.model.binlog_checkpoint import BinlogCheckpoint
from cdc_lib.model.cursor import EpochChange
from cdc_lib.model.manifest import Manifest
from cdc_lib.model.position import Point
from cdc_lib.model.window import Window
from cdc_lib.model.xa import Decision, Prepared
from cdc_lib.model.xa_settlement import check_in_snapshots, opened_before, settle
from tests.harness.generated.examples import examples
from tests.harness.lake.batches import IDENTITY, START_TIME, at

STEP = 100
SHIFT = 1_000_000
OTHER = replace(IDENTITY, server_uuid="3e11fa47-71ca-11e1-9e33-c80aa9429599")


def gtid(place):
    """The GTID of the transaction at an offset: in the order of the binlog."""
    return f"3e11fa47-71ca-11e1-9e33-c80aa9429562:{place}"


@dataclass(frozen=True)
class History:
    """Events in the stream's order, and what each commit must bring: (place of the commit, place where it began)."""

    events: tuple[Prepared | Decision, ...]
    commits: tuple[tuple[int, int], ...]
    open: tuple[str, ...]


@st.composite
def xa_histories(draw):
    """Transactions of few ids, so that ids are used again; some without captured rows, some in one phase."""
    events, commits, opened = [], [], {}
    for number in range(1, draw(st.integers(0, 14)) + 1):
        place = number * STEP
        xid = draw(st.sampled_from("abc"))
        if xid not in opened:
            tables = draw(st.sampled_from([(), ("db.t",)]))
            opened[xid] = Prepared(xid, at(place), at(place + 10), tables, gtid(place + 10))
            events.append(opened[xid])
            if not draw(st.integers(0, 4)):
                decided = place + 10
            else:
                continue
        else:
            decided = place
        committed = decided != place or draw(st.booleans())
        transaction = opened.pop(xid)
        events.append(Decision(xid, at(decided), START_TIME, gtid(decided), committed))
        if committed and transaction.tables:
            commits.append((decided, transaction.start.offset))
    return History(tuple(events), tuple(commits), tuple(sorted(opened)))


def cut(history, places, epoch=1, begin=4, end=100_000):
    """Return (key, manifest) of the windows between the places, as a drain leaves them."""
    bounds = [begin, *sorted(place for place in set(places) if begin < place < end), end]
    windows = []
    for start, stop in pairwise(bounds):
        here = [event for event in history.events if start <= event.position.offset < stop]
        prepared = tuple(event for event in here if isinstance(event, Prepared))
        decided = tuple(event for event in here if isinstance(event, Decision))
        manifest = Manifest(
            source="shop", epoch=epoch, identity=IDENTITY, window=Window("shop", epoch, at(start), at(stop)), chunk=None,
            gtid_first=gtid(start), gtid_last="", first_time=None, last_time=None, transactions=0, events=0, files=(),
            schemas={}, prepared=prepared, xa_decisions=decided,
        )  # fmt: skip
        windows.append((f"window-{start:06d}" if epoch == 1 else f"again-{start:06d}", manifest))
    return windows


def at_another_server(windows):
    """Return the same windows as another server has them: the same GTIDs at other positions."""
    moved = []
    for key, manifest in windows:
        window = manifest.window
        prepared = tuple(
            replace(one, start=later(one.start), position=later(one.position)) for one in manifest.prepared
        )
        decided = tuple(replace(one, position=later(one.position)) for one in manifest.xa_decisions)
        there = replace(window, start=later(window.start), stop=later(window.stop))
        moved.append((key, replace(manifest, identity=OTHER, window=there, prepared=prepared, xa_decisions=decided)))
    return moved


def later(position):
    return at(position.offset + SHIFT)


def brought(settlement):
    """Return the offsets of commits and of the rows that they bring, at either server."""
    return [
        (c.decision.position.offset % SHIFT, c.prepared.start.offset % SHIFT)
        for found in settlement.commits.values()
        for c in found
    ]


# Cuts lie on transaction boundaries: never between where a transaction began and where it was prepared.
CUTS = st.lists(st.integers(1, 15).map(lambda n: n * STEP), max_size=6)


@settings(max_examples=examples(300), deadline=None)
@given(xa_histories(), CUTS, st.integers(1, 4))
def test_any_cut_into_windows_and_merges_gives_the_same_commits(history, places, together):
    """What is open is carried from merge to merge; a merge that is settled again says the same."""
    windows = cut(history, places)
    opened, found = (), []
    for first in range(0, len(windows), together):
        settlement = settle(opened, windows[first : first + together])
        assert settlement == settle(opened, windows[first : first + together])
        assert settlement.unknown == ()
        found += brought(settlement)
        opened = settlement.open
    assert tuple(found) == history.commits
    assert tuple(transaction.prepared.xid for transaction in opened) == history.open


@settings(max_examples=examples(300), deadline=None)
@given(xa_histories(), CUTS, st.data())
def test_open_transactions_are_found_in_earlier_windows(history, places, data):
    """A replay of windows that were merged long ago has no cursor to ask."""
    windows = cut(history, places)
    first = data.draw(st.integers(0, len(windows) - 1))
    last = data.draw(st.integers(first, len(windows) - 1))
    replayed = windows[first : last + 1]
    wanted = {decision.xid for _, decision in settle((), replayed).unknown}
    opened = opened_before(reversed(windows[:first]), wanted, replayed[0][1])
    assert {transaction.prepared.xid for transaction in opened} == wanted
    carried = settle(settle((), windows[:first]).open, replayed)
    again = settle(opened, replayed)
    assert (again.commits, again.unknown) == (carried.commits, ())


@settings(max_examples=examples(500), deadline=None)
@given(xa_histories(), CUTS, CUTS, st.integers(1, 15), st.integers(1, 15), st.integers(1, 4), st.booleans())
def test_windows_read_again_add_no_rows_of_a_later_transaction(history, places, again, one, other, together, failover):
    """Ids are used again: a commit that is read again belongs to the transaction before it, never to one that is still open.

    Whether a rewind or a failover goes back.
    """
    began, left = sorted((one * STEP, other * STEP))
    assume(began < left)
    opened = settle((), cut(history, places, end=left)).open
    windows, found = cut(history, again, epoch=2, begin=began), []
    windows = at_another_server(windows) if failover else windows
    for first in range(0, len(windows), together):
        settlement = settle(opened, windows[first : first + together])
        assert all(one.position.offset % SHIFT < left for _, one in settlement.unknown), "it would stop the merge"
        found += brought(settlement)
        opened = settlement.open
    # Of transactions that were prepared before the beginning and committed before it was left, the lake has the rows.
    due = [pair for pair in history.commits if pair[0] >= began and (pair[1] >= began or pair[0] >= left)]
    assert found == due
    assert tuple(transaction.prepared.xid for transaction in opened) == history.open


@settings(max_examples=examples(300), deadline=None)
@given(xa_histories(), CUTS, CUTS, st.integers(1, 15), st.integers(1, 15), st.booleans())
def test_a_search_from_a_replayed_window_finds_the_right_transaction(history, places, again, one, other, failover):
    """Another consumer takes the rows of all commits that are read again, the lake those of a late chunk's windows."""
    began, left = sorted((one * STEP, other * STEP))
    assume(began < left)
    before, windows = cut(history, places, end=left), cut(history, again, epoch=2, begin=began)
    windows = at_another_server(windows) if failover else windows
    wanted = {decision.xid for _, decision in settle((), windows).unknown}
    opened = opened_before([*reversed(before)], wanted, windows[0][1])
    settlement = settle(opened, windows)
    assert brought(settlement) == [pair for pair in history.commits if pair[0] >= began]
    assert settlement.unknown == ()


@given(st.integers(4, 1000), st.lists(st.integers(4, 1000), max_size=3))
def test_an_unknown_commit_passes_only_if_every_snapshot_started_after_it(place, reads):
    """A SELECT at its own position may not have seen it."""
    unknown = [(1, Decision("x", at(place), START_TIME, "", committed=True))]
    points = [Point(1, 1, read) for read in reads]
    if reads and all(place < read for read in reads):
        check_in_snapshots(unknown, points, "shop")
    else:
        with pytest.raises(MergeError, match="shop"):
            check_in_snapshots(unknown, points, "shop")


def test_a_search_in_earlier_windows_reads_no_more_than_it_needs():
    """Manifests are read from the store one by one."""
    history = History((Prepared("a", at(100), at(110), ("db.t",)),), (), ("a",))
    windows = cut(history, [50, 200, 300])
    taken = []

    def newest_first():
        for window in reversed(windows[:3]):
            taken.append(window[0])
            yield window

    assert [t.manifest for t in opened_before(newest_first(), {"a"}, windows[3][1])] == ["window-000050"]
    assert taken == ["window-000200", "window-000050"]
    taken.clear()
    assert opened_before(newest_first(), set(), windows[3][1]) == ()
    assert taken == []


def test_a_decision_that_was_lost_with_its_server_opens_the_transaction_again():
    """The id was used before; the new server commits the last transaction, whose commit it never had."""
    older = (
        Prepared("a", at(100), at(110), ("db.t",), gtid(110)),
        Decision("a", at(200), START_TIME, gtid(200), committed=True),
    )
    newer = (
        Prepared("a", at(300), at(310), ("db.t",), gtid(310)),
        Decision("a", at(400), START_TIME, gtid(400), committed=True),
    )
    windows = cut(History((*older, *newer), (), ()), [150, 250])
    again = Decision("a", at(SHIFT + 500), START_TIME, "3e11fa47-71ca-11e1-9e33-c80aa9429599:1", committed=True)
    first = replace(windows[-1][1], epoch=2, identity=OTHER, prepared=(), xa_decisions=(again,), gtid_first=again.gtid)
    first = replace(first, window=Window("shop", 2, later(at(400)), later(at(600))))
    checkpoints = [
        BinlogCheckpoint(IDENTITY, at(place), None, f"{gtid(1)}-{place}", gtids_known=True, file_time=None)
        for place in (400, 399)
    ]
    lost = EpochChange(2, "failover", START_TIME, "test", "", *checkpoints)
    opened = opened_before(reversed(windows), {"a"}, first, [lost])
    assert [one.prepared for one in opened] == [newer[0]]
    kept = replace(lost, new_start=checkpoints[0])
    assert opened_before(reversed(windows), {"a"}, first, [kept]) == (), "it is decided"


FORGOTTEN = (
    Prepared("a", at(100), at(110), ("db.t",)),
    Decision("a", at(200), START_TIME, "", committed=False),
    Prepared("b", at(210), at(220), ("db.t",)),
    Decision("a", at(300), START_TIME, "", committed=True),
)
"""The history of a server that crashed after 200: it has the transaction open again, and commits it."""


@given(CUTS, st.integers(1, 4))
def test_a_commit_after_a_rollback_that_the_server_forgot_brings_the_rows(places, together):
    """In any windows and merges: what no cursor carries is found in earlier windows."""
    windows = cut(History(FORGOTTEN, (), ()), places)
    opened, found = (), []
    for first in range(0, len(windows), together):
        run = windows[first : first + together]
        wanted = {decision.xid for _, decision in settle(opened, run).unknown}
        opened = (*opened, *opened_before(reversed(windows[:first]), wanted, run[0][1]))
        settlement = settle(opened, run)
        assert settlement.unknown == ()
        found += brought(settlement)
        opened = settlement.open
    assert found == [(300, 100)]
    assert [one.prepared.xid for one in opened] == ["b"]


def test_a_rolled_back_transaction_is_not_committed_over_a_gap():
    """In the windows that are lost, its id may have been prepared again."""
    windows = cut(History(FORGOTTEN, (), ()), [150, 205, 250, 290])
    first = windows[-1][1]
    assert [one.prepared.xid for one in opened_before(reversed(windows[:-1]), {"a"}, first)] == ["a"]
    for lost in (2, 3):  # after the rollback
        left = windows[:lost] + windows[lost + 1 : -1]
        assert opened_before(reversed(left), {"a"}, first) == ()
    assert [one.prepared.xid for one in opened_before(reversed(windows[:3]), {"b"}, first)] == ["b"], "it is open"


def test_an_id_that_is_prepared_again_commits_the_last_transaction():
    """After a rollback, in the same window or an earlier one."""
    again = (*FORGOTTEN[:2], Prepared("a", at(230), at(240), ("db.t",)), FORGOTTEN[3])
    windows = cut(History(again, (), ()), [290])
    assert brought(settle((), windows)) == [(300, 230)]
    opened = opened_before(reversed(windows[:1]), {"a"}, windows[1][1])
    assert brought(settle(opened, windows[1:])) == [(300, 230)]
