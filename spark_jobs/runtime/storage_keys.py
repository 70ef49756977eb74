"""The keys of a store, as Hadoop and Iceberg take them in a session.

Spark passes the settings of a session to its executors, so that no worker needs keys in its own environment.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field

from cdc_lib.config.credentials import StoreKeys, store_keys_from_environment
from cdc_lib.config.store import StoreConfig


@dataclass(frozen=True, slots=True)
class StorageKeys:
    """Keys of an S3 account; their text never shows a secret.

    Args:
        access: the access key.
        secret: the secret key.
        token: of a session, empty for keys that last.
    """

    access: str
    secret: str = field(repr=False)
    token: str = field(default="", repr=False)

    @property
    def for_hadoop(self) -> dict[str, str]:
        """Settings of Hadoop's S3A file system."""
        provider = "TemporaryAWSCredentialsProvider" if self.token else "SimpleAWSCredentialsProvider"
        settings = {
            "fs.s3a.aws.credentials.provider": f"org.apache.hadoop.fs.s3a.{provider}",
            "fs.s3a.access.key": self.access,
            "fs.s3a.secret.key": self.secret,
        }
        return settings | ({"fs.s3a.session.token": self.token} if self.token else {})

    @property
    def for_iceberg(self) -> dict[str, str]:
        """Properties of a catalog with Iceberg's S3FileIO."""
        properties = {"s3.access-key-id": self.access, "s3.secret-access-key": self.secret}
        return properties | ({"s3.session-token": self.token} if self.token else {})


def storage_keys(store: StoreConfig, environ: Mapping[str, str] = os.environ) -> StorageKeys | None:
    """Return the keys that the source file names, or else those that Amazon's clients read from the environment.

    Returns:
        None if there are none: then each machine finds its own, for example by the role of its instance.

    Raises:
        ConfigError: a variable that the source file names is not set.
    """
    if store.scheme == "s3" and (named := store_keys_from_environment(store, environ)) is not None:
        return StorageKeys(named.access_key, named.secret_key)
    access, secret = environ.get("AWS_ACCESS_KEY_ID"), environ.get("AWS_SECRET_ACCESS_KEY")
    return StorageKeys(access, secret, environ.get("AWS_SESSION_TOKEN", "")) if access and secret else None


def keys_for_tasks(store: StoreConfig) -> StoreKeys | None:
    """Return the keys with which Python on executors reads a store; None if each machine finds its own.

    Raises:
        ConfigError: a variable that the source file names is not set.
    """
    if store.scheme != "s3":
        return store_keys_from_environment(store)
    keys = storage_keys(store)
    return None if keys is None else StoreKeys(keys.access, keys.secret, keys.token or None)
