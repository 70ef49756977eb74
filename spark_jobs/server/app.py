"""The HTTP interface of the Spark server; :mod:`cdc_lib.jobs.request` has its documents."""

from __future__ import annotations

import asyncio
import time

from fastapi import APIRouter, Depends, FastAPI, HTTPException, Request
from fastapi.exceptions import RequestValidationError
from fastapi.middleware.trustedhost import TrustedHostMiddleware
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException as StarletteHTTPException

from cdc_lib.jobs.request import JobRequest, JobStatus, ServerStatus
from cdc_lib.model.bearer_token import OWN_NAMES, is_authorized
from spark_jobs.server.jobs import Jobs, ServedJob

LOOK = 0.1
"""Seconds between two looks at a job that a request waits for."""

LONGEST = 60
"""Maximum seconds that a request can wait."""


def make_app(jobs: Jobs, token: str) -> FastAPI:
    """Return the application.

    Args:
        jobs: of the server.
        token: what clients send as bearer token; empty if they need none.
    """
    app = FastAPI(title="Spark jobs", openapi_url=None, dependencies=[Depends(_authorized)])
    if not token:
        app.add_middleware(TrustedHostMiddleware, allowed_hosts=[*OWN_NAMES])
    app.state.jobs = jobs
    app.state.token = token
    app.include_router(ROUTER)
    app.add_exception_handler(StarletteHTTPException, _refused)
    app.add_exception_handler(RequestValidationError, _invalid)
    return app


def _authorized(request: Request) -> None:
    if not is_authorized(request.headers.get("authorization", ""), request.app.state.token):
        raise HTTPException(401, "the token is missing or wrong")
    # A page of another site in a browser of this machine can send a request, but not with this type.
    if request.method == "POST" and request.headers.get("content-type") != "application/json":
        raise HTTPException(415, "the body must be application/json")


ROUTER = APIRouter()


@ROUTER.get("/v1/status")
def status(request: Request) -> ServerStatus:
    """Return what the server says of itself."""
    return _jobs(request).status()


@ROUTER.get("/v1/jobs")
def listed(request: Request) -> list[JobStatus]:
    """Return the jobs that are remembered, without their output."""
    return [job.status() for job in _jobs(request).listed()]


@ROUTER.post("/v1/jobs")
def submit(request: Request, asked: JobRequest) -> JobStatus:
    """Start a job, or return the one that does the same and has not ended."""
    return _jobs(request).submit(asked).status(0)


@ROUTER.get("/v1/jobs/{job_id}")
async def job(request: Request, job_id: str, offset: int = 0, wait: float = 0) -> JobStatus:
    """Return a job with its next lines; waits for a line or the end of the job."""
    found = _found(request, job_id)
    until = time.monotonic() + min(wait, LONGEST)
    while True:
        answer = found.status(max(offset, 0))
        if answer.lines or answer.has_ended or time.monotonic() >= until:
            return answer
        await asyncio.sleep(LOOK)


@ROUTER.delete("/v1/jobs/{job_id}")
def cancel(request: Request, job_id: str) -> JobStatus:
    """End a job."""
    found = _found(request, job_id)
    _jobs(request).cancel(found)
    return found.status()


def _jobs(request: Request) -> Jobs:
    jobs: Jobs = request.app.state.jobs
    return jobs


def _found(request: Request, job_id: str) -> ServedJob:
    found = _jobs(request).find(job_id)
    if found is None:
        raise HTTPException(404, f"there is no job {job_id}")
    return found


def _refused(_: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, StarletteHTTPException)
    return JSONResponse({"error": error.detail}, error.status_code)


def _invalid(_: Request, error: Exception) -> JSONResponse:
    """Name the fields that are wrong, without their values: these may be secrets."""
    assert isinstance(error, RequestValidationError)
    wrong = "; ".join(f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in error.errors())
    return JSONResponse({"error": wrong}, 422)
