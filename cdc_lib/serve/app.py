"""The HTTP interface: the reading part of Iceberg's REST catalog specification. Nothing can be changed through it.

A client chooses the source as its ``warehouse``. A namespace begins with a cut: ``latest``, a time, a GTID, ``file:offset`` or the
id of a cut. What a client reads of files, it reads with its own credentials.

Below ``/hbase`` rows are read by key, see :mod:`cdc_lib.serve.hbase`.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Annotated, Any

from fastapi import APIRouter, Depends, FastAPI, Request
from fastapi.responses import JSONResponse, Response

from cdc_lib.errors import CdcError
from cdc_lib.read.lake import Lake
from cdc_lib.serve.catalog import CutCatalog, Namespace, NotInCatalog, storage_settings
from cdc_lib.serve.door import Door
from cdc_lib.serve.hbase import HBASE_ROUTER
from cdc_lib.serve.refusal import RequestRefused

log = logging.getLogger(__name__)

SEPARATOR = "\x1f"
"""Between the levels of a namespace in a path, as the specification has it."""

ENDPOINTS = [
    "GET /v1/{prefix}/namespaces",
    "GET /v1/{prefix}/namespaces/{namespace}",
    "HEAD /v1/{prefix}/namespaces/{namespace}",
    "GET /v1/{prefix}/namespaces/{namespace}/tables",
    "GET /v1/{prefix}/namespaces/{namespace}/tables/{table}",
    "HEAD /v1/{prefix}/namespaces/{namespace}/tables/{table}",
]

Json = dict[str, Any]


def make_app(catalogs: Mapping[str, CutCatalog], token: str) -> FastAPI:
    """Return the application.

    Args:
        catalogs: by source.
        token: what clients send as bearer token; empty at a socket, which only one user can open.
    """
    app = FastAPI(title="CDC cuts", openapi_url=None)
    app.state.catalogs = catalogs
    app.state.lakes = {
        source: Lake.open(one.config, store=one.store, catalog=one.catalog) for source, one in catalogs.items()
    }
    app.include_router(HBASE_ROUTER)
    app.include_router(ROUTER)
    app.add_middleware(Door, token=token, refuse=_stopped)
    app.add_exception_handler(RequestRefused, _refused)
    app.add_exception_handler(NotInCatalog, _missing)
    app.add_exception_handler(CdcError, _failed)
    return app


def catalog_of(request: Request, prefix: str) -> CutCatalog:
    """Return the catalog of a source.

    Raises:
        RequestRefused: there is no such source.
    """
    found: CutCatalog | None = request.app.state.catalogs.get(prefix)
    if found is None:
        raise RequestRefused(404, "NotFoundException", f"there is no source {prefix}; see the warehouse of the client")
    return found


ROUTER = APIRouter()
Source = Annotated[CutCatalog, Depends(catalog_of)]


@ROUTER.get("/v1/config")
def config(request: Request, warehouse: str = "") -> Json:
    """Say where the tables of a source are, and what may be asked."""
    catalogs: Mapping[str, CutCatalog] = request.app.state.catalogs
    source = warehouse or (next(iter(catalogs)) if len(catalogs) == 1 else "")
    if source not in catalogs:
        sources = ", ".join(sorted(catalogs))
        raise RequestRefused(400, "BadRequestException", f"warehouse is the name of a source: {sources}")
    settings = storage_settings(catalogs[source].config)
    return {"defaults": settings, "overrides": {"prefix": source}, "endpoints": ENDPOINTS}


@ROUTER.get("/v1/{prefix}/namespaces")
def namespaces(source: Source, parent: str = "") -> Json:
    """List cuts, or the namespaces in one."""
    return {"namespaces": source.namespaces(_levels(parent) if parent else ())}


@ROUTER.api_route("/v1/{prefix}/namespaces/{namespace}", methods=["GET", "HEAD"])
def one_namespace(source: Source, namespace: str, request: Request) -> Response:
    """Say whether there is a namespace."""
    levels = _levels(namespace)
    if not source.has_namespace(levels):
        raise NotInCatalog("NoSuchNamespaceException", f"the cut has no namespace {'.'.join(levels)}")
    return _answer(request, {"namespace": levels, "properties": {}})


@ROUTER.get("/v1/{prefix}/namespaces/{namespace}/tables")
def tables(source: Source, namespace: str) -> Json:
    """List the tables of a namespace."""
    levels = _levels(namespace)
    return {"identifiers": [{"namespace": levels, "name": name} for name in source.tables(levels)]}


@ROUTER.api_route("/v1/{prefix}/namespaces/{namespace}/tables/{table}", methods=["GET", "HEAD"])
def one_table(source: Source, namespace: str, table: str, request: Request) -> Response:
    """Return the metadata of a table as of the cut."""
    levels = _levels(namespace)
    if request.method == "HEAD":
        source.find(levels, table)
        return Response(status_code=204)
    location, metadata = source.load(levels, table)
    settings = storage_settings(source.config)
    return _answer(request, {"metadata-location": location, "metadata": metadata, "config": settings})


@ROUTER.api_route("/{path:path}", methods=["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"])
def other(path: str, request: Request) -> Response:
    """Refuse everything else."""
    message = f"{request.method} /{path}: cuts can be read, and nothing else"
    raise RequestRefused(406, "UnsupportedOperationException", message)


def _refused(_: Request, error: Exception) -> Response:
    assert isinstance(error, RequestRefused)
    return _error(error.status, error.kind, str(error))


def _stopped(status: int, message: str) -> Response:
    return _error(status, "NotAuthorizedException" if status == 401 else "BadRequestException", message)


def _missing(_: Request, error: Exception) -> Response:
    assert isinstance(error, NotInCatalog)
    return _error(404, error.kind, str(error))


def _failed(_: Request, error: Exception) -> Response:
    assert isinstance(error, CdcError)
    log.warning("%s", error)
    status, kind = (503, "ServiceUnavailableException") if error.retryable else (500, "ServiceFailureException")
    return _error(status, kind, str(error))


def _error(status: int, kind: str, message: str) -> Response:
    headers = {"WWW-Authenticate": "Bearer"} if status == 401 else {}
    return JSONResponse({"error": {"message": message, "type": kind, "code": status}}, status, headers)


def _answer(request: Request, content: Json) -> Response:
    return Response(status_code=204) if request.method == "HEAD" else JSONResponse(content)


def _levels(text: str) -> Namespace:
    return tuple(text.split(SEPARATOR))
