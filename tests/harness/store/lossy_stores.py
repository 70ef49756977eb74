"""Stores over a network that loses answers: each kind of server behind a proxy, and the same store without the proxy."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import pytest

from cdc_lib.ports import ObjectStore
from cdc_lib.store.objects.azure import AzureStore
from cdc_lib.store.objects.gcs import GcsStore
from cdc_lib.store.objects.s3 import S3Store
from tests.harness.network.lossy_proxy import LossyProxy
from tests.harness.store.stores import azure, gcs, options

SERVERS = ["s3", "gcs", "azure"]

_PATIENCE = 3.0


@dataclass(frozen=True)
class LossyStore:
    """A store behind a proxy.

    Args:
        store: whose requests go through the proxy; its conditional writes were probed.
        direct: the same store without the proxy.
        proxy: loses answers.
        writes: HTTP method of conditional writes.
    """

    store: Any
    direct: Any
    proxy: LossyProxy
    writes: str


@contextmanager
def lossy_store(kind: str, request: pytest.FixtureRequest) -> Iterator[LossyStore]:
    """Give a store of the kind; a server starts with its first store."""
    server, place = _server(kind, request), _place(kind, request)
    with LossyProxy(server.endpoint) as proxy:
        behind = _open(kind, server, place, proxy.url)
        behind.probe()
        direct = _open(kind, server, place, server.endpoint)
        yield LossyStore(behind, direct, proxy, "POST" if kind == "gcs" else "PUT")


def store_of(
    kind: str,
    request: pytest.FixtureRequest,
    place: str = "",
    endpoint: str = "",
    prefix: str = "p",
    patience: float = _PATIENCE,
) -> Any:
    """Return a store of the kind, by default in a new bucket, without a proxy."""
    server = _server(kind, request)
    return _open(kind, server, place or _place(kind, request), endpoint or server.endpoint, prefix, patience)


def ignore_conditions(store: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Send no conditions, which is to the store what a server is that ignores them."""
    if isinstance(store, S3Store):
        event = "provide-client-params.s3.PutObject"
        store._s3.client.meta.events.register(event, _drop)
    elif isinstance(store, GcsStore):
        monkeypatch.setattr(store._gcs, "upload", _without(store._gcs.upload, "if_generation_match"))
    else:
        upload = store._upload
        monkeypatch.setattr(store, "_upload", lambda key, data, _: upload(key, data, {"overwrite": True}))


def _drop(params: dict[str, Any], **_: object) -> None:
    params.pop("IfNoneMatch", None)
    params.pop("IfMatch", None)


def _without(call: Callable[..., Any], name: str) -> Callable[..., Any]:
    return lambda *given, **how: call(*given, **{one: value for one, value in how.items() if one != name})


def _server(kind: str, request: pytest.FixtureRequest) -> Any:
    return request.getfixturevalue(f"{kind}_server")


def _place(kind: str, request: pytest.FixtureRequest) -> str:
    """Return the name of the test's bucket or container."""
    return str(request.getfixturevalue({"s3": "bucket", "gcs": "gcs_bucket", "azure": "azure_container"}[kind]))


def _open(
    kind: str, server: Any, place: str, endpoint: str, prefix: str = "p", patience: float = _PATIENCE
) -> ObjectStore:
    limits: dict[str, Any] = {"connect_timeout": 5, "read_timeout": 20}
    if kind == "s3":
        attempts = 3 if patience >= 1 else 2
        return S3Store(place, prefix, replace(options(server, endpoint), attempts=attempts, **limits))
    limits["patience"] = patience
    if kind == "gcs":
        return GcsStore(place, prefix, replace(gcs(server, **limits), endpoint_url=endpoint))
    return AzureStore(place, server.host, prefix, azure(server, endpoint, **limits))
