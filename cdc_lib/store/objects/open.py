"""Opens the object store of a source file."""

from __future__ import annotations

import importlib
import importlib.util
from dataclasses import replace
from typing import TYPE_CHECKING

from pydantic import ValidationError

from cdc_lib.config.credentials import StoreKeys, store_keys_from_environment
from cdc_lib.config.store import StoreConfig
from cdc_lib.errors import ConfigError
from cdc_lib.store.objects.azure_options import AzureOptions
from cdc_lib.store.objects.gcs_options import GcsOptions
from cdc_lib.store.objects.local import LocalStore
from cdc_lib.store.objects.s3_options import S3Options

if TYPE_CHECKING:
    from cdc_lib.store.objects.azure import AzureStore
    from cdc_lib.store.objects.gcs import GcsStore
    from cdc_lib.store.objects.s3 import S3Store

_CONNECT, _READ = 2, 5
"""Seconds that an impatient store waits."""


def open_store(
    config: StoreConfig, keys: StoreKeys | None = None, *, impatient: bool = False
) -> LocalStore | S3Store | GcsStore | AzureStore:
    """Return the store of a source, without contacting it.

    Args:
        config: ``store:`` of the source file.
        keys: of its account; those of the environment without.
        impatient: give up in seconds, because somebody waits in front of a screen.

    Raises:
        ConfigError: an environment variable that should hold a key is not set, or the extra of this kind of store is not installed.
    """
    if config.scheme == "file":
        return LocalStore(config.folder)
    keys = keys or store_keys_from_environment(config)
    if config.scheme == "gs":
        return _gcs_store(config, keys, impatient=impatient)
    if config.scheme == "abfss":
        return _azure_store(config, keys, impatient=impatient)
    return _s3_store(config, keys, impatient=impatient)


def _s3_store(config: StoreConfig, keys: StoreKeys | None, *, impatient: bool) -> S3Store:
    """Open a bucket of S3; its client is imported here, because it takes a fifth of a second that commands over other stores do not need."""
    options = S3Options(
        endpoint_url=config.endpoint_url,
        region=config.region,
        access_key=keys.access_key if keys else None,
        secret_key=keys.secret_key if keys else None,
        ca=config.ca,
        path_style=config.path_style,
        session_token=keys.token if keys else None,
    )
    if impatient:
        options = replace(options, connect_timeout=_CONNECT, read_timeout=_READ, attempts=2)
    store: S3Store = importlib.import_module("cdc_lib.store.objects.s3").S3Store(config.bucket, config.prefix, options)
    return store


def _gcs_store(config: StoreConfig, keys: StoreKeys | None, *, impatient: bool) -> GcsStore:
    """Open a bucket of Google's; its client is an optional dependency, and imported here, because only such a store needs it."""
    _require(config, "google.cloud.storage", "google-cloud-storage", "gcs")
    options = GcsOptions(endpoint_url=config.endpoint_url, key=keys.secret_key if keys else None)
    if impatient:
        options = replace(options, connect_timeout=_CONNECT, read_timeout=_READ, patience=_READ)
    store: GcsStore = importlib.import_module("cdc_lib.store.objects.gcs").GcsStore(
        config.bucket, config.prefix, options
    )
    return store


def _azure_store(config: StoreConfig, keys: StoreKeys | None, *, impatient: bool) -> AzureStore:
    """Open a container of Azure's; its client is an optional dependency, too."""
    _require(config, "azure.storage.blob", "azure-storage-blob", "azure")
    options = AzureOptions(endpoint_url=config.endpoint_url, secret=keys.secret_key if keys else None, ca=config.ca)
    if impatient:
        options = replace(options, connect_timeout=_CONNECT, read_timeout=_READ, patience=_READ)
    store: AzureStore = importlib.import_module("cdc_lib.store.objects.azure").AzureStore(
        config.bucket, config.account_host, config.prefix, options
    )
    return store


def _require(config: StoreConfig, module: str, package: str, extra: str) -> None:
    if not _installed(module):
        raise ConfigError(
            f"the store {config.url} needs {package}, which is not installed", hint=f'pip install "lakecdc[{extra}]"'
        )


def _installed(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:  # of a package above it
        return False


def open_at(config: StoreConfig, location: str) -> LocalStore | S3Store | GcsStore | AzureStore:
    """Return a store at another location, with the connection settings of the source's own store.

    Raises:
        ConfigError: the location is not valid, or it is the source's own store.
    """
    try:
        other = StoreConfig.model_validate({**config.model_dump(), "url": location})
    except ValidationError as error:
        raise ConfigError(
            f"{location!r} is not a valid place for batches",
            hint="Write it as file:///absolute/folder, s3://bucket/prefix, gs://bucket/prefix or "
            "abfss://container@account.dfs.core.windows.net/prefix. A bucket is of the kind of the source's own store, whose "
            "keys it is opened with.",
        ) from error
    if other.url == config.url:
        raise ConfigError(f"{location} is the store of the source itself", hint="Name another folder or prefix.")
    return open_store(other)
