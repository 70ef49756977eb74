"""A private Airflow for a test or the demo: `airflow standalone` on SQLite with the LocalExecutor."""

from __future__ import annotations

import json
import os
import re
import secrets
import signal
import socket
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import httpx
import psutil

from tests.harness.servers.process import ServerProcess, free_port

ROOT = Path(__file__).resolve().parents[3]

# Standalone ends its components when it is interrupted, and leaves them running when it is terminated: so SIGTERM
# becomes an interrupt here.
STANDALONE = """
import signal, sys
signal.signal(signal.SIGTERM, signal.default_int_handler)
from airflow.__main__ import main
sys.argv = ["airflow", "standalone"]
main()
"""

GROUPS = find_spec("airflow.sdk.configuration") is not None
"""Whether the log of a task has groups, as from Airflow 3.2 on."""
LOG_SECONDS = 15
"""Longest wait for the end of a task's log. The log of a task that was killed has none."""
LOCKED = 60
"""For how long, in seconds, a request is sent again while the database is locked."""

Json = dict[str, Any]


def _is_locked(answer: httpx.Response) -> bool:
    """Whether the database refused a request: Airflow says why, or hides it."""
    return "locked" in answer.text or "Database error" in answer.text


class AirflowStandalone:
    """Scheduler, DAG processor, triggerer and API server: ready when the ``with`` block begins, stopped when it ends.

    Args:
        home: folder for the database, logs and passwords; may be used again by a later instance.
        dags_folder: where DAG files are looked for.
        plugins_folder: Airflow's plugins folder, added to PYTHONPATH.
        env: more variables, also ``AIRFLOW__...``; they override the settings made here.
        port: of the API server and its pages; a free one when None.
        users: names and roles (admin, op, user, viewer) in addition to ``admin``; all have the same password.
        ready_seconds: timeout of the start.
    """

    user = "admin"
    program: tuple[str, ...] = (sys.executable, "-c", STANDALONE)
    components: tuple[str, ...] = ("metadatabase", "scheduler", "dag_processor", "triggerer")

    def __init__(
        self,
        home: Path,
        dags_folder: Path,
        plugins_folder: Path,
        env: Mapping[str, str] | None = None,
        *,
        port: int | None = None,
        users: Mapping[str, str] | None = None,
        ready_seconds: float = 900,
    ) -> None:
        self.home = home
        self.dags = dags_folder
        self.port = port or free_port()
        self.url = f"http://localhost:{self.port}"
        self.password = secrets.token_urlsafe(12)
        self.password_file = home / "passwords.json"
        self.users = {self.user: "admin", **(users or {})}
        self.ready_seconds = ready_seconds
        self.env = {
            **self._settings(dags_folder, plugins_folder),
            **(env or {}),
            **self._paths(plugins_folder, env or {}),
        }
        self._process: ServerProcess | None = None
        self._started_again: list[ServerProcess] = []
        self._client: httpx.Client | None = None

    def _settings(self, dags_folder: Path, plugins_folder: Path) -> dict[str, str]:
        settings = {
            "CORE__DAGS_FOLDER": dags_folder,
            "CORE__PLUGINS_FOLDER": plugins_folder,
            "CORE__EXECUTOR": "LocalExecutor",
            "CORE__PARALLELISM": 4,
            "CORE__LOAD_EXAMPLES": False,
            "CORE__SIMPLE_AUTH_MANAGER_USERS": ",".join(f"{name}:{role}" for name, role in self.users.items()),
            "CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE": self.password_file,
            "DATABASE__SQL_ALCHEMY_CONN": f"sqlite:///{self.home}/airflow.db?timeout=60",
            "API__HOST": "127.0.0.1",
            "API__PORT": self.port,
            "API__BASE_URL": self.url,
            "API__WORKERS": 1,
            "API__SECRET_KEY": secrets.token_hex(16),
            "API_AUTH__JWT_SECRET": secrets.token_hex(32),
            "CORE__EXECUTION_API_SERVER_URL": f"{self.url}/execution/",
            "DAG_PROCESSOR__REFRESH_INTERVAL": 10,
            "WORKERS__EXECUTION_API_TIMEOUT": 60,  # 5 s is too short on a busy machine
            "LOGGING__BASE_LOG_FOLDER": self.home / "logs",
            "LOGGING__WORKER_LOG_SERVER_PORT": free_port(),
            "LOGGING__TRIGGER_LOG_SERVER_PORT": free_port(),
            "SCHEDULER__ENABLE_HEALTH_CHECK": False,
            "USAGE_DATA_COLLECTION__ENABLED": False,
        }
        return {f"AIRFLOW__{name}": str(value) for name, value in settings.items()}

    def _paths(self, plugins_folder: Path, env: Mapping[str, str]) -> dict[str, str]:
        """Return the variables that ``env`` cannot replace: home, paths and time zone."""
        path = env.get("PATH") or os.environ["PATH"]
        modules = filter(None, (env.get("PYTHONPATH"), str(ROOT), str(plugins_folder)))
        return {
            "AIRFLOW_HOME": str(self.home),
            "PATH": f"{Path(sys.executable).parent}:{path}",  # standalone calls `airflow` by its name
            "PYTHONPATH": ":".join(modules),
            "PYTHONUNBUFFERED": "1",
            "TZ": "UTC",
        }

    @property
    def log(self) -> Path:
        """The output of all components; task logs are under ``logs/`` in the same folder."""
        return self.home / "standalone.log"

    @property
    def session(self) -> int:
        """Id of the session of all its processes, while it runs."""
        assert self._process is not None
        return self._process.session

    def start(self) -> Self:
        """Start everything and wait until all components are healthy and a user can log in.

        Raises:
            ServerDidNotStart: it ended or was not ready in time; the message shows the end of its log.
        """
        self.home.mkdir(parents=True, exist_ok=True)
        self.password_file.write_text(json.dumps(dict.fromkeys(self.users, self.password)))
        self.password_file.chmod(0o600)
        self._process = ServerProcess("airflow", [*self.program], self.log, self.env)
        try:
            self._process.wait_until_ready(self._healthy, self.ready_seconds)
            self._client = self._log_in()
        except BaseException:
            self.stop()
            raise
        return self

    def _healthy(self) -> bool:
        try:
            # A port that nobody listens on is found out without httpx, whose clients each load the certificates of all authorities.
            socket.create_connection(("127.0.0.1", self.port), timeout=10).close()
            answer = httpx.get(f"{self.url}/api/v2/monitor/health", timeout=10)
        except (OSError, httpx.HTTPError):
            time.sleep(0.5)
            return False
        components = answer.json() if answer.status_code == httpx.codes.OK else {}
        return all((components.get(name) or {}).get("status") == "healthy" for name in self.components) or bool(
            time.sleep(0.5)
        )

    def token(self, user: str | None = None) -> str:
        """Return a fresh API token of the simple auth manager."""
        body = {"username": user or self.user, "password": self.password}
        answer = httpx.post(f"{self.url}/auth/token", json=body, timeout=180)
        answer.raise_for_status()
        return str(answer.json()["access_token"])

    def _log_in(self) -> httpx.Client:
        headers = {"Authorization": f"Bearer {self.token()}"}
        return httpx.Client(base_url=self.url, headers=headers, timeout=180)

    def stop(self) -> None:
        """Stop all components and their tasks; a second call does nothing."""
        if self._client:
            self._client.close()
            self._client = None
        for component in self._started_again:
            component.stop()
            kill_session(component.session)
        self._started_again.clear()
        if self._process:
            self._process.stop()
            kill_session(self.session)
            self._process = None

    @contextmanager
    def killed(self, component: str, *, with_children: bool = False) -> Iterator[None]:
        """Kill a component when the block begins, and start it again when it ends.

        Args:
            component: ``scheduler``, ``triggerer`` or ``dag-processor``.
            with_children: whether its processes, such as workers and tasks, are killed as well.
        """
        process = self._component(component)
        children = process.children(recursive=True) if with_children else []
        for one in (process, *children):
            with suppress(psutil.NoSuchProcess):  # it ended with its parent
                one.kill()
        # `airflow standalone` does not wait for it, so that it stays as a zombie.
        with suppress(psutil.NoSuchProcess):
            while process.status() != psutil.STATUS_ZOMBIE:
                time.sleep(0.02)
        try:
            yield
        finally:
            command = [sys.executable, "-m", "airflow", component]
            self._started_again.append(ServerProcess(component, command, self.log, self.env))

    def _component(self, name: str) -> psutil.Process:
        """Return the process of a component. Processes that it forked have its command line too, also when it was killed."""
        sessions = {self.session, *(component.session for component in self._started_again)}
        found = {}
        for process in psutil.process_iter(["cmdline", "ppid"]):
            words = process.info["cmdline"] or [""]
            with suppress(ProcessLookupError):  # it has just ended
                if "python" in words[0] and words[-1] == name and os.getsid(process.info["ppid"]) in sessions:
                    found[process.pid] = process
        for process in found.values():
            if process.info["ppid"] not in found:
                return process
        msg = f"no process of the {name} runs"
        raise RuntimeError(msg)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.stop()

    # --- the REST API -------------------------------------------------------------------------------------------------

    def request(self, method: str, path: str, body: Json | None = None) -> Any:
        """Send one request and return the JSON of its answer; ``path`` starts with ``/``.

        While the SQLite database is locked Airflow refuses requests and rolls back what they began: they are sent again.

        Raises:
            httpx.HTTPStatusError: the status is an error; the answer's text is added as a note.
        """
        if self._client is None:
            msg = "Airflow is not running"
            raise RuntimeError(msg)
        deadline = time.monotonic() + LOCKED
        answer = self._client.request(method, path, json=body)
        while answer.is_server_error and _is_locked(answer) and time.monotonic() < deadline:
            time.sleep(1)
            answer = self._client.request(method, path, json=body)
        try:
            answer.raise_for_status()
        except httpx.HTTPStatusError as error:
            error.add_note(answer.text[:2000])
            raise
        return answer.json() if answer.content else None

    def get(self, path: str) -> Any:
        """GET ``/dags`` and the like below ``/api/v2``; paths with ``/api/``, ``/auth/`` or ``/cdc`` are taken as they are."""
        return self.request("GET", path if path.startswith(("/api/", "/auth/", "/cdc")) else f"/api/v2{path}")

    def wait(self, what: str, question: Callable[[], Any], seconds: float = 900) -> Any:
        """Poll until the answer is true, and return it; the error after ``seconds`` shows the end of the log.

        Each answer costs CPU time of the API server: the longer it takes, the rarer are the questions.
        """
        began = time.monotonic()
        deadline = began + seconds
        while True:
            try:
                if answer := question():
                    return answer
            except httpx.HTTPStatusError as error:
                if error.response.status_code != httpx.codes.NOT_FOUND:  # not there yet
                    raise
            if time.monotonic() > deadline:
                tail = self._process.log_tail() if self._process else ""
                msg = f"{what}: not after {seconds:.0f} s. {tail}"
                raise TimeoutError(msg)
            time.sleep(min(0.3 + (time.monotonic() - began) / 20, 2))

    def wait_for_dag(self, dag: str, seconds: float = 900) -> Json:
        """Wait until the DAG processor has read a DAG. At first it is stale and cannot be triggered."""

        def read() -> Json | None:
            found_dag = self.get(f"/dags/{dag}")
            return found_dag if found_dag and not found_dag["is_stale"] else None

        return self.wait(f"DAG {dag} is listed", read, seconds)

    def import_errors(self) -> list[Json]:
        """Return what the DAG processor could not read: filename and stack_trace."""
        return list(self.get("/importErrors")["import_errors"])

    def unpause(self, dag: str) -> None:
        """Let the scheduler make runs of a DAG."""
        self.request("PATCH", f"/api/v2/dags/{dag}", {"is_paused": False})

    def pause(self, dag: str) -> None:
        """Let the scheduler make no more runs of a DAG."""
        self.request("PATCH", f"/api/v2/dags/{dag}", {"is_paused": True})

    def trigger(self, dag: str, **params: Any) -> str:
        """Start a run by hand, with the values of its form, and return its run id."""
        body = {"logical_date": None, "conf": params}
        return str(self.request("POST", f"/api/v2/dags/{dag}/dagRuns", body)["dag_run_id"])

    def dag_runs(self, dag: str) -> list[Json]:
        """Return the runs of a DAG, oldest first."""
        return list(self.get(f"/dags/{dag}/dagRuns?order_by=run_after&limit=100")["dag_runs"])

    def wait_for_run(self, dag: str, run_id: str, seconds: float = 900) -> Json:
        """Wait until a run has succeeded or failed, and return it."""

        def ended() -> Json | None:
            run = self.get(f"/dags/{dag}/dagRuns/{run_id}")
            return run if run["state"] in {"success", "failed"} else None

        return self.wait(f"run {run_id} of {dag} has ended", ended, seconds)

    def tasks(self, dag: str, run_id: str) -> list[Json]:
        """Return the task instances of a run: task_id, map_index, rendered_map_index, state, try_number ..."""
        return list(self.get(f"/dags/{dag}/dagRuns/{run_id}/taskInstances?limit=200")["task_instances"])

    def clear(self, dag: str, run_id: str, *task_ids: str, downstream: bool = False) -> None:
        """Clear tasks of a run, so that they are done again."""
        body = {
            "dry_run": False,
            "dag_run_id": run_id,
            "task_ids": list(task_ids),
            "only_failed": False,
            "include_downstream": downstream,
        }
        self.request("POST", f"/api/v2/dags/{dag}/clearTaskInstances", body)

    def mark(self, dag: str, run_id: str, task_id: str, state: str) -> None:
        """Mark a task success or failed, as the button does."""
        self.request("PATCH", f"/api/v2/dags/{dag}/dagRuns/{run_id}/taskInstances/{task_id}", {"new_state": state})

    def wait_until_process_ended(self, run_id: str, seconds: float = 600) -> None:
        """Wait until the scheduler knows that a task's process has ended.

        A task waits for a person some moments before its process ends. If it is answered and started again in these
        moments, the scheduler takes the end of the first process for the end of the second, and fails the task.
        """
        words = re.compile(rf"TaskInstance Finished: .*run_id={re.escape(run_id)},")
        self.wait(f"a process of {run_id} has ended", lambda: words.search(self.log.read_text()), seconds)

    def log_lines(self, dag: str, run_id: str, task_id: str, attempt: int = 1, map_index: int = -1) -> list[str]:
        """Return the lines that an attempt has logged so far."""
        path = f"/dags/{dag}/dagRuns/{run_id}/taskInstances/{task_id}/logs/{attempt}?map_index={map_index}"
        return [_text(line) for line in self.get(path)["content"]]

    def task_log(self, dag: str, run_id: str, task_id: str, attempt: int = 1, map_index: int = -1) -> str:
        """Return the log of one attempt as text. A task may have ended before its log is written: its end is waited for a moment."""
        deadline = time.monotonic() + LOG_SECONDS
        before: list[str] = []
        while True:
            lines = self.log_lines(dag, run_id, task_id, attempt, map_index)
            begun, ended = lines.count("::group::Pre Execute"), lines.count("::group::Post Execute")
            is_whole = 0 < begun <= ended and lines[-1] == "::endgroup::"
            # Before Airflow 3.2 a log does not say where it ends: two equal looks have to do.
            is_whole = is_whole or (bool(lines) and not GROUPS and lines == before)
            if is_whole or time.monotonic() > deadline:
                return "\n".join(lines)
            before = lines
            time.sleep(0.2 if GROUPS else 1)


def _text(line: str | Json) -> str:
    """Return a line of a task's log, with the error that it reports."""
    if isinstance(line, str):
        return line
    errors = [f"{error['exc_type']}: {error['exc_value']}" for error in line.get("error_detail") or ()]
    return "\n".join([str(line.get("event", line)), *errors])


def kill_session(session: int) -> None:
    """Kill the processes that remain in a session: tasks run in process groups of their own and outlive their scheduler."""
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(FileNotFoundError, ProcessLookupError):  # it has just ended
            fields = stat.read_text().rpartition(")")[2].split()
            if int(fields[3]) == session:
                os.kill(int(stat.parent.name), signal.SIGKILL)
