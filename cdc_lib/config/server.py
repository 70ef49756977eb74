"""``server:`` how the MySQL or MariaDB server is reached."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Annotated, Self

from pydantic import AfterValidator, Field, model_validator

from cdc_lib.config.base import Duration, Section, VariableName, a_second_at_least, at_most
from cdc_lib.config.tunnel import SocksConfig, SshConfig


class TlsConfig(Section):
    """TLS of the connection to the server; with this section the connection must be encrypted.

    Without it the connection is encrypted if the server supports it, and the server's certificate is not checked. The password itself
    then goes only to a server on this machine or after an SSH server, and to the holder of ``public_key``.
    """

    ca: Path | None = Field(default=None, description="file with the authorities to trust; the system's without it")
    cert: Path | None = Field(default=None, description="file with the client's certificate")
    key: Path | None = Field(default=None, description="file with the client's private key")
    verify: bool = Field(
        default=True, description="true or false: whether the server's certificate and name are checked"
    )

    @model_validator(mode="after")
    def _pair(self) -> Self:
        if (self.cert is None) != (self.key is None):
            raise ValueError("cert and key are given together or not at all")
        return self


class RdsIamConfig(Section):
    """Log-in to Amazon RDS or Aurora by tokens instead of a password.

    Each connection has a new token, signed with the AWS credentials of the process. ``host`` must be the name of the instance, not
    an alias.
    """

    region: str = Field(min_length=1, description="region of the instance, such as eu-central-1")


class Address(Section):
    """Address of a standby; other settings are those of ``server:``."""

    host: str = Field(min_length=1, description="name or address of the standby")
    port: int = Field(default=3306, ge=1, le=65535, description="1 to 65535")


class ServerConfig(Section):
    """Address and login.

    The password comes from the environment variable ``password_env`` or, under Airflow, from the connection
    ``connection``; with both, Airflow takes the connection and the command line the variable. With ``rds_iam`` there is none.
    """

    host: str = Field(min_length=1, description="name or address of the server")
    port: int = Field(default=3306, ge=1, le=65535, description="1 to 65535")
    user: str | None = Field(
        default=None, min_length=1, description="name of the MySQL user; the connection's without it"
    )
    password_env: VariableName | None = Field(
        default=None, description="name of the environment variable that holds the password"
    )
    connection: str | None = Field(default=None, min_length=1, description="id of an Airflow connection")
    rds_iam: RdsIamConfig | None = Field(
        default=None, description="region; log-in by tokens of Amazon RDS, which needs tls and no password"
    )
    tls: TlsConfig | None = Field(default=None, description="ca, cert, key, verify")
    public_key: Path | None = Field(
        default=None,
        description="file with the server's RSA key for passwords, which SHOW STATUS LIKE 'Caching_sha2_password_rsa_public_key' "
        "shows; for a server whose certificate is not checked",
    )
    ssh: SshConfig | None = Field(
        default=None, description="host, user, key_file, ...; an SSH server through which the server is reached"
    )
    socks: SocksConfig | None = Field(
        default=None, description="host, port, ...; a SOCKS5 proxy through which the server is reached"
    )
    server_id: int | None = Field(
        default=None, ge=1, le=2**32 - 1, description="1 to 4294967295, unlike any other replica's; derived when null"
    )
    connect_timeout: Annotated[Duration, AfterValidator(a_second_at_least), at_most(timedelta(hours=1))] = Field(
        default=timedelta(seconds=10), description="a duration such as 10s, 1s to 1h"
    )

    @property
    def hop(self) -> SshConfig | SocksConfig | None:
        """The SSH server or SOCKS proxy on the way; None if the server is reached directly."""
        return self.ssh or self.socks

    @model_validator(mode="after")
    def _log_in(self) -> Self:
        if self.ssh is not None and self.socks is not None:
            raise ValueError("ssh and socks are given one or the other")
        if self.rds_iam is not None:
            self._check_rds_iam()
        elif self.password_env is None and self.connection is None:
            raise ValueError("needs password_env: NAME (an environment variable) or connection: ID (Airflow's)")
        if self.user is None and self.connection is None:
            raise ValueError("needs user: NAME, which only an Airflow connection can give otherwise")
        return self

    def _check_rds_iam(self) -> None:
        """Refuse what would send a token to a server that is not known, and a password that nobody would use."""
        if self.tls is None or not self.tls.verify:
            raise ValueError(
                "rds_iam needs tls: with the server's certificate checked, because tokens are sent as they are"
            )
        if self.password_env is not None or self.connection is not None:
            raise ValueError("rds_iam makes the password: leave out password_env and connection")
