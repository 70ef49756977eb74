"""Airflow's own API server with the page in it, on a database and with users of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from cdc_lib.store.objects.local import LocalStore
from tests.harness.airflow.api_server import ApiServer
from tests.harness.airflow.page_source import PageSource


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    """An API server with a viewer, an operator and an administrator, over an empty folder of sources."""
    with ApiServer.with_page(tmp_path_factory.mktemp("api")) as server:
        yield server


@pytest.fixture(scope="module")
def make(server: ApiServer) -> Callable[..., PageSource]:
    """Makes a source with a store of its own, unless another is named."""

    def make(name: str, store: str | None = None, **facts: Any) -> PageSource:
        place = LocalStore(server.home / "stores" / (store or name))
        return PageSource(server.home / "sources", place, name, **facts).write()

    return make
