"""The secrets of a source that a job on another machine needs: those that the source file names as environment variables."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from cdc_lib.config.credentials import HANDED, HANDED_STORE
from cdc_lib.config.source import SourceConfig

AWS = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN")
"""Keys that Amazon's clients read; they are sent if the source file names no keys of its own."""

AZURE = ("AZURE_TENANT_ID", "AZURE_CLIENT_ID", "AZURE_CLIENT_SECRET")
"""A service principal that Azure's client reads; it is sent if the source file names no secret of its own."""

SERVER_TOKEN = "CDC_SPARK_SERVER_TOKEN"
"""Environment variable by which the process of a Spark server gets its token, and takes it away before Java starts."""


def secret_variables(config: SourceConfig) -> tuple[str, ...]:
    """Return the names of the environment variables that may hold secrets of a source."""
    store, server = config.store, config.server
    ssh, socks = server.ssh, server.socks
    hop = (ssh.key_env, ssh.passphrase_env, ssh.password_env) if ssh else ((socks.password_env,) if socks else ())
    named = (server.password_env, *hop, config.mask_key_env, *store.secret_names)
    own = tuple(name for name in named if name is not None)
    return (*own, *HANDED, *HANDED_STORE, *AWS, *AZURE)


def named_variables(values: Any) -> frozenset[str]:
    """Return the environment variables that the values of a source file name: none of the server's own is meant."""
    if isinstance(values, list):
        return frozenset().union(*map(named_variables, values))
    if not isinstance(values, Mapping):
        return frozenset()
    own = {value for name, value in values.items() if name.endswith("_env") and isinstance(value, str)}
    return named_variables(list(values.values())) | own


def secrets_to_send(
    config: SourceConfig, handed: Mapping[str, str], environ: Mapping[str, str] = os.environ
) -> dict[str, str]:
    """Return the variables that a job on a server gets.

    Args:
        config: the source.
        handed: variables with secrets that only Airflow knows.
        environ: the environment of this process.
    """
    return {name: environ[name] for name in secret_variables(config) if name in environ} | dict(handed)
