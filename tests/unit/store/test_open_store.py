"""Settings become a store, and secrets come from the environment."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

from cdc_lib.config.store import StoreConfig
from cdc_lib.errors import ConfigError
from cdc_lib.store.objects.local import LocalStore
from cdc_lib.store.objects.open import open_at, open_store
from cdc_lib.store.objects.s3 import S3Store
from tests.harness.store.google_account import account_key

AZURE = "abfss://lake@lake.dfs.core.windows.net/cdc"


def test_a_file_url_is_a_local_folder(tmp_path):
    """Spaces and all."""
    store = open_store(StoreConfig(url=f"file://{tmp_path}/a%20b"))
    assert isinstance(store, LocalStore)
    assert store.root == tmp_path / "a b"


def test_an_s3_url_is_a_bucket_with_a_prefix(monkeypatch):
    """The keys are those that the variables hold."""
    monkeypatch.setenv("MY_KEY", "key")
    monkeypatch.setenv("MY_SECRET", "very secret")
    config = StoreConfig(
        url="s3://lake/cdc/raw/", endpoint_url="http://127.0.0.1:9", access_key_env="MY_KEY", secret_key_env="MY_SECRET"
    )
    store = open_store(config)
    assert isinstance(store, S3Store)
    assert store.url("x") == "s3a://lake/cdc/raw/x"
    assert (store.options.access_key, store.options.secret_key) == ("key", "very secret")
    assert "very secret" not in repr(store) + repr(store.options)


def test_an_unset_variable_is_reported_by_name(monkeypatch):
    """Before anything is asked of the store."""
    monkeypatch.setenv("MY_KEY", "key")
    monkeypatch.delenv("MY_SECRET", raising=False)
    with pytest.raises(ConfigError, match="MY_SECRET"):
        open_store(StoreConfig(url="s3://lake", access_key_env="MY_KEY", secret_key_env="MY_SECRET"))


def test_a_gs_url_is_a_bucket_of_google_with_a_prefix(monkeypatch):
    """The key is that of the variable, and no text shows it."""
    monkeypatch.setenv("MY_ACCOUNT", account_key("https://oauth2.example/token"))
    store = open_store(StoreConfig(url="gs://lake/cdc/raw/", service_account_env="MY_ACCOUNT"))
    assert store.url("x") == "gs://lake/cdc/raw/x"
    assert store.options.key == account_key("https://oauth2.example/token")
    assert "PRIVATE KEY" not in repr(store) + repr(store.options)


def test_an_abfss_url_is_a_container_of_azure_with_a_prefix(monkeypatch):
    """The secret is that of the variable, and no text shows it."""
    monkeypatch.setenv("MY_SECRET", "sv=2025&sig=very-secret")
    store = open_store(StoreConfig(url=f"{AZURE}/raw/", azure_secret_env="MY_SECRET", ca="/etc/ca.pem"))
    assert store.url("x") == f"{AZURE}/raw/x"
    assert (store.options.secret, store.options.ca) == ("sv=2025&sig=very-secret", Path("/etc/ca.pem"))
    assert "very-secret" not in repr(store) + repr(store.options)
    other = open_at(StoreConfig(url=AZURE, azure_secret_env="MY_SECRET"), "abfss://old@lake.dfs.core.windows.net/b")
    assert (other.container, other.prefix, other.options.secret) == ("old", "b", "sv=2025&sig=very-secret")


@pytest.mark.parametrize(
    ("url", "package", "extra"), [("gs://lake", "google-cloud-storage", "gcs"), (AZURE, "azure-storage-blob", "azure")]
)
def test_a_missing_extra_is_named_with_its_command(monkeypatch, url, package, extra):
    """When the store is opened, not when it is used."""
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    with pytest.raises(ConfigError, match=package) as caught:
        open_store(StoreConfig(url=url))
    assert f'pip install "lakecdc[{extra}]"' in caught.value.hint


def test_only_a_store_of_google_or_azure_imports_its_client():
    """Who stores in a folder or in S3 needs neither the extra nor the time."""
    clients = ("google.cloud.storage", "google.auth", "azure.core")
    code = f"import sys, cdc_lib.pipeline; print(*(name in sys.modules for name in {clients}))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False", "False"]
