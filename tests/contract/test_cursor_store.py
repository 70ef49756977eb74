"""What every cursor store does: one suite over memory, a local folder, a real S3 server, and memory before a folder."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from cdc_lib.errors import ConfigError, CursorMoved
from cdc_lib.model.cursor import Cursor
from cdc_lib.model.position import Position
from cdc_lib.model.server_identity import ServerIdentity
from cdc_lib.model.subscription import Lease
from cdc_lib.model.window import SnapshotTask, Window
from cdc_lib.store.cursors import ObjectCursorStore
from cdc_lib.store.periodic import PeriodicCursorStore
from tests.harness.processes.races import at_once, swaps
from tests.harness.store.memory_cursors import MemoryCursorStore
from tests.harness.store.stores import KINDS, empty_store

AT = datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)
WINDOW = Window("shop", 1, Position("binlog.000001", 4), Position("binlog.000002", 4))
LEASE = Lease("a test", "token", datetime(2099, 1, 1, tzinfo=UTC))
FRESH = Cursor("shop", "audit", 0, 1, ServerIdentity("mysql", "uuid", 1), WINDOW.start, lease=LEASE)


@pytest.fixture(params=["memory", *KINDS, "periodic"])
def cursors(request, tmp_path):
    if request.param == "memory":
        yield MemoryCursorStore()
    elif request.param == "periodic":
        with PeriodicCursorStore(ObjectCursorStore(empty_store("local", request, tmp_path)), every=0.01) as periodic:
            yield periodic
    else:
        yield ObjectCursorStore(empty_store(request.param, request, tmp_path))


def test_there_is_no_cursor_before_its_first_write(cursors):
    """Neither to load nor to list."""
    assert cursors.load("shop", "audit") is None
    assert cursors.consumers("shop") == []


def test_a_cursor_is_created_with_generation_one(cursors):
    """What is returned is what is loaded."""
    made = cursors.swap(None, FRESH)
    assert made.generation == 1
    assert made.writer
    assert replace(made, generation=0, writer="") == FRESH
    assert cursors.load("shop", "audit") == made


def test_each_swap_counts_one_generation_and_names_its_writer(cursors):
    """Whatever the caller wrote into these two fields."""
    first = cursors.swap(None, FRESH)
    second = cursors.swap(first, replace(first, generation=77, writer="me"))
    assert second.generation == 2
    assert second.writer not in {"me", first.writer}
    assert cursors.load("shop", "audit") == second


def test_everything_in_a_cursor_comes_back(cursors):
    """Windows, snapshots and moves included."""
    full = replace(
        FRESH.with_windows((WINDOW,)).with_snapshot(SnapshotTask("shop", 1, "s1", "shop", "orders", 3)),
        gtid_set="3e11fa47-71ca-11e1-9e33-c80aa9429562:1-5",
    )
    made = cursors.swap(None, full.acked(WINDOW, at=AT, event_time=AT, by="task ack_drain"))
    assert cursors.load("shop", "audit") == made
    assert made.moves[0].by == "task ack_drain"


def test_a_cursor_is_created_only_once(cursors):
    """The second creator loses, with the generation that it found."""
    cursors.swap(None, FRESH)
    with pytest.raises(CursorMoved) as caught:
        cursors.swap(None, FRESH)
    assert caught.value.context["expected_generation"] == 0
    assert caught.value.context["found_generation"] == 1


def test_a_swap_of_an_old_generation_is_refused_and_names_the_holder(cursors):
    """The cursor stays where the other one put it."""
    first = cursors.swap(None, FRESH)
    second = cursors.swap(first, first.acked(WINDOW, at=AT, event_time=AT, by="task ack_drain of run 7"))
    with pytest.raises(CursorMoved) as caught:
        cursors.swap(first, first)
    assert caught.value.context == {
        "source": "shop",
        "consumer": "audit",
        "expected_generation": 1,
        "found_generation": 2,
        "found_position": "binlog.000002:4",
        "held_by": "task ack_drain of run 7",
    }
    assert cursors.load("shop", "audit") == second


def test_a_swap_of_a_cursor_that_never_was_is_refused(cursors):
    """One that was removed by hand does not come back automatically."""
    with pytest.raises(CursorMoved) as caught:
        cursors.swap(replace(FRESH, generation=3, writer="w"), FRESH)
    assert caught.value.context["found_generation"] == 0
    assert cursors.load("shop", "audit") is None


def test_the_same_generation_of_another_writer_is_not_the_same_cursor(cursors):
    """A cursor that was removed and made again counts from one again."""
    made = cursors.swap(None, FRESH)
    with pytest.raises(CursorMoved):
        cursors.swap(replace(made, writer="one of an earlier life"), FRESH)


def test_a_cursor_cannot_become_that_of_another_consumer(cursors):
    """Neither of another source."""
    made = cursors.swap(None, FRESH)
    for other in (replace(made, consumer="other"), replace(made, source="store")):
        with pytest.raises(ConfigError):
            cursors.swap(made, other)


def test_consumers_are_listed_by_source(cursors):
    """In the order of the alphabet, and only those of the source itself."""
    for source, consumer in (("shop", "wire"), ("shop", "audit"), ("shop2", "audit"), ("shop", "export.v2")):
        cursors.swap(None, replace(FRESH, source=source, consumer=consumer))
    assert list(cursors.consumers("shop")) == ["audit", "export.v2", "wire"]
    assert list(cursors.consumers("shop2")) == ["audit"]


@pytest.mark.parametrize("name", ["", "../drain", "a/b", ".drain", "x" * 151, "dr\nain"])
def test_names_that_are_no_names_are_refused(cursors, name):
    """Before anything is read or written."""
    with pytest.raises(ConfigError):
        cursors.load("shop", name)
    with pytest.raises(ConfigError):
        cursors.load(name, "audit")
    with pytest.raises(ConfigError):
        cursors.swap(None, replace(FRESH, consumer=name))


def test_of_sixteen_creators_exactly_one_wins(cursors):
    """The others get the answer that it is there."""

    def create(_):
        try:
            return cursors.swap(None, FRESH)
        except CursorMoved:
            return None

    made = [cursor for cursor in at_once(create) if cursor]
    assert made == [cursors.load("shop", "audit")]


def test_each_generation_is_won_by_exactly_one_of_sixteen(cursors):
    """Round after round from the same generation."""
    cursors.swap(None, FRESH)
    for generation in range(2, 12):
        old = cursors.load("shop", "audit")

        def swap(_, old=old):
            try:
                return cursors.swap(old, old)
            except CursorMoved:
                return None

        winners = [cursor for cursor in at_once(swap) if cursor]
        assert winners == [cursors.load("shop", "audit")]
        assert winners[0].generation == generation


def test_swaps_without_turns_lose_no_generation(cursors):
    """Sixteen that load and swap as they like: the generations that were won are those that were counted."""
    cursors.swap(None, FRESH)
    wins = sum(at_once(lambda n: sum(swaps(cursors, n, "audit") for _ in range(5)), 16))
    assert cursors.load("shop", "audit").generation == 1 + wins
    assert wins >= 5


def test_a_removed_cursor_no_longer_exists_and_its_holder_is_fenced(cursors):
    """A later one of its name begins again, and is not the one that was loaded before."""
    first = cursors.swap(None, FRESH)
    second = cursors.swap(first, first)
    with pytest.raises(CursorMoved):
        cursors.remove(first)
    cursors.remove(second)
    assert cursors.load("shop", "audit") is None
    assert cursors.consumers("shop") == []
    with pytest.raises(CursorMoved):
        cursors.swap(second, second)
    assert cursors.swap(None, FRESH).generation == 1
    with pytest.raises(CursorMoved):
        cursors.remove(second)
