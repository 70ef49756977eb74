"""A store of Google Cloud Storage over a network that loses things, and with settings that are wrong."""

from __future__ import annotations

import os

import pytest

from cdc_lib.errors import ConfigError, CorruptBatch, StoreUnavailable
from cdc_lib.model.cursor import Cursor
from cdc_lib.model.position import Position
from cdc_lib.model.server_identity import ServerIdentity
from cdc_lib.store.cursors import ObjectCursorStore
from cdc_lib.store.objects.gcs import GcsStore
from cdc_lib.store.objects.gcs_options import GcsOptions
from tests.harness.google_account import TokenServer, account_key
from tests.harness.lossy_proxy import LossyProxy
from tests.harness.servers.gcs import GcsServer
from tests.harness.stores import gcs

FRESH = Cursor("shop", "drain", 0, 1, ServerIdentity("mysql", "uuid", 1), Position("binlog.000001", 4))


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


@pytest.fixture
def direct(gcs_server, gcs_bucket):
    return GcsStore(gcs_bucket, "p", gcs(gcs_server))


@pytest.fixture
def proxy(gcs_server):
    with LossyProxy(gcs_server.endpoint) as proxy:
        yield proxy


@pytest.fixture
def store(gcs_bucket, proxy):
    store = GcsStore(gcs_bucket, "p", GcsOptions(proxy.url, connect_timeout=5, read_timeout=20, patience=3))
    store.probe()
    return store


def test_a_creation_whose_answer_was_lost_is_ones_own(store, direct, proxy):
    """It is sent again, and refused because the object is there: the one that it wrote."""
    proxy.lose_answers("POST", 1)
    assert store.put_if_absent("m.json", b"mine") is True
    assert proxy.lost == 1
    assert direct.get("m.json").data == b"mine"


def test_a_swap_whose_answer_was_lost_is_ones_own(store, direct, proxy):
    """And the etag that it returns is the right one."""
    etag = store.put("c", b"1")
    proxy.lose_answers("POST", 1)
    etag = store.put_if_match("c", b"2", etag)
    assert proxy.lost == 1
    assert etag == direct.get("c").etag
    assert store.put_if_match("c", b"3", etag)


def test_a_write_whose_every_answer_was_lost_is_ones_own(store, proxy):
    """No attempt heard of it, and what is there tells."""
    proxy.lose_answers("POST", 1_000)
    assert store.put_if_absent("m.json", b"mine") is True
    assert proxy.lost > 2


def test_a_write_that_another_writer_won_is_recognized(store, direct, proxy):
    """Also when the answer that says so is lost once."""
    direct.put("m.json", b"theirs")
    proxy.lose_answers("POST", 1)
    assert store.put_if_absent("m.json", b"mine") is False
    stale = direct.put("c", b"1")
    direct.put("c", b"2")
    proxy.lose_answers("POST", 1)
    assert store.put_if_match("c", b"3", stale) is None
    assert (direct.get("m.json").data, direct.get("c").data) == (b"theirs", b"2")


def test_a_writer_that_is_too_fast_is_held_up(store, direct, proxy):
    """Google refuses more than about one write a second of one object, and takes it later."""
    proxy.refuse("POST", 2, 429, "rateLimitExceeded")
    assert store.put_if_absent("m.json", b"mine") is True
    assert proxy.refused == 2
    assert direct.get("m.json").data == b"mine"


def test_an_answer_that_breaks_off_is_asked_for_again(store, direct, proxy):
    """In the middle of a body."""
    data = os.urandom(3_000_000)
    direct.put("x", data)
    proxy.lose_answers("GET", 1, after_bytes=9_000)
    assert store.get("x").data == data
    assert proxy.lost == 1


@pytest.fixture(scope="module")
def proxied():
    """A store whose uploads, too, go through the proxy."""
    server = GcsServer()
    with LossyProxy(server.endpoint) as proxy:
        server.uploads_at = proxy.url
        with server:
            yield GcsStore(server.make_bucket(), "p", GcsOptions(proxy.url, patience=1)), proxy


def stream(proxied, key, lost):
    """Write 40 MiB, and lose answers in the middle."""
    store, proxy = proxied
    with store.open_write(key) as file:
        file.write(os.urandom(17 << 20))
        proxy.lose_answers("PUT", lost)
        file.write(os.urandom(23 << 20))


def test_a_stream_that_cannot_be_sent_leaves_nothing(proxied):
    """The error may be tried again."""
    store, proxy = proxied
    with pytest.raises(StoreUnavailable):
        stream(proxied, "big", 1_000)
    proxy.lose_answers("PUT", 0)
    assert store.get("big") is None
    assert list(store.list("")) == []


def test_a_stream_that_the_server_stored_wrongly_is_noticed(proxied):
    """Google ignores a part that it has; this server appends it once more, and the checksum of the whole differs."""
    with pytest.raises(StoreUnavailable, match=r"(?i)checksum"):
        stream(proxied, "big", 1)


def test_an_object_that_is_replaced_while_it_is_read_is_not_mixed(direct):
    """All ranges are of the version that was opened, or there is an error."""
    direct.put("x", os.urandom(2_000_000))
    with direct.open_read("x") as file:
        file.read(10)
        direct.put("x", os.urandom(2_000_000))
        file.seek(1_500_000)
        with pytest.raises(CorruptBatch, match="replaced"):
            file.read(10)


def test_a_server_that_ignores_the_condition_is_refused_before_the_first_one(gcs_server, gcs_bucket, monkeypatch):
    """No cursor is ever written to it, and no attempt makes it better."""
    store = GcsStore(gcs_bucket, "ignores", gcs(gcs_server))
    upload = store._gcs.upload

    def unconditional(key, data, **how):
        return upload(key, data, **{name: value for name, value in how.items() if name != "if_generation_match"})

    monkeypatch.setattr(store._gcs, "upload", unconditional)
    for _ in range(2):
        with pytest.raises(ConfigError, match="does not keep the condition If-"):
            ObjectCursorStore(store).swap(None, FRESH)
    assert list(store.list("")) == []


def test_a_bucket_that_is_not_there_is_a_setting_that_is_wrong(gcs_server):
    """Not an object that is missing, not a batch that is lost, and not a store that may come back."""
    for call in calls(GcsStore("no-such-bucket", "", gcs(gcs_server))):
        with pytest.raises(ConfigError, match="404") as caught:
            call()
        assert "Create the bucket" in caught.value.hint


def test_a_missing_server_is_a_retryable_error(gcs_bucket):
    """A closed port is an error to try again."""
    store = GcsStore(gcs_bucket, "", GcsOptions("http://127.0.0.1:1", patience=0.1))
    for call in calls(store):
        with pytest.raises(StoreUnavailable) as caught:
            call()
        assert caught.value.retryable


def test_a_missing_right_says_which_role_gives_it(store, proxy):
    """No attempt makes it better."""
    for method, call in (("GET", lambda: store.get("x")), ("POST", lambda: store.put("x", b""))):
        proxy.refuse(method, 1, 403, "forbidden")
        with pytest.raises(ConfigError, match="403") as caught:
            call()
        assert "Storage Object User" in caught.value.hint
    assert proxy.refused == 2


def test_a_service_account_gets_a_token_and_sends_it(gcs_server, gcs_bucket):
    """Its key is exchanged where the key says, and never shown."""
    with TokenServer() as tokens:
        store = GcsStore(gcs_bucket, "p", gcs(gcs_server, key=account_key(tokens.url)))
        assert store.put_if_absent("m.json", b"mine")
        assert tokens.asked_by == {"cdc@project.iam.gserviceaccount.com"}
        assert tokens.token == store._gcs.client._http.credentials.token
        assert "PRIVATE" not in repr(store) + repr(store.options)


def test_no_machine_credentials_are_a_setting_that_is_wrong(gcs_bucket, monkeypatch, tmp_path):
    """Where nothing is named, and Google's client finds nothing."""
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(tmp_path / "none.json"))
    with pytest.raises(ConfigError, match="could not read an object") as caught:
        GcsStore(gcs_bucket).get("x")
    assert "application default credentials" in caught.value.hint


def test_the_url_is_the_one_that_spark_reads(direct, gcs_bucket):
    """By Hadoop's connector."""
    assert direct.url("shop/x.parquet") == f"gs://{gcs_bucket}/p/shop/x.parquet"
