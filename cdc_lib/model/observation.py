"""What a task saw that those who look at the store alone cannot see: the server's binlog, how long a drain took, and retries."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from cdc_lib.model.cascades import Cascades
from cdc_lib.model.position import Position
from cdc_lib.model.server_identity import ServerIdentity


@dataclass(frozen=True, slots=True)
class ServerObservation:
    """The binlog of a source's server, as the last plan saw it.

    Args:
        source: name of the source.
        at: when the server was asked (UTC).
        identity: which server it is.
        binlog_end: end of its binlog.
        files: binlog files and their sizes in bytes, from the one on that the lake needs next.
        purges_at: from when on the server may purge what is drained next; None when it does not, or when it is unknown.
        drain_rate: bytes of binlog a second at which the last backlog was drained, from run to run; None if that is unknown.
    """

    source: str
    at: datetime
    identity: ServerIdentity
    binlog_end: Position
    files: tuple[tuple[str, int], ...]
    purges_at: datetime | None
    drain_rate: float | None = None

    def retention_left_seconds(self, now: datetime) -> float | None:
        """Return the seconds until the server may purge what is drained next, at least 0; None when that time is not known.

        Args:
            now: the time (UTC).
        """
        return None if self.purges_at is None else max(0.0, (self.purges_at - now).total_seconds())


@dataclass(frozen=True, slots=True)
class DrainObservation:
    """The last unit of a source whose batches were written.

    Args:
        source: name of the source.
        at: when it ended (UTC).
        unit_id: the window's or snapshot task's id.
        seconds: wall clock time.
        rows: rows in its batches.
        bytes: bytes of their files.
    """

    source: str
    at: datetime
    unit_id: str
    seconds: float
    rows: int
    bytes: int


@dataclass(frozen=True, slots=True)
class TablesObservation:
    """The captured tables whose definitions plans have looked at: the next plan looks at those that were defined again.

    Args:
        source: name of the source.
        identity: of the server.
        defined: when each table was last defined, as the server says; by the text of its :class:`TableName`.
        compared: whether the definitions were compared with the schema history.
        cascades: the foreign keys of the captured tables and of those that they refer to.
        checked: digest of the source file that the tables were found to fit.
    """

    source: str
    identity: ServerIdentity
    defined: Mapping[str, datetime]
    compared: bool
    cascades: Cascades = field(default_factory=Cascades)
    checked: str = ""


@dataclass(frozen=True, slots=True)
class TaskRetries:
    """How often tasks of a source were tried again.

    Args:
        source: name of the source.
        by_task: tries after the first so far, by the id of the task.
    """

    source: str
    by_task: dict[str, int]

    def with_another(self, task: str) -> TaskRetries:
        """Return the counts with one more try of a task."""
        return TaskRetries(self.source, {**self.by_task, task: self.by_task.get(task, 0) + 1})
