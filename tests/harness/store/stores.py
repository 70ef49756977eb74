"""Object stores for the contract suites: every implementation, each empty."""

from __future__ import annotations

from pathlib import Path

import pytest

from cdc_lib.ports import ObjectStore
from cdc_lib.store.objects.azure import AzureStore
from cdc_lib.store.objects.azure_options import AzureOptions
from cdc_lib.store.objects.gcs import GcsStore
from cdc_lib.store.objects.gcs_options import GcsOptions
from cdc_lib.store.objects.local import LocalStore
from cdc_lib.store.objects.s3 import S3Store
from cdc_lib.store.objects.s3_options import S3Options

KINDS = ["local", "s3", "gcs", "azure"]

LISTS_UNFINISHED = {"local", "s3"}
"""Kinds whose unfinished writes stay, and so have to be listed; Google and Azure remove their own."""


def empty_store(kind: str, request: pytest.FixtureRequest, folder: Path) -> ObjectStore:
    """Return a store of the kind; a server starts with its first store."""
    if kind == "local":
        return LocalStore(folder / "a store")
    if kind == "gcs":
        return GcsStore(
            request.getfixturevalue("gcs_bucket"), "some/prefix", gcs(request.getfixturevalue("gcs_server"))
        )
    if kind == "azure":
        server = request.getfixturevalue("azure_server")
        return AzureStore(request.getfixturevalue("azure_container"), server.host, "some/prefix", azure(server))
    return S3Store(request.getfixturevalue("bucket"), "some/prefix", options(request.getfixturevalue("s3_server")))


def gcs(server, **settings) -> GcsOptions:
    return GcsOptions(server.endpoint, **settings)


def azure(server, endpoint: str | None = None, **settings) -> AzureOptions:
    return AzureOptions(endpoint or server.endpoint, **{"secret": server.account_key, "ca": server.ca, **settings})


def options(server, endpoint: str | None = None) -> S3Options:
    return S3Options(endpoint or server.endpoint, server.region, server.access_key, server.secret_key)
