"""Looks at the command lines and environments of all processes while something runs."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Self

PAUSE = 0.2
"""Seconds between two looks: each costs a millisecond of CPU for each process, and the shortest job lives for seconds."""


@dataclass(frozen=True, slots=True)
class Sighting:
    """A secret where a process shows it.

    Args:
        secret: its name.
        place: ``cmdline`` or ``environ``.
        command: the command line, shortened.
    """

    secret: str
    place: str
    command: str


@dataclass
class ProcessWatch:
    """Watches in a ``with`` block.

    Args:
        secrets: values by name.
    """

    secrets: Mapping[str, str]
    seen: set[Sighting] = field(default_factory=set)
    commands: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="process-watch", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self._end.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._end.is_set():
            for process in Path("/proc").glob("[0-9]*"):
                self._look(process)
            time.sleep(PAUSE)

    def _look(self, process: Path) -> None:
        try:
            words = (process / "cmdline").read_bytes()
            environment = (process / "environ").read_bytes() if _is_ours(process) else b""
        except (FileNotFoundError, ProcessLookupError):  # it has just ended
            return
        command = words.replace(b"\0", b" ").decode(errors="replace").strip()
        self.commands.add(command[:1500])
        for name, value in self.secrets.items():
            for place, text in (("cmdline", words), ("environ", environment)):
                if value.encode() in text:
                    self.seen.add(Sighting(name, place, command[:1500]))


def _is_ours(process: Path) -> bool:
    """Whether the environment may be read: that of a process of another user, or outside a container, is closed to us anyway."""
    return os.access(process / "environ", os.R_OK) and process.name != "1"
