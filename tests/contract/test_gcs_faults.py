"""A store of Google Cloud Storage over a network that loses things, and with settings that are wrong."""

from __future__ import annotations

import os

import pytest

from cdc_lib.errors import ConfigError, StoreUnavailable
from cdc_lib.store.objects.gcs import GcsStore
from cdc_lib.store.objects.gcs_options import GcsOptions
from tests.harness.network.lossy_proxy import LossyProxy
from tests.harness.servers.gcs import GcsServer
from tests.harness.store.google_account import TokenServer, account_key
from tests.harness.store.stores import gcs


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


def test_a_writer_that_is_too_fast_is_held_up(store, direct, proxy):
    """Google refuses more than about one write a second of one object, and takes it later."""
    proxy.refuse("POST", 2, 429, "rateLimitExceeded")
    assert store.put_if_absent("m.json", b"mine") is True
    assert proxy.refused == 2
    assert direct.get("m.json").data == b"mine"


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
