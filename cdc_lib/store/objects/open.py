"""Opens the object store of a source file."""

from __future__ import annotations

from pydantic import ValidationError

from cdc_lib.config.credentials import StoreKeys, store_keys_from_environment
from cdc_lib.config.store import StoreConfig
from cdc_lib.errors import ConfigError
from cdc_lib.store.objects.local import LocalStore
from cdc_lib.store.objects.s3 import S3Store
from cdc_lib.store.objects.s3_options import S3Options


def open_store(config: StoreConfig, keys: StoreKeys | None = None) -> LocalStore | S3Store:
    """Return the store of a source, without contacting it.

    Args:
        config: ``store:`` of the source file.
        keys: of its S3 account; those of the environment without.

    Raises:
        ConfigError: an environment variable that should hold a key is not set.
    """
    if config.scheme == "file":
        return LocalStore(config.folder)
    keys = keys or store_keys_from_environment(config)
    options = S3Options(
        endpoint_url=config.endpoint_url,
        region=config.region,
        access_key=keys.access_key if keys else None,
        secret_key=keys.secret_key if keys else None,
        ca=config.ca,
        path_style=config.path_style,
    )
    return S3Store(config.bucket, config.prefix, options)


def open_at(config: StoreConfig, location: str) -> LocalStore | S3Store:
    """Return a store at another location, with the connection settings of the source's own store.

    Raises:
        ConfigError: the location is not valid, or it is the source's own store.
    """
    try:
        other = StoreConfig.model_validate({**config.model_dump(), "url": location})
    except ValidationError as error:
        raise ConfigError(
            f"{location!r} is not a valid place for batches",
            hint="Write it as file:///absolute/folder or s3://bucket/prefix.",
        ) from error
    if other.url == config.url:
        raise ConfigError(f"{location} is the store of the source itself", hint="Name another folder or prefix.")
    return open_store(other)
