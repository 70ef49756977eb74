"""Cursors in memory before their home: what is at home when, and what becomes of two holders."""

from __future__ import annotations

import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from cdc_lib.errors import ConfigError, CursorMoved, StoreUnavailable
from cdc_lib.model.cursor import DRAIN, LAKE, Cursor
from cdc_lib.model.position import Position
from cdc_lib.model.server_identity import ServerIdentity
from cdc_lib.model.subscription import Lease
from cdc_lib.store.cursors import ObjectCursorStore
from cdc_lib.store.objects.local import LocalStore
from cdc_lib.store.periodic import PeriodicCursorStore

NOW = datetime(2026, 1, 1, tzinfo=UTC)
MINE, OTHERS = Lease("one", "1", NOW + timedelta(hours=1)), Lease("two", "2", NOW + timedelta(hours=1))
FRESH = Cursor("shop", "audit", 0, 1, ServerIdentity("mysql", "uuid", 1), Position("binlog.000001", 4), lease=MINE)
NEVER = 3600.0


def moved(cursor: Cursor, offset: int) -> Cursor:
    return replace(cursor, position=Position("binlog.000001", offset))


class Sometimes(LocalStore):
    """A store that can be away."""

    away = False

    def put_if_match(self, key, data, etag):
        if self.away:
            raise StoreUnavailable("no answer")
        return super().put_if_match(key, data, etag)


@pytest.fixture
def home(tmp_path):
    return ObjectCursorStore(LocalStore(tmp_path))


@pytest.mark.parametrize("name", [DRAIN, LAKE])
def test_the_cursors_of_the_pipeline_are_refused_and_read_from_home(home, name):
    """What they say must be true at once."""
    state = home.swap(None, replace(FRESH, consumer=name))
    with PeriodicCursorStore(home, NEVER) as cursors:
        assert cursors.load("shop", name) == state
        with pytest.raises(ConfigError, match=name):
            cursors.swap(state, state)


def test_a_lease_is_at_home_at_once_and_an_ack_only_when_it_is_closed(home):
    """So that another process sees who holds it; a crash in between gives the batches once more."""
    cursors = PeriodicCursorStore(home, NEVER)
    first = cursors.swap(None, FRESH)
    assert home.load("shop", "audit").lease == MINE
    second = cursors.swap(first, moved(first, 100))
    third = cursors.swap(second, moved(second, 200))
    assert cursors.load("shop", "audit") == third
    assert home.load("shop", "audit") == first
    cursors.close()
    assert home.load("shop", "audit").position.offset == 200


def test_what_moved_is_written_in_the_background(home):
    """Whoever holds the cursor continues from its own generation meanwhile."""
    with PeriodicCursorStore(home, 0.01) as cursors:
        held = cursors.swap(None, FRESH)
        for offset in range(100, 110):
            held = cursors.swap(held, moved(held, offset))
            time.sleep(0.005)
        until = time.monotonic() + 10
        while home.load("shop", "audit").position.offset < 109 and time.monotonic() < until:
            time.sleep(0.01)
        assert home.load("shop", "audit").position.offset == 109
        assert cursors.swap(held, moved(held, 500)).generation == held.generation + 1


def test_a_holder_whose_stored_cursor_was_taken_gets_an_error_and_writes_nothing(home):
    """Its lease ran out, and another process took over."""
    cursors = PeriodicCursorStore(home, NEVER)
    held = cursors.swap(None, FRESH)
    held = cursors.swap(held, moved(held, 100))
    at_home = home.load("shop", "audit")
    theirs = home.swap(at_home, replace(at_home, lease=OTHERS))
    cursors.flush()
    with pytest.raises(CursorMoved):
        cursors.swap(held, moved(held, 200))
    assert home.load("shop", "audit") == theirs
    assert cursors.load("shop", "audit") == theirs


def test_the_loss_is_reported_at_close_when_nothing_was_swapped_since(home):
    """The acks are not in the underlying store, which must be reported."""
    cursors = PeriodicCursorStore(home, NEVER)
    held = cursors.swap(None, FRESH)
    cursors.swap(held, moved(held, 100))
    at_home = home.load("shop", "audit")
    home.swap(at_home, replace(at_home, lease=OTHERS))
    with pytest.raises(CursorMoved):
        cursors.close()


def test_a_home_that_is_away_is_tried_again(tmp_path):
    """Nothing that was acknowledged is forgotten."""
    store = Sometimes(tmp_path)
    home = ObjectCursorStore(store)
    cursors = PeriodicCursorStore(home, NEVER)
    held = cursors.swap(None, FRESH)
    cursors.swap(held, moved(held, 100))
    store.away = True
    with pytest.raises(StoreUnavailable):
        cursors.flush()
    store.away = False
    cursors.close()
    assert home.load("shop", "audit").position.offset == 100


def test_a_cursor_without_a_lease_is_never_kept_in_memory(home):
    """Nobody keeps other processes away from it."""
    with PeriodicCursorStore(home, NEVER) as cursors:
        first = cursors.swap(None, replace(FRESH, lease=None))
        second = cursors.swap(first, moved(first, 100))
        assert home.load("shop", "audit") == second
