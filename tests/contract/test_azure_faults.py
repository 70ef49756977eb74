"""A store of Azure Blob Storage: what only Azure has, and settings that are wrong."""

from __future__ import annotations

import os

import pytest

from cdc_lib.errors import ConfigError, CorruptBatch, StoreError, StoreUnavailable
from cdc_lib.store.objects.azure import AzureStore
from cdc_lib.store.objects.azure_options import AzureOptions
from tests.harness.servers.azure import AzureServer
from tests.harness.store.azure_identity import IdentityServer
from tests.harness.store.lossy_stores import lossy_store
from tests.harness.store.stores import azure


@pytest.fixture
def direct(azure_server, azure_container):
    return AzureStore(azure_container, azure_server.host, "p", azure(azure_server, patience=0.5))


@pytest.fixture
def lossy(request):
    with lossy_store("azure", request) as lossy:
        yield lossy


@pytest.fixture(scope="module")
def tls_server():
    with AzureServer(names=["127.0.0.1"]) as server:
        yield server


def write(store, proxy, method, lost):
    """Write 40 MiB, and lose answers from the first 17 on."""
    data = os.urandom(40 << 20)
    with store.open_write("big") as file:
        file.write(data[: 17 << 20])
        proxy.lose_answers(method, lost)
        file.write(data[17 << 20 :])
    return data


def test_a_stream_is_whole_though_answers_were_lost(lossy):
    """A block that is sent twice is there once, and so is the list of blocks."""
    data = write(lossy.store, lossy.proxy, "PUT", 1)
    assert lossy.proxy.lost == 1
    assert lossy.direct.get("big").data == data
    with lossy.store.open_write("other") as file:
        file.write(data)
        file.flush()
        lossy.proxy.lose_answers("PUT", 2)  # of the last block, and of the list
    assert lossy.proxy.lost == 3
    assert lossy.direct.get("other").data == data


def test_a_stream_that_cannot_be_sent_leaves_nothing(lossy):
    """The error may be tried again, and the next writer is not disturbed by blocks of this one."""
    with pytest.raises(StoreUnavailable):
        write(lossy.store, lossy.proxy, "PUT", 1_000)
    lossy.proxy.lose_answers("PUT", 0)
    assert lossy.direct.get("big") is None
    assert list(lossy.direct.list("")) == []
    data = write(lossy.direct, lossy.proxy, "PUT", 0)
    assert lossy.direct.get("big").data == data


def test_a_server_that_is_busy_is_asked_again(lossy):
    """Azure answers 503 to more requests than an account may send."""
    for method, call in (("PUT", lambda: lossy.store.put_if_absent("x", b"1")), ("GET", lambda: lossy.store.get("x"))):
        lossy.proxy.refuse(method, 2, 503, "ServerBusy")
        assert call()
    assert lossy.proxy.refused == 4


def test_a_missing_right_says_which_role_gives_it(lossy):
    """No attempt makes it better."""
    for method, call in (("GET", lambda: lossy.store.get("x")), ("PUT", lambda: lossy.store.put("x", b""))):
        lossy.proxy.refuse(method, 1, 403, "AuthorizationPermissionMismatch")
        with pytest.raises(ConfigError, match="403 AuthorizationPermissionMismatch") as caught:
            call()
        assert "Storage Blob Data Contributor" in caught.value.hint
    assert lossy.proxy.refused == 2


def test_folders_of_a_hierarchical_namespace_are_no_objects(azure_server, azure_container, direct):
    """Such accounts list each folder as an empty object, which only its metadata tells from one."""
    with azure_server.client() as client:
        folder = client.get_container_client(azure_container).get_blob_client("p/shop/batches")
        folder.upload_blob(b"", metadata={"hdi_isfolder": "true"})
    direct.put("shop/batches/x", b"")
    assert [info.key for info in direct.list("")] == ["shop/batches/x"]
    assert direct.get("shop/batches") is None
    with pytest.raises(CorruptBatch, match="no such object"):
        direct.open_read("shop/batches")


def test_a_lease_is_no_condition_that_is_false(azure_server, azure_container, direct):
    """Its answer has the same status, and means that nobody may write: no other writer has won."""
    etag = direct.put("c", b"1")
    with azure_server.client() as client:
        client.get_blob_client(azure_container, "p/c").acquire_lease()
    with pytest.raises(StoreError, match="412 LeaseIdMissing"):
        direct.put_if_match("c", b"2", etag)
    assert direct.get("c").data == b"1"


def test_an_object_with_snapshots_is_deleted(azure_server, azure_container, direct):
    """Backups of an account make them."""
    direct.put("c", b"1")
    with azure_server.client() as client:
        client.get_blob_client(azure_container, "p/c").create_snapshot()
    direct.delete(["c"])
    assert direct.get("c") is None


def test_a_sas_token_and_a_connection_string_open_the_store(azure_server, azure_container):
    """As an account key does; a token that may not write is a setting that is wrong."""
    for secret in (azure_server.sas(), f"?{azure_server.sas()}", azure_server.connection_string):
        store = AzureStore(azure_container, azure_server.host, "p", azure(azure_server, secret=secret))
        store.put("x", b"1")
        assert [info.key for info in store.list("")] == ["x"]
        assert secret not in repr(store) + repr(store.options)
        store.delete(["x"])
    reads = AzureStore(azure_container, azure_server.host, "p", azure(azure_server, secret=azure_server.sas("rl")))
    assert reads.get("x") is None
    with pytest.raises(ConfigError, match="403") as caught:
        reads.put("x", b"1")
    assert "permissions rwdlac" in caught.value.hint


def test_secrets_that_are_wrong_are_settings_that_are_wrong(azure_server, azure_container):
    """No part of them is shown."""
    other = "AccountName=other;AccountKey=c2VjcmV0IHNlY3JldCBzZWNyZXQ="
    for secret, said in (
        ("c2VjcmV0IHNlY3JldCBzZWNyZXQ=", "403 AuthenticationFailed|403 AuthorizationFailure"),
        ("no secret", "not one of Azure Storage"),
        (other, "that of the account 'other'"),
    ):
        with pytest.raises(ConfigError, match=said) as caught:
            AzureStore(azure_container, azure_server.host, "p", azure(azure_server, secret=secret)).put("x", b"")
        assert caught.value.hint
        assert secret.rpartition("AccountKey=")[2] not in str(caught.value)


def test_a_managed_identity_opens_the_store(tls_server, monkeypatch):
    """Where the source file names no secret; its token is for storage, and sent by TLS alone."""
    container = tls_server.make_container()
    with IdentityServer() as identity:
        for name, value in identity.environment.items():
            monkeypatch.setenv(name, value)
        store = AzureStore(container, tls_server.host, "p", azure(tls_server, secret=None))
        assert store.put_if_absent("m.json", b"mine")
        assert store.get("m.json").data == b"mine"
        assert identity.resources == {"https://storage.azure.com"}
        plain = AzureOptions("http://127.0.0.1:1", patience=0.1)
        with pytest.raises(ConfigError, match="a token is not sent"):
            AzureStore(container, tls_server.host, "p", plain).get("m.json")


def test_no_identity_is_a_setting_that_is_wrong(tls_server, monkeypatch):
    """Where nothing is named, and Azure's client finds nothing."""
    for name in ("PATH", "IDENTITY_ENDPOINT", "AZURE_CLIENT_ID"):
        monkeypatch.delenv(name, raising=False)  # without PATH there is no az
    monkeypatch.setenv("AZURE_POD_IDENTITY_AUTHORITY_HOST", "http://127.0.0.1:1")
    with pytest.raises(ConfigError, match="could not read an object") as caught:
        AzureStore("container", tls_server.host, "", azure(tls_server, secret=None, patience=0.1)).get("x")
    assert "azure_secret_env" in caught.value.hint


def test_a_certificate_of_an_authority_of_ones_own_is_named(tls_server):
    """Without its file the error says so, at once."""
    container = tls_server.make_container()
    assert AzureStore(container, tls_server.host, "p", azure(tls_server)).put("x", b"")
    with pytest.raises(ConfigError, match=r"certificate of the Azure server https://127\.0\.0\.1") as caught:
        AzureStore(container, tls_server.host, "p", azure(tls_server, ca=None)).put("x", b"")
    assert "store.ca" in caught.value.hint


def test_the_url_is_the_one_that_spark_reads(direct, azure_container, azure_server, tls_server):
    """By Hadoop's client of the Data Lake."""
    at = f"{azure_container}@{azure_server.host}/p/shop/x.parquet"
    assert direct.url("shop/x.parquet") == f"abfs://{at}"
    assert AzureStore(azure_container, azure_server.host, "p").url("shop/x.parquet") == f"abfss://{at}"
    assert AzureStore("c", tls_server.host, "", azure(tls_server)).url("x").startswith("abfss://")


@pytest.mark.parametrize(
    ("host", "address"),
    [
        ("lake.dfs.core.windows.net", "https://lake.blob.core.windows.net"),
        ("lake.z12.dfs.storage.azure.net", "https://lake.z12.blob.storage.azure.net"),
        ("lake.dfs.core.chinacloudapi.cn", "https://lake.blob.core.chinacloudapi.cn"),
    ],
)
def test_objects_are_read_by_the_blob_api_of_the_account(host, address):
    """Also in national clouds and DNS zones."""
    assert AzureStore("container", host)._azure.account_url == address
