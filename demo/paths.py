"""The demo's paths: all below ``build/demo``, so that removing this folder removes them."""

from __future__ import annotations

import fcntl
import json
import os
import secrets
import shlex
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
HOME = ROOT / "build" / "demo"
STATE = HOME / "state.json"
ENV_FILE = HOME / "env"
PID_FILE = HOME / "demo.pid"
BATCHES = HOME / "batches"
LAKE = HOME / "lake"
AIRFLOW = HOME / "airflow"
SOURCES = ROOT / "dags" / "sources"
SOURCE_FILE = SOURCES / "shop.yaml"
DATABASE = "shop"
SPARK_SERVER = "CDC_SPARK_SERVER"
SPARK_TOKEN = "CDC_SPARK_TOKEN"


class DemoError(Exception):
    """The demo cannot continue; the message says why and what to do."""


@dataclass
class State:
    """What a later run must know about an earlier one.

    Args:
        server: ``mysql`` or ``mariadb`` (run by the demo), or ``url`` (named by the user).
        port: port of the demo's own server; fixed, because it is part of the source's address.
        password: password of the ``cdc`` user on the demo's own server.
        made: whether the demo began to create the shop, and so may drop it.
        rows: rows of the seeded shop; 0 before the seed is complete.
        workloads: number of started workloads; each uses its number as seed.
        server_id: identifies the user's server, so that its ``shop`` is recognized as the demo's.
    """

    server: str = ""
    port: int = 0
    password: str = field(default_factory=lambda: secrets.token_hex(12), repr=False)
    made: bool = False
    rows: int = 0
    workloads: int = 0
    server_id: str = ""

    @classmethod
    def load(cls) -> State:
        """Load the state of an earlier run, or return a new one."""
        return cls(**json.loads(STATE.read_text())) if STATE.exists() else cls()

    def save(self) -> None:
        """Save it, readable only by its owner."""
        write_private(STATE, json.dumps(asdict(self), indent=2) + "\n")


def write_private(path: Path, text: str) -> None:
    """Write a file that only its owner can read."""
    path.touch(mode=0o600)
    path.chmod(0o600)
    path.write_text(text)


def shown(path: Path) -> str:
    """Return a path as the user would type it in the checkout."""
    return str(path.relative_to(ROOT)) if path.is_relative_to(ROOT) else str(path)


def source_environment(
    host: str, port: int, user: str, password: str, spark: Mapping[str, str] | None = None
) -> dict[str, str]:
    """Return the variables that ``dags/sources/shop.yaml`` and its defaults ask for.

    Args:
        host: of the source.
        port: of the source.
        user: of the product there.
        password: of the user.
        spark: the variables of the Spark server; None when none runs, and a job starts a Spark of its own.
    """
    return {
        "CDC_SOURCES": str(SOURCES),
        "CDC_STORE_URL": f"file://{BATCHES}",
        "CDC_LAKE_URI": f"jdbc:sqlite:{LAKE}/catalog.db?busy_timeout=30000",
        "CDC_LAKE_WAREHOUSE": f"file://{LAKE}",
        "CDC_DEMO_HOST": host,
        "CDC_DEMO_PORT": str(port),
        "CDC_DEMO_USER": user,
        "CDC_DEMO_PASSWORD": password,
        SPARK_SERVER: "",  # of a shell that has read the file before
        **(spark or {}),
    }


def write_environment(environment: dict[str, str]) -> None:
    """Write the variables as a shell file, for commands that the user types."""
    lines = [f"export {name}={shlex.quote(value)}\n" for name, value in environment.items()]
    write_private(ENV_FILE, "".join(["# Made by ./dev demo; use it with: . build/demo/env\n", *lines]))


@contextmanager
def only_one() -> Iterator[None]:
    """Lock the demo's folder: a second demo would overwrite the data of the first.

    Raises:
        DemoError: another one runs.
    """
    HOME.mkdir(parents=True, exist_ok=True)
    with PID_FILE.open("a+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise DemoError(
                f"a demo runs already (process {running_pid() or '?'}); ./dev demo-clean stops it"
            ) from None
        file.truncate(0)
        file.write(str(os.getpid()))
        file.flush()
        yield


def running_pid() -> int | None:
    """Return the process id of the running demo, or None."""
    if not PID_FILE.exists():
        return None
    with PID_FILE.open() as file:
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            text = file.read()
            return int(text) if text.isdigit() else None
    return None
