"""``store:`` the object store of batches, cursors and cuts."""

from __future__ import annotations

import re
from datetime import timedelta
from pathlib import Path
from typing import Literal, Self, cast
from urllib.parse import unquote, urlsplit

from pydantic import Field, field_validator, model_validator

from cdc_lib.config.base import Duration, Section, VariableName
from cdc_lib.model.folder import leads_up

_BUCKET = re.compile(r"^[A-Za-z0-9][A-Za-z0-9._-]*$")
_AZURE = re.compile(
    r"^(?P<container>[a-z0-9][a-z0-9-]{2,62})@(?P<account>[a-z0-9]{3,24})(\.z[0-9]+)?\.dfs\.[a-z0-9.-]+$"
)
"""A container and the host of its account: of Azure's public or national clouds, also in a DNS zone."""

_EXPECTED = "a store is file:///absolute/folder, s3://bucket/prefix, gs://bucket/prefix or "
_EXPECTED += "abfss://container@account.dfs.core.windows.net/prefix"

_OF_KINDS = {
    "access_key_env": ("s3",),
    "secret_key_env": ("s3",),
    "region": ("s3",),
    "ca": ("s3", "abfss"),
    "service_account_env": ("gs",),
    "azure_secret_env": ("abfss",),
}
"""Keys that not every store has, and the schemes of those that have them."""

_SECRETS = {
    "s3": "access_key_env and secret_key_env",
    "gs": "service_account_env",
    "abfss": "azure_secret_env",
}
"""Keys that name the secrets of a store, by its scheme."""


class StoreConfig(Section):
    """A local folder, an S3 bucket, a bucket of Google Cloud Storage, or a container of Azure Blob Storage.

    The keys of S3 come from the environment variables ``access_key_env`` and ``secret_key_env``, the key of Google from
    ``service_account_env``, the secret of Azure from ``azure_secret_env`` or, under Airflow, all of them from the connection
    ``connection``; with both, Airflow takes the connection and the command line the variables. With neither, the client of AWS
    uses its default credential chain, that of Google the application default credentials, and that of Azure the identity which
    DefaultAzureCredential finds.
    """

    url: str = Field(
        description="file:///absolute/folder, s3://bucket/prefix, gs://bucket/prefix or "
        "abfss://container@account.dfs.core.windows.net/prefix"
    )
    endpoint_url: str | None = Field(
        default=None,
        description="http(s)://host:port of an S3 server that is not Amazon's, of a Google endpoint of one's own, or of a server "
        "with Azure's Blob API that is not Azure's",
    )
    region: str | None = Field(default=None, description="name of the S3 region")
    access_key_env: VariableName | None = Field(default=None, description="environment variable with the access key")
    secret_key_env: VariableName | None = Field(default=None, description="environment variable with the secret key")
    service_account_env: VariableName | None = Field(
        default=None, description="gs:// only: environment variable with the JSON key of a Google service account"
    )
    azure_secret_env: VariableName | None = Field(
        default=None,
        description="abfss:// only: environment variable with an account key, a SAS token or a connection string",
    )
    connection: str | None = Field(
        default=None,
        min_length=1,
        description="id of an Airflow connection of the type CDC store, which holds the keys; for gs:// also of the type Google Cloud, "
        "for abfss:// Azure Blob Storage",
    )
    ca: Path | None = Field(
        default=None,
        description="file with the authorities that the certificate of an S3 server, or of endpoint_url at abfss://, is checked "
        "with; the system's without it",
    )
    path_style: bool = Field(default=True, description="true: bucket in the path; false: bucket in the host name")
    keep_batches_for: Duration = Field(
        default=timedelta(days=7),
        description="a number and m, h or d, such as 7d: batches that all have read stay so long",
    )

    @field_validator("url")
    @classmethod
    def _url(cls, url: str) -> str:
        parts = urlsplit(url)
        if parts.query or parts.fragment or ("@" in parts.netloc and parts.scheme != "abfss"):
            raise ValueError("a store's url has no query, fragment or user")
        if leads_up(parts.path):
            raise ValueError("a store's url has no .. in it; write the folder that it leads to")
        if parts.scheme == "file" and parts.netloc == "" and len(parts.path) > 1:
            return url.rstrip("/")
        if parts.scheme in ("s3", "gs") and _BUCKET.match(parts.netloc):
            return url.rstrip("/")
        if parts.scheme == "abfss" and _AZURE.match(parts.netloc):
            return url.rstrip("/")
        raise ValueError(_EXPECTED)

    @field_validator("endpoint_url")
    @classmethod
    def _endpoint(cls, url: str | None) -> str | None:
        if url is not None and (urlsplit(url).scheme not in {"http", "https"} or not urlsplit(url).hostname):
            raise ValueError("an endpoint is http://host:port or https://host:port")
        return url

    @model_validator(mode="after")
    def _pair(self) -> Self:
        if (self.access_key_env is None) != (self.secret_key_env is None):
            raise ValueError("access_key_env and secret_key_env are given together or not at all")
        if self.ca is not None and (self.scheme == "file" or (self.endpoint_url or "https:").startswith("http:")):
            raise ValueError("ca is for a server that is reached by https:")
        if self.connection is not None and self.scheme == "file":
            raise ValueError("a store in a folder has no keys; leave out connection")
        return self

    @model_validator(mode="after")
    def _of_its_kind(self) -> Self:
        if self.scheme == "file":
            return self
        for name, schemes in _OF_KINDS.items():
            if getattr(self, name) is not None and self.scheme not in schemes:
                where = " or ".join(f"{scheme}://" for scheme in schemes)
                raise ValueError(
                    f"{name} is for a store at {where}; the secret of {self.scheme}:// is {_SECRETS[self.scheme]}"
                )
        return self

    @property
    def scheme(self) -> Literal["file", "s3", "gs", "abfss"]:
        """URL scheme: ``file``, ``s3``, ``gs`` or ``abfss``."""
        return cast("Literal['file', 's3', 'gs', 'abfss']", urlsplit(self.url).scheme)

    @property
    def s3_endpoint_url(self) -> str | None:
        """The S3 server, which a lake in S3 shares with the store; None if the endpoint is one of Google's or Azure's API."""
        return self.endpoint_url if self.scheme in ("file", "s3") else None

    @property
    def s3_ca(self) -> Path | None:
        """The authorities of the S3 server, which a lake in S3 shares with the store; None if they are those of another server."""
        return self.ca if self.scheme in ("file", "s3") else None

    @property
    def secret_names(self) -> tuple[str, ...]:
        """Names of the environment variables with the store's secrets that the source file gives."""
        named = (self.access_key_env, self.secret_key_env, self.service_account_env, self.azure_secret_env)
        return tuple(name for name in named if name is not None)

    @property
    def folder(self) -> Path:
        """Folder of a ``file`` store."""
        return Path(unquote(urlsplit(self.url).path))

    @property
    def bucket(self) -> str:
        """Bucket of an ``s3`` or ``gs`` store, container of an ``abfss`` store."""
        return urlsplit(self.url).netloc.partition("@")[0]

    @property
    def account_host(self) -> str:
        """Host of the account of an ``abfss`` store, such as ``account.dfs.core.windows.net``; empty for others."""
        return urlsplit(self.url).netloc.partition("@")[2]

    @property
    def account(self) -> str:
        """Name of the account of an ``abfss`` store; empty for others."""
        return self.account_host.partition(".")[0]

    @property
    def prefix(self) -> str:
        """Prefix of every key of an ``s3``, ``gs`` or ``abfss`` store, without slashes at its ends; may be empty."""
        return urlsplit(self.url).path.strip("/")
