"""A cursor swap whose answer is lost between the store and the task."""

from __future__ import annotations

import pytest

from cdc_lib.errors import CorruptBatch, CursorMoved, StoreUnavailable
from cdc_lib.model.cursor import Cursor
from cdc_lib.model.position import Position
from cdc_lib.model.server_identity import ServerIdentity
from cdc_lib.store.cursors import ObjectCursorStore
from cdc_lib.store.objects.local import LocalStore

FRESH = Cursor("shop", "drain", 0, 1, ServerIdentity("mysql", "uuid", 1), Position("binlog.000001", 4))


class LosesAnswers(LocalStore):
    """Writes, and then cannot say so: with an error, or with a no that a second request was given."""

    lost: str = ""

    def put_if_absent(self, key, data):
        return self._lose(super().put_if_absent(key, data), no=False)

    def put_if_match(self, key, data, etag):
        return self._lose(super().put_if_match(key, data, etag), no=None)

    def _lose(self, answer, no):
        if self.lost == "error":
            raise StoreUnavailable("the connection broke")
        return no if self.lost == "no" else answer


class IsAway(LocalStore):
    """Does not write at all."""

    def put_if_match(self, key, data, etag):
        raise StoreUnavailable("no answer", key=key, bytes=len(data), etag=etag)


@pytest.mark.parametrize("how", ["error", "no"])
def test_a_swap_that_was_done_is_recognised_by_its_writer(tmp_path, how):
    """It returns what it wrote, and the next swap continues from it."""
    store = LosesAnswers(tmp_path)
    cursors = ObjectCursorStore(store)
    store.lost = how
    first = cursors.swap(None, FRESH)
    second = cursors.swap(first, first)
    assert second.generation == 2
    assert cursors.load("shop", "drain") == second
    with pytest.raises((CursorMoved, StoreUnavailable)):
        cursors.swap(first, first)
    assert cursors.load("shop", "drain") == second


def test_a_swap_that_was_not_done_raises_what_may_be_tried_again(tmp_path):
    """And the cursor is where it was."""
    first = ObjectCursorStore(LocalStore(tmp_path)).swap(None, FRESH)
    cursors = ObjectCursorStore(IsAway(tmp_path))
    with pytest.raises(StoreUnavailable):
        cursors.swap(first, first)
    assert cursors.load("shop", "drain") == first


def test_a_cursor_that_was_copied_by_hand_is_refused(tmp_path):
    """It names another consumer than its key does."""
    store = LocalStore(tmp_path)
    cursors = ObjectCursorStore(store)
    cursors.swap(None, FRESH)
    store.put("shop/cursors/lake.json", store.get("shop/cursors/drain.json").data)
    with pytest.raises(CorruptBatch, match="drain cursor"):
        cursors.load("shop", "lake")
