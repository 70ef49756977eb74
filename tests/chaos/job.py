"""What a step's process is told, and what became of it."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

STEPS = (
    "plan", "drain", "ack_drain", "plan_merge", "merge", "ack_lake", "rewind", "release", "again", "gc", "maintain", "backfill",
)  # fmt: skip


@dataclass(frozen=True)
class Job:
    """One step in a process of its own.

    Args:
        step: one of :data:`STEPS`.
        config: the source, as JSON.
        user: log-in of the source.
        password: of the user.
        folder: where its log, its output and its result go.
        unit: what to drain, as plain JSON.
        plan: what to merge, as plain JSON.
        wanted: where to rewind to, or the tables, with commas between them, that are released, read again or looked after;
            what is merged again, as JSON.
        label: point at which to die, and at which of its occurrences.
        nth: see label.
        after: seconds after which to die instead.
        group: whether its children die with it.
        clock: seconds by which its clock is wrong.
        silence: seconds after which a silent server counts as gone.
        patience: seconds for which prepared transactions are waited for.
        timeout: seconds after which it counts as hanging.
    """

    step: str
    config: str
    user: str
    password: str
    folder: str
    unit: dict[str, Any] | None = None
    plan: dict[str, Any] | None = None
    wanted: str = ""
    label: str | None = None
    nth: int = 1
    after: float | None = None
    group: bool = True
    clock: int = 0
    silence: float = 120.0
    patience: float = 0.5
    timeout: float = 150.0

    def to_json(self) -> str:
        """Return it as one line."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Job:
        """Return what :meth:`to_json` was given."""
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
        """File with the error, when there was one of this project's."""
        return Path(self.folder) / "error.json"


@dataclass(frozen=True)
class Outcome:
    """How a step ended.

    Args:
        status: exit status; negative for a signal, None when it hung.
        passed: labels of the points that it passed.
        killed_at: label of the point at which it was killed.
        error: name of the project's error that ended it; empty without one.
        retryable: whether that error says that trying again may help.
        said: the error's text, or the end of the output.
    """

    status: int | None
    passed: tuple[str, ...]
    killed_at: str | None
    error: str = ""
    retryable: bool = False
    said: str = ""

    @property
    def done(self) -> bool:
        """Whether it ended well."""
        return self.status == 0
