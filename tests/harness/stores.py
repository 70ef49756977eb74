"""Object stores for the contract suites: every implementation, each empty."""

from __future__ import annotations

from pathlib import Path

import pytest

from cdc_lib.store.objects.local import LocalStore
from cdc_lib.store.objects.s3 import S3Store
from cdc_lib.store.objects.s3_options import S3Options

KINDS = ["local", "s3"]


def empty_store(kind: str, request: pytest.FixtureRequest, folder: Path) -> LocalStore | S3Store:
    """Return a store of the kind; the S3 server starts with the first S3 store."""
    if kind == "local":
        return LocalStore(folder / "a store")
    return S3Store(request.getfixturevalue("bucket"), "some/prefix", options(request.getfixturevalue("s3_server")))


def options(server, endpoint: str | None = None) -> S3Options:
    return S3Options(endpoint or server.endpoint, server.region, server.access_key, server.secret_key)
