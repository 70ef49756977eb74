"""An S3 store over a network that loses things: a real server behind a proxy that breaks connections."""

from __future__ import annotations

import os
from dataclasses import replace

import pytest

from cdc_lib.errors import ConfigError, StoreUnavailable
from cdc_lib.model.cursor import Cursor
from cdc_lib.model.position import Position
from cdc_lib.model.server_identity import ServerIdentity
from cdc_lib.store.cursors import ObjectCursorStore
from cdc_lib.store.objects.s3 import S3Store
from tests.harness.network.lossy_proxy import LossyProxy
from tests.harness.store.stores import options

FRESH = Cursor("shop", "drain", 0, 1, ServerIdentity("mysql", "uuid", 1), Position("binlog.000001", 4))
ATTEMPTS = 3


@pytest.fixture
def direct(s3_server, bucket):
    return S3Store(bucket, "p", options(s3_server))


@pytest.fixture
def proxy(s3_server):
    with LossyProxy(s3_server.endpoint) as proxy:
        yield proxy


@pytest.fixture
def store(s3_server, bucket, proxy):
    few = replace(options(s3_server, proxy.url), attempts=ATTEMPTS, connect_timeout=5, read_timeout=20)
    store = S3Store(bucket, "p", few)
    store.probe()
    return store


def uploads(s3_server, bucket):
    return s3_server.client().list_multipart_uploads(Bucket=bucket).get("Uploads", [])


def test_an_upload_whose_completion_was_lost_is_complete(store, direct, proxy):
    """The upload is not there any more, because it became the object."""
    data = os.urandom(33 << 20)
    with store.open_write("big") as file:
        file.write(data)
        proxy.lose_answers("POST", 1)
    assert proxy.lost == 1
    assert direct.get("big").data == data


def test_an_upload_that_cannot_be_sent_leaves_nothing(store, direct, proxy, s3_server, bucket):
    """Neither an object nor parts that are paid for."""

    def write_and_lose():
        with store.open_write("big") as file:
            file.write(os.urandom(17 << 20))
            proxy.lose_answers("PUT", ATTEMPTS)
            file.write(os.urandom(17 << 20))

    with pytest.raises(StoreUnavailable):
        write_and_lose()
    assert direct.get("big") is None
    assert uploads(s3_server, bucket) == []


def test_an_upload_that_is_broken_off_leaves_no_parts(direct, s3_server, bucket):
    """Whatever the reason was."""

    def write_and_stop():
        with direct.open_write("big") as file:
            file.write(os.urandom(40 << 20))
            assert len(uploads(s3_server, bucket)) == 1
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_and_stop()
    assert uploads(s3_server, bucket) == []


def drop_conditions(store, names):
    """Send no conditions, which is to the store what a server is that ignores them."""

    def drop(params, **_):
        for name in names:
            params.pop(name, None)

    store._s3.client.meta.events.register("provide-client-params.s3.PutObject", drop)


@pytest.mark.parametrize("name", ["IfNoneMatch", "IfMatch"])
def test_a_server_that_ignores_a_condition_is_refused_before_the_first_one(s3_server, bucket, name):
    """No cursor is ever written to it, and no attempt makes it better."""
    store = S3Store(bucket, f"ignores-{name}", options(s3_server))
    drop_conditions(store, [name])
    for _ in range(2):
        with pytest.raises(ConfigError, match="does not keep the condition If-"):
            ObjectCursorStore(store).swap(None, FRESH)
    assert list(store.list("")) == []


def test_keys_that_are_wrong_are_a_setting_that_is_wrong(s3_server, bucket):
    """Neither the access key nor the secret key is shown."""
    right = options(s3_server)
    wrong_secret = S3Store(bucket, "", replace(right, secret_key="not the secret key"))
    refuses(wrong_secret, "SignatureDoesNotMatch|403: Forbidden")
    refuses(S3Store(bucket, "", replace(right, access_key="nobody")), "InvalidAccessKeyId|403: Forbidden")
    assert right.secret_key not in repr(wrong_secret) + repr(wrong_secret.options) + repr(right)


def test_an_endpoint_that_is_no_address_is_a_setting_that_is_wrong(bucket, s3_server):
    """The error comes when the client is made."""
    with pytest.raises(ConfigError, match="endpoint_url"):
        S3Store(bucket, "", options(s3_server, "no address")).get("x")


def test_the_url_is_the_one_that_spark_reads(direct, bucket):
    """By Hadoop's S3A."""
    assert direct.url("shop/x.parquet") == f"s3a://{bucket}/p/shop/x.parquet"


def test_a_prefix_fences_its_store_in(s3_server, bucket):
    """A neighbour whose prefix begins alike is not seen."""
    one, other = (S3Store(bucket, prefix, options(s3_server)) for prefix in ("a", "a2"))
    one.put("x", b"1")
    other.put("y", b"2")
    s3_server.client().put_object(Bucket=bucket, Key="a/folder/", Body=b"")
    assert [info.key for info in one.list("")] == ["x"]
    assert [info.key for info in other.list("")] == ["y"]


def calls(store):
    return [
        lambda: store.get("x"),
        lambda: store.put("x", b""),
        lambda: store.put_if_absent("x", b""),
        lambda: store.put_if_match("x", b"", "etag"),
        lambda: store.open_read("x"),
        lambda: list(store.list("")),
        lambda: store.delete(["x"]),
        store.probe,
    ]


def refuses(store, said):
    for call in calls(store):
        with pytest.raises(ConfigError, match=said) as caught:
            call()
        assert caught.value.hint
