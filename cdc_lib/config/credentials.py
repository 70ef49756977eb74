"""Secrets: they are never in a file, but come from the environment or from Airflow."""

from __future__ import annotations

import os
from collections.abc import Mapping, MutableMapping
from dataclasses import dataclass, field, replace

from cdc_lib.config.server import ServerConfig
from cdc_lib.config.source import SourceConfig
from cdc_lib.config.store import StoreConfig
from cdc_lib.config.tunnel import SocksConfig, SshConfig
from cdc_lib.errors import ConfigError
from cdc_lib.model.azure_secret import azure_secret
from cdc_lib.model.service_account import service_account


@dataclass(frozen=True, slots=True)
class HopLogin:
    """The log-in at the SSH server or SOCKS proxy on the way to the source; its text never shows a secret.

    Args:
        user: its name there; empty at a proxy that asks for none.
        password: of the user; may be empty.
        key: text of a private key; empty if the key is in a file or an agent.
        passphrase: of the private key; may be empty.
    """

    user: str = ""
    password: str = field(default="", repr=False)
    key: str = field(default="", repr=False)
    passphrase: str = field(default="", repr=False)


@dataclass(frozen=True, slots=True)
class Credentials:
    """A login, and the key of the hashes; their text never shows a secret.

    Args:
        user: name of the MySQL user.
        password: its password.
        mask_key: key of the hashes under ``masks``; empty without hashes.
        hop: log-in at the SSH server or SOCKS proxy on the way.
        password_from: where the password came from, for messages.
    """

    user: str
    password: str = field(repr=False)
    mask_key: str = field(default="", repr=False)
    hop: HopLogin = HopLogin()
    password_from: str = field(default="", compare=False)

    def __str__(self) -> str:
        """Return the user name only."""
        return f"{self.user}:***"


@dataclass(frozen=True, slots=True)
class StoreKeys:
    """The secrets of a store; their text never shows the secret.

    Args:
        access_key: access key of S3, email of a Google service account, or name of an Azure account.
        secret_key: secret key of S3; JSON key of the service account; account key, SAS token or connection string of Azure.
        token: of temporary keys of S3.
    """

    access_key: str
    secret_key: str = field(repr=False)
    token: str | None = field(default=None, repr=False)


def login_from_environment(server: ServerConfig, environ: Mapping[str, str] = os.environ) -> Credentials:
    """Take the password from the variable that ``password_env`` names; with ``rds_iam`` each connection makes its own.

    Raises:
        ConfigError: it is not set, or the file names only an Airflow connection.
    """
    if server.rds_iam is not None and server.user is not None:
        return Credentials(server.user, "", password_from="a token of Amazon RDS")
    if server.password_env is None or server.user is None:
        missing = "password_env" if server.password_env is None else "user"
        raise ConfigError(
            f"only Airflow knows the log-in of {server.host}:{server.port}",
            hint=f"Add server.{missing} to the source file to use it outside Airflow.",
            connection=server.connection,
        )
    password = _required(environ, server.password_env, "the password of the source's user")
    return Credentials(server.user, password, password_from=f"the environment variable {server.password_env}")


def credentials_from_environment(server: ServerConfig, environ: Mapping[str, str] = os.environ) -> Credentials:
    """Take the log-ins at the source and at the hop on the way from the environment.

    Raises:
        ConfigError: a variable is not set, or the file names only an Airflow connection.
    """
    login = login_from_environment(server, environ)
    return replace(login, hop=hop_login_from_environment(server, environ))


def hop_login_from_environment(server: ServerConfig, environ: Mapping[str, str] = os.environ) -> HopLogin:
    """Take the log-in at the SSH server or SOCKS proxy from the variables that the source file names.

    Raises:
        ConfigError: one of them is not set, or the file names only an Airflow connection.
    """
    hop = server.hop
    if hop is None:
        return HopLogin()
    if hop.connection is not None and (hop.user is None or not _names_a_secret(hop)):
        raise ConfigError(
            f"only Airflow knows the log-in at {hop.named}",
            hint="Add user, and the variables of the log-in, beside connection to use it outside Airflow.",
            connection=hop.connection,
        )
    ssh = server.ssh
    return HopLogin(
        hop.user or "",
        _optional(environ, hop.password_env, f"the password of the user at {hop.named}"),
        _optional(environ, ssh.key_env if ssh else None, f"the private key for {hop.named}"),
        _optional(environ, ssh.passphrase_env if ssh else None, "the passphrase of the private key"),
    )


def _names_a_secret(hop: SshConfig | SocksConfig) -> bool:
    keys = isinstance(hop, SshConfig) and (hop.key_file is not None or hop.key_env is not None or hop.agent)
    return keys or hop.password_env is not None


HANDED = (
    "CDC_HANDED_USER",
    "CDC_HANDED_PASSWORD",
    "CDC_HANDED_MASK_KEY",
    "CDC_HANDED_HOP_USER",
    "CDC_HANDED_HOP_PASSWORD",
    "CDC_HANDED_HOP_KEY",
    "CDC_HANDED_HOP_PASSPHRASE",
    "CDC_HANDED_PASSWORD_FROM",
)
"""Environment variables by which Airflow passes secrets of its connections to a job."""


def handed_on(credentials: Credentials) -> dict[str, str]:
    """Return the environment variables that pass credentials to the process of a job."""
    hop = credentials.hop
    own = (credentials.user, credentials.password, credentials.mask_key)
    rest = (hop.user, hop.password, hop.key, hop.passphrase, credentials.password_from)
    return dict(zip(HANDED, (*own, *rest), strict=True))


def take_handed(environ: MutableMapping[str, str] = os.environ) -> Credentials | None:
    """Return the passed credentials, None without any; removes them from the environment, so that no child inherits them."""
    user, password, mask_key, *hop, password_from = (environ.pop(name, None) for name in HANDED)
    if user is None or password is None:
        return None
    return Credentials(user, password, mask_key or "", HopLogin(*(value or "" for value in hop)), password_from or "")


def mask_key_from_environment(config: SourceConfig, environ: Mapping[str, str] = os.environ) -> str:
    """Take the key of the hashes from the variable that ``mask_key_env`` names; empty when no mask needs it.

    Raises:
        ConfigError: it is not set, or the file names only an Airflow connection.
    """
    if not config.hashes:
        return ""
    if config.mask_key_env is None:
        raise ConfigError(
            "only Airflow knows the key of the hashes",
            hint="Add mask_key_env to the source file to use it outside Airflow.",
            source=config.source,
            connection=config.mask_key_connection,
        )
    return _required(environ, config.mask_key_env, "the key of the hashes under masks, a long random text,")


_NAMED = {"gs": "service_account_env", "abfss": "azure_secret_env"}

HANDED_STORE = ("CDC_HANDED_ACCESS_KEY", "CDC_HANDED_SECRET_KEY")
"""Variables in which Airflow hands the keys of a store's connection to a job that it starts."""


def store_keys_handed_on(keys: StoreKeys) -> dict[str, str]:
    """Return the variables that hand the keys of a store to a process which is started for a job."""
    return dict(zip(HANDED_STORE, (keys.access_key, keys.secret_key), strict=True))


def store_keys_from_environment(store: StoreConfig, environ: Mapping[str, str] = os.environ) -> StoreKeys | None:
    """Take the store's keys from what Airflow handed over, or from the variables that the source file names; None if it names none.

    Raises:
        ConfigError: one of them is not set, or the file names only an Airflow connection.
    """
    if all(name in environ for name in HANDED_STORE):
        return StoreKeys(*(environ[name] for name in HANDED_STORE))
    if store.scheme == "gs" and store.service_account_env is not None:
        return google_keys(_required(environ, store.service_account_env, "the JSON key of the service account"))
    if store.scheme == "abfss" and store.azure_secret_env is not None:
        secret = _required(environ, store.azure_secret_env, "an account key, a SAS token or a connection string")
        return azure_keys(secret, store.account)
    if store.access_key_env is None or store.secret_key_env is None:
        if store.connection is not None:
            named = _NAMED.get(store.scheme, "access_key_env and store.secret_key_env")
            raise ConfigError(
                f"only Airflow knows the keys of the store {store.url}",
                hint=f"Add store.{named} to the source file to use it outside Airflow.",
                connection=store.connection,
            )
        return None
    return StoreKeys(
        _required(environ, store.access_key_env, "the access key of the store"),
        _required(environ, store.secret_key_env, "the secret key of the store"),
    )


def google_keys(text: str) -> StoreKeys:
    """Return the JSON key of a Google service account as keys of a store.

    Raises:
        ConfigError: it is none.
    """
    return StoreKeys(service_account(text).email, text)


def azure_keys(text: str, account: str) -> StoreKeys:
    """Return a secret of an Azure account as keys of a store.

    Args:
        text: an account key, a SAS token or a connection string.
        account: name of the account.

    Raises:
        ConfigError: it is none, or of another account.
    """
    azure_secret(text, account)
    return StoreKeys(account, text)


def _optional(environ: Mapping[str, str], name: str | None, what: str) -> str:
    return "" if name is None else _required(environ, name, what)


def _required(environ: Mapping[str, str], name: str, what: str) -> str:
    value = environ.get(name)
    if value is None:
        raise ConfigError(f"the environment variable {name} is not set", hint=f"Put {what} into it.", variable=name)
    return value
