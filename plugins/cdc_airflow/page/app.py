"""The page's FastAPI app: every answer needs a user of Airflow who may read the source's DAG, and nothing is changed by any."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from airflow.api_fastapi.core_api.security import requires_authenticated
from fastapi import Depends, FastAPI, Request, Response
from fastapi.responses import JSONResponse

from cdc_airflow.page import actions, bundle, cuts, history, moves, source, sources, tables, windows
from cdc_airflow.page.desk import NoAnswer
from cdc_airflow.page.listed import UnknownSource
from cdc_lib.errors import CdcError

RESOURCES = (sources, source, windows, tables, cuts, moves, history, actions, bundle)


def make_app() -> FastAPI:
    """Return the app. It has GET alone: what a person does is a run of a DAG, asked of Airflow's own API."""
    app = FastAPI(
        title="CDC page",
        dependencies=[Depends(requires_authenticated())],
        openapi_url=None,  # would be open to everybody
        docs_url=None,
        redoc_url=None,
    )
    for resource in RESOURCES:
        app.include_router(resource.router)
    app.add_exception_handler(UnknownSource, _unknown)
    app.add_exception_handler(NoAnswer, _not_yet)
    app.add_exception_handler(CdcError, _unavailable)
    app.middleware("http")(_private)
    return app


async def _unknown(request: Request, error: Exception) -> JSONResponse:  # noqa: ARG001 - FastAPI's signature
    return JSONResponse({"detail": str(error)}, status_code=404)


async def _unavailable(request: Request, error: Exception) -> JSONResponse:  # noqa: ARG001 - FastAPI's signature
    what, hint = (error.message, error.hint) if isinstance(error, CdcError) else (str(error), "")
    return JSONResponse({"detail": what, "hint": hint}, status_code=503)


async def _not_yet(request: Request, error: Exception) -> JSONResponse:  # noqa: ARG001 - FastAPI's signature
    body = {"detail": str(error), "reading": not (isinstance(error, NoAnswer) and error.slow)}
    return JSONResponse(body, status_code=503, headers={"Retry-After": "1"})


async def _private(request: Request, call_next: Callable[[Request], Awaitable[Response]]) -> Response:
    answer = await call_next(request)
    answer.headers.setdefault("Cache-Control", "no-store")
    answer.headers["X-Content-Type-Options"] = "nosniff"
    answer.headers["Content-Security-Policy"] = "frame-ancestors 'self'"
    return answer
