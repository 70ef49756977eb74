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
    """A local folder, an S3 bucket, or a bucket of Google Cloud Storage.

    The keys of S3 come from the environment variables ``access_key_env`` and ``secret_key_env``, the key of Google from
    ``service_account_env`` or, under Airflow, all of them from the connection ``connection``; with both, Airflow takes the
    connection and the command line the variables. With neither, the client of AWS uses its default credential chain, and that of
    Google the application default credentials.
    """

    url: str = Field(description="file:///absolute/folder, s3://bucket/prefix or gs://bucket/prefix")
    endpoint_url: str | None = Field(
        default=None,
        description="http(s)://host:port of an S3 server that is not Amazon's, or of a Google endpoint of one's own",
    )
    region: str | None = Field(default=None, description="name of the S3 region")
    access_key_env: VariableName | None = Field(default=None, description="environment variable with the access key")
    secret_key_env: VariableName | None = Field(default=None, description="environment variable with the secret key")
    service_account_env: VariableName | None = Field(
        default=None, description="gs:// only: environment variable with the JSON key of a Google service account"
    )
    connection: str | None = Field(
        default=None,
        min_length=1,
        description="id of an Airflow connection of the type CDC store, which holds the keys; for gs:// also of the type Google Cloud",
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
        if parts.scheme in ("s3", "gs") and _BUCKET.match(parts.netloc):
            return url.rstrip("/")
        raise ValueError("a store is file:///absolute/folder, s3://bucket/prefix or gs://bucket/prefix")

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
        if self.scheme == "gs":
            of_s3 = ("access_key_env", "secret_key_env", "region", "ca")
            if wrong := [name for name in of_s3 if getattr(self, name) is not None]:
                raise ValueError(f"{wrong[0]} is for a store at s3://; the key of gs:// is service_account_env")
        elif self.service_account_env is not None and self.scheme == "s3":
            raise ValueError("service_account_env is for a store at gs://")
        return self

    @property
    def scheme(self) -> Literal["file", "s3", "gs"]:
        """URL scheme: ``file``, ``s3`` or ``gs``."""
        return cast("Literal['file', 's3', 'gs']", urlsplit(self.url).scheme)

    @property
    def s3_endpoint_url(self) -> str | None:
        """The S3 server, which a lake in S3 shares with the store; None if the endpoint is one of Google's."""
        return None if self.scheme == "gs" else self.endpoint_url

    @property
    def folder(self) -> Path:
        """Folder of a ``file`` store."""
        return Path(unquote(urlsplit(self.url).path))

    @property
    def bucket(self) -> str:
        """Bucket of an ``s3`` or ``gs`` store."""
        return urlsplit(self.url).netloc

    @property
    def prefix(self) -> str:
        """Prefix of every key of an ``s3`` or ``gs`` store, without slashes at its ends; may be empty."""
        return urlsplit(self.url).path.strip("/")
