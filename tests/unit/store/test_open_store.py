"""Settings become a store, and secrets come from the environment."""

from __future__ import annotations

import importlib.util
import subprocess
import sys

import pytest

from cdc_lib.config.store import StoreConfig
from cdc_lib.errors import ConfigError
from cdc_lib.store.objects.local import LocalStore
from cdc_lib.store.objects.open import open_store
from cdc_lib.store.objects.s3 import S3Store
from tests.harness.google_account import account_key


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


def test_a_missing_extra_is_named_with_its_command(monkeypatch):
    """When the store is opened, not when it is used."""
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    with pytest.raises(ConfigError, match="google-cloud-storage") as caught:
        open_store(StoreConfig(url="gs://lake"))
    assert 'pip install "lakecdc[gcs]"' in caught.value.hint


def test_only_a_store_of_google_imports_its_client():
    """Who stores in a folder or in S3 needs neither the extra nor the time."""
    code = "import sys, cdc_lib.pipeline; print('google.cloud.storage' in sys.modules, 'google.auth' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False"]
