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


class StoreConfig(Section):
    """A local folder or an S3 bucket.

    The keys come from the environment variables ``access_key_env`` and ``secret_key_env`` or, under Airflow, from the
    connection ``connection``; with both, Airflow takes the connection and the command line the variables. With neither, the
    AWS client uses its default credential chain.
    """

    url: str = Field(description="file:///absolute/folder or s3://bucket/prefix")
    endpoint_url: str | None = Field(
        default=None, description="http(s)://host:port of an S3 server that is not Amazon's"
    )
    region: str | None = Field(default=None, description="name of the S3 region")
    access_key_env: VariableName | None = Field(default=None, description="environment variable with the access key")
    secret_key_env: VariableName | None = Field(default=None, description="environment variable with the secret key")
    connection: str | None = Field(
        default=None,
        min_length=1,
        description="id of an Airflow connection of the type CDC store, which holds the keys",
    )
    ca: Path | None = Field(
        default=None,
        description="file with the authorities that the certificate of an S3 server is checked with; the system's without it",
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
        if parts.query or parts.fragment or "@" in parts.netloc:
            raise ValueError("a store's url has no query, fragment or user")
        if leads_up(parts.path):
            raise ValueError("a store's url has no .. in it; write the folder that it leads to")
        if parts.scheme == "file" and parts.netloc == "" and len(parts.path) > 1:
            return url.rstrip("/")
        if parts.scheme == "s3" and _BUCKET.match(parts.netloc):
            return url.rstrip("/")
        raise ValueError("a store is file:///absolute/folder or s3://bucket/prefix")

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

    @property
    def scheme(self) -> Literal["file", "s3"]:
        """URL scheme: ``file`` or ``s3``."""
        return cast("Literal['file', 's3']", urlsplit(self.url).scheme)

    @property
    def folder(self) -> Path:
        """Folder of a ``file`` store."""
        return Path(unquote(urlsplit(self.url).path))

    @property
    def bucket(self) -> str:
        """Bucket of an ``s3`` store."""
        return urlsplit(self.url).netloc

    @property
    def prefix(self) -> str:
        """Prefix of every key of an ``s3`` store, without slashes at its ends; may be empty."""
        return urlsplit(self.url).path.strip("/")
