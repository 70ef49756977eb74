"""Sends jobs to a Spark server and reads what they print."""

from __future__ import annotations

import json
import os
import shlex
import socket
import struct
from collections.abc import Callable, Collection, Mapping
from typing import Any, TypeVar
from urllib.parse import urlsplit

import urllib3
from pydantic import BaseModel, TypeAdapter, ValidationError
from urllib3 import HTTPConnectionPool
from urllib3.connection import HTTPConnection
from urllib3.exceptions import HTTPError, NewConnectionError

from cdc_lib.config.source import SourceConfig
from cdc_lib.config.work import SparkServerConfig
from cdc_lib.errors import CdcError, ConfigError, MergeConflict, MergeError, SparkUnavailable, load_error
from cdc_lib.jobs.request import JobName, JobRequest, JobStatus, ServerStatus
from cdc_lib.jobs.secrets import secrets_to_send

LONG_POLL = 20
"""Seconds that a request waits for the next lines of a job."""

_CONNECT, _ANSWER = 5.0, 30.0
"""Seconds that the server has to accept a connection, and to answer after what a request waits for."""

_SAME_WORK = "Nothing is lost: the next try takes up the same work."

Document = TypeVar("Document", bound=BaseModel)

_SOCKET = "unix://"
_LOCAL = ("127.0.0.1", "localhost", "::1")
_STATUSES = TypeAdapter(list[JobStatus])


def job_request(
    config: SourceConfig,
    job: JobName,
    *arguments: str,
    key: str,
    handed: Mapping[str, str] | None = None,
    report: bool = False,
    by: str = "",
) -> JobRequest:
    """Return the request for a job.

    Args:
        config: the source.
        job: which one.
        arguments: further arguments of the job.
        key: identifies the work; see :class:`JobRequest`.
        handed: variables with secrets that only Airflow knows.
        report: whether the job leaves a report.
        by: who asks, for the records.
    """
    return JobRequest(
        key=key,
        job=job,
        source=config.source,
        config=config.model_dump(mode="json", exclude_unset=True),
        arguments=arguments,
        secrets=secrets_to_send(config, handed or {}),
        report=report,
        by=by,
    )


class SparkServer:
    """A Spark server.

    Args:
        config: its address, and the name of the variable with its token.
        environ: the environment.

    Raises:
        ConfigError: the variable is not set.
    """

    def __init__(self, config: SparkServerConfig, environ: Mapping[str, str] = os.environ) -> None:
        self.url = config.url.rstrip("/")
        self._start = _start_of(config)
        self._headers = {"Content-Type": "application/json"}
        if config.token_env is not None:
            token = environ.get(config.token_env, "")
            if not token:
                raise ConfigError(
                    f"the environment variable {config.token_env} is not set",
                    hint="It holds the token of the Spark server (merge.spark_server.token_env).",
                )
            self._headers["Authorization"] = f"Bearer {token}"
        # A request that was not answered is sent again: the key of a job makes that safe.
        self._retries = urllib3.Retry(2, connect=0, backoff_factor=0.2, allowed_methods=None)
        self._pool = _pool(self.url)

    def submit(self, request: JobRequest) -> JobStatus:
        """Start a job, or return the one with the same key that has not ended.

        Raises:
            ConfigError: the server refuses the request.
            SparkUnavailable: it does not answer.
        """
        return self._job(self._ask("POST", "/v1/jobs", request.model_dump_json().encode()))

    def job(self, job_id: str, offset: int = 0, wait: float = 0) -> JobStatus:
        """Return the state of a job, with its output from an offset on.

        Args:
            job_id: of the job.
            offset: that of the last answer.
            wait: seconds that the server may wait for a new line or the end of the job.

        Raises:
            SparkUnavailable: it does not answer, or does not know the job.
        """
        return self._job(self._ask("GET", f"/v1/jobs/{job_id}?offset={offset}&wait={wait:g}", wait=wait))

    def cancel(self, job_id: str) -> None:
        """End a job; nothing happens if it has ended.

        Raises:
            SparkUnavailable: the server does not answer, or does not know the job.
        """
        self._ask("DELETE", f"/v1/jobs/{job_id}")

    def jobs(self) -> list[JobStatus]:
        """Return the jobs that the server remembers, without their output.

        Raises:
            SparkUnavailable: it does not answer.
        """
        return _STATUSES.validate_json(self._ask("GET", "/v1/jobs"))

    def status(self) -> ServerStatus:
        """Return what the server says of itself.

        Raises:
            SparkUnavailable: it does not answer.
        """
        return _parsed(ServerStatus, self._ask("GET", "/v1/status"), self.url)

    def follow(self, job: JobStatus, say: Callable[[str], None]) -> JobStatus:
        """Wait for the end of a job and pass on each line of its output.

        Raises:
            SparkUnavailable: the server does not answer, or was restarted.
        """
        while True:
            for line in job.lines:
                say(line)
            if job.has_ended and not job.lines:  # a long output takes several answers
                return job
            job = self.job(job.id, job.offset, 0 if job.has_ended else LONG_POLL)

    def _job(self, body: bytes) -> JobStatus:
        return _parsed(JobStatus, body, self.url)

    def _ask(self, method: str, path: str, body: bytes | None = None, wait: float = 0) -> bytes:
        timeout = urllib3.Timeout(connect=_CONNECT, read=_ANSWER + wait)
        try:
            answer = self._pool.request(
                method,
                path,
                body=body,
                headers=self._headers,
                timeout=timeout,
                retries=self._retries,
                redirect=False,
            )
        except HTTPError as error:
            raise SparkUnavailable(
                f"the Spark server does not answer: {_cause(error)}",
                hint=f"Start it on its machine: {self._start}. Nothing is lost: the next try takes up the same work.",
                url=self.url,
            ) from error
        if answer.status < 400:
            return answer.data
        raise _refusal(answer.status, answer.data, self.url)


class _SocketConnection(HTTPConnection):
    """A connection to a socket in the file system. Only to a server of this user or root: requests hold passwords."""

    def __init__(self, *args: Any, path: str, **settings: Any) -> None:
        super().__init__(*args, **settings)
        self._path = path

    def _new_conn(self) -> socket.socket:
        made = socket.socket(socket.AF_UNIX)
        try:
            made.connect(self._path)
        except OSError as error:
            made.close()
            raise NewConnectionError(self, str(error.strerror or error)) from error
        _, user, _ = struct.unpack("3i", made.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i")))
        if user not in (0, os.geteuid()):
            made.close()
            raise ConfigError(
                "the Spark server at the socket is that of another user, who would get the passwords of the source",
                hint="Start it as the user of this process, or use an address with a token.",
                socket=self._path,
                user_id=user,
            )
        return made


class _SocketPool(HTTPConnectionPool):
    ConnectionCls = _SocketConnection


def _pool(url: str) -> HTTPConnectionPool:
    if url.startswith(_SOCKET):
        return _SocketPool("localhost", path=url.removeprefix(_SOCKET))
    return urllib3.connection_from_url(url)


def raise_for(job: JobStatus, good: Collection[int] = (0,)) -> int:
    """Return the exit code of a job that has ended well.

    Args:
        job: after its end.
        good: exit codes that are not failures.

    Raises:
        CdcError: the error of the job.
        MergeConflict: it was cancelled, or a signal ended it.
        MergeError: it failed without an error document.
    """
    if job.state == "ended" and job.exit_code in good:
        return job.exit_code or 0
    if job.error is not None:
        raise load_error(json.dumps(job.error).encode())
    if job.state == "cancelled":
        raise MergeConflict("the job was cancelled on the Spark server", hint=_SAME_WORK, job=job.id)
    if (job.exit_code or 0) < 0:
        raise MergeConflict(
            f"signal {-(job.exit_code or 0)} ended the job on the Spark server", hint=_SAME_WORK, job=job.id
        )
    raise MergeError(
        f"the Spark job ended with code {job.exit_code}",
        hint="It named no error of its own: what it printed last is the cause. The cursors did not move.",
        job=job.id,
    )


def _parsed(model: type[Document], body: bytes, url: str) -> Document:
    try:
        return model.model_validate_json(body)
    except ValidationError as error:
        raise ConfigError(
            "what answers at merge.spark_server.url is no Spark server of this version",
            hint="Name the address that cdc spark serve prints, and install the same version on both sides.",
            url=url,
        ) from error


def _refusal(status: int, body: bytes, url: str) -> CdcError:
    try:
        said = str(json.loads(body)["error"])
    except (ValueError, KeyError, TypeError):
        said = f"HTTP status {status}"
    if status == 401:
        return ConfigError(
            f"the Spark server refuses the request: {said}",
            hint="Name the environment variable with the server's token in merge.spark_server.token_env.",
            url=url,
        )
    if status == 404:
        return SparkUnavailable(
            f"the Spark server does not know the job: {said}",
            hint="It was restarted. Nothing is lost: the next try takes up the same work.",
            url=url,
        )
    if status >= 500:
        return SparkUnavailable(
            f"the Spark server failed: {said}",
            hint="See the server's output. Nothing is lost: the next try takes up the same work.",
            url=url,
        )
    return ConfigError(
        f"the Spark server refuses the request: {said}",
        hint="Install the same version of this package here and on the server.",
        url=url,
    )


def _start_of(config: SparkServerConfig) -> str:
    """Return the command that starts the server of a source file."""
    if config.url.startswith(_SOCKET):
        return f"cdc spark serve --socket {shlex.quote(config.url.removeprefix(_SOCKET))}"
    at = urlsplit(config.url)
    host = "" if at.hostname in _LOCAL else " --host 0.0.0.0"
    port = f" --port {at.port}" if at.port and at.scheme == "http" else ""  # TLS is a proxy's
    return f"cdc spark serve{host}{port}{f' --token-env {config.token_env}' if config.token_env else ''}"


def _cause(error: HTTPError) -> str:
    """Return the innermost cause: urllib3's own text repeats the address and the retries."""
    reason: BaseException = getattr(error, "reason", None) or error
    return str(reason).rpartition(": ")[2] or type(reason).__name__
