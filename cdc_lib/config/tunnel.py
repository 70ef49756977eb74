"""``server.ssh:`` and ``server.socks:`` the way to a server in a private network."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Annotated, Self

from pydantic import AfterValidator, Field, model_validator

from cdc_lib.config.base import Duration, Section, VariableName, a_second_at_least, at_most

_FINGERPRINT = r"^SHA256:[A-Za-z0-9+/]{43}$"


class SshConfig(Section):
    """SSH server (bastion) through which all connections to the source and its standbys go.

    It opens the connections: names in ``server.host`` and ``standbys`` are resolved there. Needs the extra
    ``lakecdc[tunnel]``. The user's own SSH configuration is not read.
    """

    host: str = Field(min_length=1, description="name or address of the SSH server")
    port: int = Field(default=22, ge=1, le=65535, description="1 to 65535")
    user: str | None = Field(
        default=None, min_length=1, description="name of the user at the SSH server; the connection's without it"
    )
    key_file: Path | None = Field(
        default=None, description="file with the private key; a certificate beside it (-cert.pub) is used too"
    )
    key_env: VariableName | None = Field(
        default=None, description="name of the environment variable that holds the private key itself"
    )
    passphrase_env: VariableName | None = Field(
        default=None, description="name of the environment variable that holds the key's passphrase"
    )
    password_env: VariableName | None = Field(
        default=None, description="name of the environment variable that holds the user's password"
    )
    agent: bool = Field(default=False, description="true or false: use the keys of the agent at SSH_AUTH_SOCK")
    connection: str | None = Field(
        default=None,
        min_length=1,
        description="id of an Airflow connection with login, password, and private_key and private_key_passphrase in its extra",
    )
    known_hosts: Path | None = Field(
        default=None, description="file of known host keys; ~/.ssh/known_hosts without it and without host_key"
    )
    host_key: str | None = Field(
        default=None, pattern=_FINGERPRINT, description="fingerprint of the only accepted host key, SHA256:..."
    )
    keepalive: Annotated[Duration, AfterValidator(a_second_at_least), at_most(timedelta(hours=1))] = Field(
        default=timedelta(seconds=15),
        description="a duration such as 15s, 1s to 1h: after three unanswered messages the connection counts as broken",
    )

    @property
    def named(self) -> str:
        """Name of this hop, for messages."""
        return f"the SSH server {self.host}:{self.port}"

    @model_validator(mode="after")
    def _log_in(self) -> Self:
        keys = [self.key_file is not None, self.key_env is not None, self.agent]
        if not any((*keys, self.password_env, self.connection)):
            raise ValueError("needs key_file, key_env, agent: true, password_env, or connection: ID (Airflow's)")
        if sum(keys) > 1:
            raise ValueError("has more than one of key_file, key_env and agent: keep one")
        if self.passphrase_env is not None and self.key_file is None and self.key_env is None:
            raise ValueError("passphrase_env is for a key: name key_file or key_env too")
        if self.user is None and self.connection is None:
            raise ValueError("needs user: NAME, which only an Airflow connection can give otherwise")
        if self.known_hosts is not None and self.host_key is not None:
            raise ValueError("known_hosts and host_key are given one or the other")
        return self


class SocksConfig(Section):
    """SOCKS5 proxy through which all connections to the source and its standbys go.

    It opens the connections: names in ``server.host`` and ``standbys`` are resolved there. Needs the extra ``lakecdc[tunnel]``.
    """

    host: str = Field(min_length=1, description="name or address of the SOCKS5 proxy")
    port: int = Field(default=1080, ge=1, le=65535, description="1 to 65535")
    user: str | None = Field(
        default=None, min_length=1, description="name of the user at the proxy, if it asks for one"
    )
    password_env: VariableName | None = Field(
        default=None, description="name of the environment variable that holds the user's password"
    )
    connection: str | None = Field(
        default=None, min_length=1, description="id of an Airflow connection with login and password"
    )

    @property
    def named(self) -> str:
        """Name of this hop, for messages."""
        return f"the SOCKS proxy {self.host}:{self.port}"

    @model_validator(mode="after")
    def _log_in(self) -> Self:
        if (self.user is None) != (self.password_env is None) and self.connection is None:
            raise ValueError("user and password_env are given together or not at all")
        return self
