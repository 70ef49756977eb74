"""What every store on a server does over a network that loses things: one suite over S3, Google Cloud Storage and Azure."""

from __future__ import annotations

import os

import pytest

from cdc_lib.errors import ConfigError, CorruptBatch, CursorMoved, StoreUnavailable
from cdc_lib.model.cursor import Cursor
from cdc_lib.model.position import Position
from cdc_lib.model.server_identity import ServerIdentity
from cdc_lib.store.cursors import ObjectCursorStore
from tests.harness.store.lossy_stores import SERVERS, ignore_conditions, lossy_store, store_of

FRESH = Cursor("shop", "drain", 0, 1, ServerIdentity("mysql", "uuid", 1), Position("binlog.000001", 4))
ALL = 10_000


@pytest.fixture(params=SERVERS)
def kind(request):
    return request.param


@pytest.fixture
def lossy(kind, request):
    with lossy_store(kind, request) as lossy:
        yield lossy


def calls(store):
    return [
        lambda: store.get("x"),
        lambda: store.put("x", b""),
        lambda: store.put_if_absent("x", b""),
        lambda: store.put_if_match("x", b"", "1"),
        lambda: store.open_read("x"),
        lambda: list(store.list("")),
        lambda: store.delete(["x"]),
        store.probe,
    ]


def test_a_creation_whose_answer_was_lost_is_ones_own(lossy):
    """It is sent again, and refused because the object is there: the one that it wrote."""
    lossy.proxy.lose_answers(lossy.writes, 1)
    assert lossy.store.put_if_absent("m.json", b"mine") is True
    assert lossy.proxy.lost == 1
    assert lossy.direct.get("m.json").data == b"mine"


def test_a_swap_whose_answer_was_lost_is_ones_own(lossy):
    """And the etag that it returns is the right one."""
    etag = lossy.store.put("c", b"1")
    lossy.proxy.lose_answers(lossy.writes, 1)
    etag = lossy.store.put_if_match("c", b"2", etag)
    assert lossy.proxy.lost == 1
    assert etag == lossy.direct.get("c").etag
    assert lossy.store.put_if_match("c", b"3", etag)


def test_a_write_whose_every_answer_was_lost_is_ones_own(lossy):
    """No attempt heard of it, and what is there tells."""
    lossy.proxy.lose_answers(lossy.writes, ALL)
    assert lossy.store.put_if_absent("m.json", b"mine") is True
    assert lossy.proxy.lost > 2


def test_a_write_that_another_writer_won_is_recognized(lossy):
    """Also when the answer that says so is lost once."""
    lossy.direct.put("m.json", b"theirs")
    lossy.proxy.lose_answers(lossy.writes, 1)
    assert lossy.store.put_if_absent("m.json", b"mine") is False
    stale = lossy.direct.put("c", b"1")
    lossy.direct.put("c", b"2")
    lossy.proxy.lose_answers(lossy.writes, 1)
    assert lossy.store.put_if_match("c", b"3", stale) is None
    assert (lossy.direct.get("m.json").data, lossy.direct.get("c").data) == (b"theirs", b"2")


def test_a_cursor_swap_whose_answers_were_lost_has_moved_once(lossy):
    """It returns the cursor that is there, and the next one continues from it."""
    cursors = ObjectCursorStore(lossy.store)
    lossy.proxy.lose_answers(lossy.writes, 1)
    first = cursors.swap(None, FRESH)
    lossy.proxy.lose_answers(lossy.writes, ALL)
    second = cursors.swap(first, first)
    assert second.generation == 2
    assert ObjectCursorStore(lossy.direct).load("shop", "drain") == second
    with pytest.raises(CursorMoved):
        ObjectCursorStore(lossy.direct).swap(first, first)


def test_an_answer_that_breaks_off_is_asked_for_again(lossy):
    """In the middle of a body."""
    data = os.urandom(3_000_000)
    lossy.direct.put("x", data)
    lossy.proxy.lose_answers("GET", 1, after_bytes=9_000)
    assert lossy.store.get("x").data == data
    with lossy.store.open_read("x") as file:
        lossy.proxy.lose_answers("GET", 1, after_bytes=9_000)
        assert file.read() == data
    assert lossy.proxy.lost == 2


def test_answers_that_always_break_off_are_a_store_that_is_not_available(lossy):
    """After a bounded number of attempts."""
    lossy.direct.put("x", os.urandom(3_000_000))
    lossy.proxy.lose_answers("GET", ALL, after_bytes=9_000)
    with pytest.raises(StoreUnavailable):
        lossy.store.get("x")
    assert lossy.proxy.lost < 50


def test_an_object_that_is_replaced_while_it_is_read_is_not_mixed(kind, request):
    """All ranges are of the version that was opened, or there is an error."""
    store = store_of(kind, request)
    store.put("x", os.urandom(2_000_000))
    with store.open_read("x") as file:
        file.read(10)
        store.put("x", os.urandom(2_000_000))
        file.seek(1_500_000)
        with pytest.raises(CorruptBatch, match="replaced"):
            file.read(10)


def test_a_server_that_ignores_conditions_is_refused_before_the_first_one(kind, request, monkeypatch):
    """No cursor is ever written to it, and no attempt makes it better."""
    store = store_of(kind, request, prefix="ignores")
    ignore_conditions(store, monkeypatch)
    for _ in range(2):
        with pytest.raises(ConfigError, match="does not keep the condition If-"):
            ObjectCursorStore(store).swap(None, FRESH)
    assert list(store.list("")) == []


def test_a_bucket_that_is_not_there_is_a_setting_that_is_wrong(kind, request):
    """Not an object that is missing, not a batch that is lost, and not a store that may come back."""
    for call in calls(store_of(kind, request, "no-such-bucket")):
        with pytest.raises(ConfigError, match="404") as caught:
            call()
        assert caught.value.hint.startswith("Create the ")


def test_a_missing_server_is_a_retryable_error(kind, request):
    """A closed port is an error to try again."""
    for call in calls(store_of(kind, request, endpoint="http://127.0.0.1:1", patience=0.1)):
        with pytest.raises(StoreUnavailable) as caught:
            call()
        assert caught.value.retryable
        assert "127.0.0.1" in str(caught.value)


def test_a_prefix_fences_its_store_in(kind, request):
    """A neighbour whose prefix begins alike is not seen."""
    one, other = (store_of(kind, request, prefix=prefix) for prefix in ("a", "a2"))
    one.put("x", b"1")
    other.put("y", b"2")
    assert [info.key for info in one.list("")] == ["x"]
    assert [info.key for info in other.list("")] == ["y"]
