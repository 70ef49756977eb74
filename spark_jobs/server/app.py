"""The HTTP interface of the Spark server; :mod:`cdc_lib.jobs.request` has its documents."""

from __future__ import annotations

import asyncio
import time
from typing import Annotated

from fastapi import APIRouter, FastAPI, HTTPException, Query, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException as StarletteHTTPException

from cdc_lib.jobs.request import JobRequest, JobStatus, ServerStatus
from cdc_lib.serve.door import Door
from spark_jobs.server.jobs import Jobs, ServedJob

LOOK = 0.1
"""Seconds between two looks at a job that a request waits for."""

LONGEST = 60
"""Maximum seconds that a request can wait."""


def make_app(jobs: Jobs, token: str) -> FastAPI:
    """Return the application.

    Args:
        jobs: of the server.
        token: what clients send as bearer token; empty at a socket, which only one user can open.
    """
    app = FastAPI(title="Spark jobs", openapi_url=None)
    app.state.jobs = jobs
    app.include_router(ROUTER)
    app.add_middleware(Door, token=token, refuse=_answer)
    app.add_exception_handler(StarletteHTTPException, _refused)
    app.add_exception_handler(RequestValidationError, _invalid)
    return app


ROUTER = APIRouter()
Offset = Annotated[int, Query(ge=0, lt=2**63)]
Wait = Annotated[float, Query(ge=0, allow_inf_nan=False)]


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
async def job(request: Request, job_id: str, offset: Offset = 0, wait: Wait = 0) -> JobStatus:
    """Return a job with its next lines; waits for a line or the end of the job."""
    found = _found(request, job_id)
    until = time.monotonic() + min(wait, LONGEST)
    while True:
        answer = found.status(offset)
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
    return _answer(error.status_code, error.detail)


def _answer(status: int, text: str) -> JSONResponse:
    return JSONResponse({"error": text}, status)


def _invalid(_: Request, error: Exception) -> JSONResponse:
    """Name the fields that are wrong, without their values: these may be secrets."""
    assert isinstance(error, RequestValidationError)
    wrong = "; ".join(f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in error.errors())
    return _answer(422, wrong)
