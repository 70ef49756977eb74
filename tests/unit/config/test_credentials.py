from __future__ import annotations

import pickle

import pytest

from cdc_lib.config import (
    Credentials,
    LakeConfig,
    ServerConfig,
    StoreConfig,
    StoreKeys,
    credentials_from_environment,
    store_keys_from_environment,
)
from cdc_lib.errors import ConfigError
from cdc_lib.model.azure_secret import AzureSecret, azure_secret
from tests.harness.store.google_account import EMAIL, account_key


def test_no_text_of_a_log_in_shows_its_password():
    """Neither what a log prints nor what a debugger shows; pickling keeps it for other processes."""
    for secret in (Credentials("cdc", "hunter2"), StoreKeys("id", "hunter2")):
        assert "hunter2" not in f"{secret} {secret!r} {[secret]}"
        assert pickle.loads(pickle.dumps(secret)) == secret  # noqa: S301 - our own bytes


def test_no_text_of_a_lake_shows_what_may_hold_a_password():
    """A catalog's address and properties often do."""
    lake = LakeConfig(type="rest", uri="https://u:hunter2@h", properties={"token": "hunter2"})
    assert "hunter2" not in f"{lake} {lake!r}"


def test_the_password_comes_from_the_named_variable():
    """An empty one is a password too."""
    server = ServerConfig(host="h", user="cdc", password_env="P")
    assert credentials_from_environment(server, {"P": "x"}) == Credentials("cdc", "x")
    assert credentials_from_environment(server, {"P": ""}) == Credentials("cdc", "")
    with pytest.raises(ConfigError, match="variable P is not set"):
        credentials_from_environment(server, {})


def test_a_login_that_only_airflow_has_is_reported_outside_it():
    """With the key to add."""
    with pytest.raises(ConfigError, match=r"server\.password_env"):
        credentials_from_environment(ServerConfig(host="h", connection="c"), {})
    with pytest.raises(ConfigError, match=r"server\.user"):
        credentials_from_environment(ServerConfig(host="h", connection="c", password_env="P"), {"P": "x"})


def test_keys_of_a_store_come_from_the_named_variables():
    """Without names the AWS client looks for itself."""
    store = StoreConfig(url="s3://b", access_key_env="A", secret_key_env="S")
    assert store_keys_from_environment(store, {"A": "a", "S": "s"}) == StoreKeys("a", "s")
    assert store_keys_from_environment(StoreConfig(url="s3://b"), {}) is None
    with pytest.raises(ConfigError, match="variable S is not set"):
        store_keys_from_environment(store, {"A": "a"})


def test_half_a_pair_of_keys_is_refused():
    """Also half of a client certificate."""
    with pytest.raises(ValueError, match="together"):
        StoreConfig(url="s3://b", access_key_env="A")
    with pytest.raises(ValueError, match="together"):
        ServerConfig(host="h", connection="c", tls={"cert": "/c"})


def test_the_key_of_a_service_account_comes_from_the_named_variable():
    """Without a name Google's client looks for itself; what is no key is refused, and not shown."""
    store = StoreConfig(url="gs://b", service_account_env="K")
    key = account_key("https://oauth2.example/token")
    assert store_keys_from_environment(store, {"K": key}) == StoreKeys(EMAIL, key)
    assert store_keys_from_environment(StoreConfig(url="gs://b"), {}) is None
    with pytest.raises(ConfigError, match="variable K is not set"):
        store_keys_from_environment(store, {})
    for wrong in ("/etc/key.json", "{}", "[1]", '{"client_email": 1, "private_key": "s", "private_key_id": "i"}'):
        with pytest.raises(ConfigError, match="not the JSON key") as caught:
            store_keys_from_environment(store, {"K": wrong})
        assert wrong not in str(caught.value)
    with pytest.raises(ConfigError, match="only Airflow knows") as caught:
        store_keys_from_environment(StoreConfig(url="gs://b", connection="c"), {})
    assert "store.service_account_env" in caught.value.hint


def test_the_secret_of_azure_comes_from_the_named_variable():
    """Without a name Azure's client looks for itself; what is no secret is refused, and not shown."""
    at = "abfss://lake@account.dfs.core.windows.net/cdc"
    store = StoreConfig(url=at, azure_secret_env="K")
    for secret in (
        "c2VjcmV0IHNlY3JldCBzZWNyZXQ=",
        "sv=2025&sig=a%2Fb",
        "AccountName=account;AccountKey=c2VjcmV0IHNlY3JldCBzZWNyZXQ=",
    ):
        assert store_keys_from_environment(store, {"K": secret}) == StoreKeys("account", secret)
    assert store_keys_from_environment(StoreConfig(url=at), {}) is None
    with pytest.raises(ConfigError, match="variable K is not set"):
        store_keys_from_environment(store, {})
    with pytest.raises(ConfigError, match="only Airflow knows") as caught:
        store_keys_from_environment(StoreConfig(url=at, connection="c"), {})
    assert "store.azure_secret_env" in caught.value.hint


def test_a_connection_string_is_a_key_or_a_sas_token():
    """Of its own account only."""
    key = "c2VjcmV0IHNlY3JldCBzZWNyZXQ="
    string = f"DefaultEndpointsProtocol=https;AccountName=account;AccountKey={key};EndpointSuffix=core.windows.net"
    assert azure_secret(string, "account") == azure_secret(key, "account") == AzureSecret(account_key=key)
    shared = "BlobEndpoint=https://account.blob.core.windows.net/;SharedAccessSignature=sv=2025&sp=rl&sig=a%2Fb%3D"
    assert azure_secret(shared, "account") == AzureSecret(sas="sv=2025&sp=rl&sig=a%2Fb%3D")
    assert key not in repr(azure_secret(key, "account"))
    with pytest.raises(ConfigError, match="'account'"):
        azure_secret(string, "other")
    for wrong in ("", "c2hvcnQ=", "AccountKey=", "UseDevelopmentStorage=true"):
        with pytest.raises(ConfigError, match="not one of Azure Storage"):
            azure_secret(wrong, "account")


def test_a_container_is_named_with_the_host_of_its_account():
    """As Hadoop names it; the account is the first part of the host."""
    store = StoreConfig(url="abfss://lake@account.z12.dfs.storage.azure.net/a/b/")
    assert (store.scheme, store.bucket, store.account, store.prefix) == ("abfss", "lake", "account", "a/b")
    assert store.account_host == "account.z12.dfs.storage.azure.net"
    assert store.s3_endpoint_url is None


@pytest.mark.parametrize(
    "settings",
    [
        {"url": "abfss://lake/cdc"},
        {"url": "abfss://lake@account.blob.core.windows.net/cdc"},
        {"url": "abfss://Lake@account.dfs.core.windows.net"},
        {"url": "abfs://lake@account.dfs.core.windows.net"},
        {"url": "abfss://lake@account.dfs.core.windows.net/?sig=x"},
        {"url": "abfss://lake@account.dfs.core.windows.net", "access_key_env": "A", "secret_key_env": "S"},
        {"url": "abfss://lake@account.dfs.core.windows.net", "service_account_env": "K"},
        {"url": "s3://b", "azure_secret_env": "K"},
        {"url": "s3://key@b"},
        {"url": "gs://b", "access_key_env": "A", "secret_key_env": "S"},
        {"url": "gs://b", "region": "eu"},
        {"url": "gs://b", "ca": "/ca.pem"},
        {"url": "s3://b", "service_account_env": "K"},
        {"url": "gs://"},
        {"url": "gs://b/../c"},
    ],
)
def test_settings_of_another_kind_of_store_are_refused(settings):
    """They would have no effect."""
    with pytest.raises(ValueError, match="store"):
        StoreConfig.model_validate(settings)
