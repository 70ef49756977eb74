"""Every error this project raises on purpose, in one tree.

CdcError
├── ConfigError                  a source file, a setting or a command line is wrong
├── SourceError                  the MySQL or MariaDB server
│   ├── SourceUnavailable *      cannot connect, or the connection broke
│   ├── PositionPurged           the server no longer has the binlog the cursor needs
│   ├── PositionNotFound         the server has the file, but not that position in it
│   ├── UnsupportedServer        a version, setting or privilege that cannot be worked with
│   └── ServerSwitched           another server answers than the one the cursor belongs to
├── DecodeError                  bytes of the binlog that are not understood
│   ├── UnknownEvent             an event type that is not read yet
│   ├── UnknownSchema            rows of a table whose columns are not known
│   ├── UnsupportedValue         a column type or a value with no exact place in the lake
│   ├── TableReplaced            a captured table has rows that the binlog does not hold: it is read anew
│   ├── RowsUndone               rows that were taken back had been decoded: the window is read again
│   └── ChecksumMismatch         the CRC32 of an event is wrong
├── ReselectError *              the current row could not be read back from the source
├── StoreError                   object storage
│   ├── StoreUnavailable *       no answer, or an answer that says to try again
│   ├── CorruptBatch             a file is missing, or not what its manifest says
│   ├── BatchesGone              batches that a consumer has not read are no longer stored
│   └── BatchMismatch            a batch exists already with other contents
├── MergeError                   the lake
│   ├── MergeConflict *          somebody else committed to the table meanwhile
│   └── IncompatibleSchema       a column change that cannot be applied without loss
└── AckError                     cursors
    ├── CursorMoved              the cursor is not where this task found it
    ├── ConsumerHeld *           another process holds the subscription
    └── BatchNotDurable          nothing shows that the work to be acknowledged was done

``*`` retryable: the same call may succeed later with nothing changed by hand.

Each error carries a message that says what happened, a ``hint`` that says what to do, and a ``context`` of names and
numbers (source, table, file, offset, ...) that also stand in its text. All of them survive pickling, because they travel
between Airflow's and Spark's processes.
"""

from __future__ import annotations

from typing import ClassVar

Context = str | int | float | bool | None


class CdcError(Exception):
    """Base of the tree.

    Args:
        message: what happened, one sentence without a full stop at its end.
        hint: what the reader can do about it; empty when nothing can be said.
        **context: where it happened, for example ``source="shop", file="binlog.000007", offset=4``.
    """

    retryable: ClassVar[bool] = False

    def __init__(self, message: str, *, hint: str = "", **context: Context) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.context = {name: value for name, value in context.items() if value is not None}

    def __str__(self) -> str:
        """One text with the message, the place and the hint."""
        place = ", ".join(f"{name}={value}" for name, value in self.context.items())
        text = f"{self.message} [{place}]" if place else self.message
        return f"{text}. {self.hint}" if self.hint else text

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle by value, keyword arguments included."""
        return _rebuild, (type(self), self.message, self.hint, self.context)


def _rebuild(kind: type[CdcError], message: str, hint: str, context: dict[str, Context]) -> CdcError:
    return kind(message, hint=hint, **context)


class ConfigError(CdcError):
    """A source file, a setting or a command line is wrong."""


class SourceError(CdcError):
    """The MySQL or MariaDB server cannot give what is asked of it."""


class SourceUnavailable(SourceError):
    """The server cannot be reached, or the connection broke."""

    retryable = True


class PositionPurged(SourceError):
    """The server no longer has the binlog file that the cursor needs."""


class PositionNotFound(SourceError):
    """The server has the file, but the position is not in it."""


class UnsupportedServer(SourceError):
    """The server's version, settings or privileges cannot be worked with."""


class ServerSwitched(SourceError):
    """Another server answers than the one the cursor belongs to."""


class DecodeError(CdcError):
    """Bytes of the binlog that are not understood: the window stops before its ack."""


class UnknownEvent(DecodeError):
    """An event type that is not read."""


class UnknownSchema(DecodeError):
    """Rows of a table whose columns are not known."""


class UnsupportedValue(DecodeError):
    """A column type or a value that has no exact place in the lake."""


class TableReplaced(DecodeError):
    """A captured table has rows that the binlog does not hold; it is set aside, and read anew by the next plan."""


class RowsUndone(DecodeError):
    """Rows had been decoded when the statement came that takes them back; the window is read again, knowing of it."""


class ChecksumMismatch(DecodeError):
    """The CRC32 at the end of an event is not that of its bytes."""


class ReselectError(CdcError):
    """The current row could not be read back from the source."""

    retryable = True


class StoreError(CdcError):
    """Object storage does not hold what it should."""


class StoreUnavailable(StoreError):
    """Object storage gives no answer, or one that says to try again."""

    retryable = True


class CorruptBatch(StoreError):
    """A file of a batch is missing, or is not what its manifest says."""


class BatchesGone(StoreError):
    """Batches that a consumer has not read are no longer stored."""


class BatchMismatch(StoreError):
    """The batch exists already with other contents."""


class MergeError(CdcError):
    """A batch cannot be applied to its lake table."""


class MergeConflict(MergeError):
    """Somebody else committed to the table meanwhile."""

    retryable = True


class IncompatibleSchema(MergeError):
    """A change of columns that cannot be applied without loss."""


class AckError(CdcError):
    """A cursor cannot be moved."""


class CursorMoved(AckError):
    """The cursor is not where this task found it."""


class ConsumerHeld(AckError):
    """Another process holds the subscription, until it lets go or its lease runs out."""

    retryable = True


class BatchNotDurable(AckError):
    """Nothing shows that the work to be acknowledged was done."""
