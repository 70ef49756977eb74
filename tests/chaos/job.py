"""The job of a step's process, and its outcome."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

STEPS = (
    "plan", "drain", "ack_drain", "plan_merge", "merge", "ack_lake", "rewind", "resume", "resnapshot", "gc", "maintain", "backfill",
    "erase",
)  # fmt: skip


@dataclass(frozen=True)
class Job:
    """One step in its own process.

    Args:
        step: one of :data:`STEPS`.
        config: the source, as JSON.
        user: log-in of the source.
        password: of the user.
        folder: where its log, its output and its result go.
        unit: what to drain, as plain JSON.
        plan: what to merge, as plain JSON.
        argument: position of a rewind; tables, separated by commas, to resume, snapshot again or maintain;
            request of a backfill, or table and keys of an erasure, as JSON.
        label: point at which the process is killed.
        nth: at which occurrence of the label, from 1.
        after: seconds after which it is killed instead.
        group: whether its children are killed too.
        clock: seconds by which its clock is wrong.
        silence: read timeout of the server's connection, in seconds.
        patience: seconds to wait for prepared transactions.
        timeout: seconds after which it counts as hanging.
        one_chunk: whether a drain reads one chunk of a snapshot, and leaves the others to later runs.
        stops: whether the process stops when it holds the lock of a manifest; the next job begins then.
        lock_patience: seconds to wait for another writer of a store in a folder.
    """

    step: str
    config: str
    user: str
    password: str
    folder: str
    unit: dict[str, Any] | None = None
    plan: dict[str, Any] | None = None
    argument: str = ""
    label: str | None = None
    nth: int = 1
    after: float | None = None
    group: bool = True
    clock: int = 0
    silence: float = 120.0
    patience: float = 0.5
    timeout: float = 150.0
    one_chunk: bool = False
    stops: bool = False
    lock_patience: float = 60.0

    def to_json(self) -> str:
        """Return it as one line."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Job:
        """Parse the result of :meth:`to_json`."""
        return cls(**json.loads(text))

    @property
    def log(self) -> Path:
        """File with a line for each point."""
        return Path(self.folder) / "points.log"

    @property
    def output(self) -> Path:
        """File with what the process printed."""
        return Path(self.folder) / "output.txt"

    @property
    def result(self) -> Path:
        """File with the error, if it was a ``CdcError``."""
        return Path(self.folder) / "error.json"


@dataclass(frozen=True)
class Outcome:
    """How a step ended.

    Args:
        status: exit status; negative for a signal, None when it hung.
        passed: labels of the points before its end.
        killed_at: label of the point at which it was killed.
        error: class name of the ``CdcError`` that ended it; empty without one.
        retryable: whether that error is retryable.
        message: the error's text, or the end of the output.
    """

    status: int | None
    passed: tuple[str, ...]
    killed_at: str | None
    error: str = ""
    retryable: bool = False
    message: str = ""

    @property
    def done(self) -> bool:
        """Whether it succeeded."""
        return self.status == 0
