"""From a source's settings to its object store."""

from __future__ import annotations

import os

from pydantic import ValidationError

from cdc_lib.config.store import StoreConfig
from cdc_lib.errors import ConfigError
from cdc_lib.store.objects.local import LocalStore
from cdc_lib.store.objects.s3 import S3Store
from cdc_lib.store.objects.s3_options import S3Options


def open_store(config: StoreConfig) -> LocalStore | S3Store:
    """Return the store of a source; nothing is asked of it yet.

    Raises:
        ConfigError: an environment variable that should hold a key is not set.
    """
    if config.scheme == "file":
        return LocalStore(config.folder)
    options = S3Options(
        endpoint_url=config.endpoint_url,
        region=config.region,
        access_key=_variable("access_key_env", config.access_key_env),
        secret_key=_variable("secret_key_env", config.secret_key_env),
        path_style=config.path_style,
    )
    return S3Store(config.bucket, config.prefix, options)


def open_at(config: StoreConfig, location: str) -> LocalStore | S3Store:
    """Return the store at another place that is reached as a source's own is.

    Raises:
        ConfigError: it is no place for a store, or the source's own.
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


def _variable(setting: str, name: str | None) -> str | None:
    if name is None:
        return None
    if not os.environ.get(name):
        hint = "Set it, or leave out access_key_env and secret_key_env to use the AWS credentials of this process."
        raise ConfigError(f"the environment variable {name} is not set", hint=hint, setting=f"store.{setting}")
    return os.environ[name]
