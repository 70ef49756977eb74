"""The errors of this project, in one tree.

CdcError
├── ConfigError                  a source file, a setting or a command line is wrong
│   ├── LakeTableShared          source tables would be one lake table, and no route says so
│   └── MaskedColumnMissing      a table lacks a column that a mask names exactly: it may have another name now
├── SourceError                  the MySQL or MariaDB server
│   ├── SourceUnavailable *      cannot connect, or the connection broke
│   │   └── TunnelUnavailable *  the SSH server or SOCKS proxy on the way does not answer, or its connection broke
│   ├── TunnelRefused            the SSH server or SOCKS proxy refuses, or its host key is not accepted
│   ├── PositionPurged           the server no longer has the binlog the cursor needs
│   ├── PositionNotFound         the server has the file, but not that position in it
│   ├── TableUnreadable          the server refuses to read one table, and answers for the others
│   ├── BinlogIncomplete         transactions are missing from a binlog file of the server
│   ├── UnsupportedServer        a version, setting or privilege that cannot be worked with
│   ├── AnonymousNotSent         transactions without GTIDs that the server does not send in its gtid_mode
│   ├── ReplicatedChangesNotLogged  the binlog lacks changes that the server replicates
│   └── ServerChanged            another server answers than the one the cursor belongs to
│       └── TransactionsMissing  it never had transactions that were read
├── DecodeError                  bytes of the binlog that are not understood
│   ├── UnknownEvent             an event type that is not read yet
│   ├── UnknownSchema            rows of a table whose columns are not known
│   ├── UnsupportedValue         a column type or a value with no exact place in the lake
│   │   ├── DateInKey            a date in a key with no place in the lake's type: the table is read again with it as text
│   │   └── MaskLost             values that the file masks, in a table or column whose name no mask covers
│   ├── TableReplaced            a captured table has rows that are not in the binlog: it is read again
│   ├── RowsRolledBack           rows that were rolled back had been decoded: the window is read again
│   └── ChecksumMismatch         the CRC32 of an event is wrong
├── ReselectError *              the current row could not be read back from the source
├── StoreError                   object storage
│   ├── StoreUnavailable *       no answer, or an answer that says to try again
│   ├── CorruptBatch             a file is missing, or not what its manifest says
│   ├── BatchesMissing           batches that the lake or a consumer has not read are no longer stored
│   └── BatchMismatch            a batch exists already with other contents
├── MergeError                   the lake
│   ├── SparkUnavailable *       the Spark server does not answer, or does not know the job any more
│   ├── MergeConflict *          another writer committed to the table meanwhile
│   ├── ForeignChange            the lake table no longer holds what was merged
│   ├── MachineExhausted         a disk or the memory is full, or Spark has ended: no table can be merged
│   ├── SchemaChangeStopped      a change at the source at which the source file stops the table
│   ├── SchemaChangeAsked        a change at the source that waits for a person
│   ├── ValuesNotLogged          a statement set values that the binlog does not show: the table is read again
│   └── IncompatibleSchema       a column change that cannot be applied without loss
│       └── TableRedefined   another definition than the lake table's: the table is read again
└── AckError                     cursors
    ├── CursorMoved              the cursor was moved since this task loaded it
    ├── ConsumerHeld *           another process holds the subscription
    ├── CursorMissing            a cursor is missing, although the source has begun
    └── BatchNotDurable          the store has no evidence of the work to be acknowledged

``*`` retryable: the same call may succeed later without manual action.

Each error has a message that says what happened, a ``hint`` that says what to do, and a ``context`` of names and
numbers (source, table, file, offset, ...) that are also in its text. All of them survive pickling, because they are passed
between Airflow's and Spark's processes.

Each class has its own ``code``. Documents and JSON identify an error by its code, never by its class.
"""

from __future__ import annotations

import json
import re
import shlex
from typing import ClassVar

Context = str | int | float | bool | None


_OPEN = re.compile(r"\{(source|tables?|lake_table|disks)\}")
"""A placeholder in a hint, filled in later."""


class CdcError(Exception):
    """Base of the tree.

    Args:
        message: what happened, one sentence without a full stop at its end.
        hint: what the reader can do about it; may be empty.
        **context: where it happened, for example ``source="shop", file="binlog.000007", offset=4``.

    Attributes:
        effect: what did not happen, one sentence, such as "Nothing was acknowledged."; empty if unknown. The step that
            was interrupted sets it, and the hint begins with it.
    """

    code: ClassVar[str] = "error"
    """Identifies the error in stored documents and in JSON. It never changes, even if the class is renamed."""

    retryable: ClassVar[bool] = False

    def __init__(self, message: str, *, hint: str = "", **context: Context) -> None:
        super().__init__(message)
        self.message = message
        self.context = {name: value for name, value in context.items() if value is not None}
        self.effect = ""
        self._hint = hint
        self._filled: dict[str, str] = {}

    @property
    def hint(self) -> str:
        """The effect and what to do, with commands to paste.

        ``{source}``, ``{tables}``, ``{lake_table}``, ``{disks}`` and ``{table}``, quoted for a shell, are filled from the context, else shown in capitals.
        """
        known: dict[str, Context] = {**self._filled, **self.context}
        if "table" in known:
            known["table"] = shlex.quote(str(known["table"]))
        filled = _OPEN.sub(lambda found: str(known.get(found[1], found[1].upper())), self._hint)
        return " ".join(part for part in (self.effect, filled) if part)

    def fill(self, **names: str) -> None:
        """Add values for placeholders of the hint that the context does not have."""
        self._filled |= names

    @property
    def what(self) -> str:
        """Message and context as one text."""
        place = ", ".join(f"{name}={value}" for name, value in self.context.items())
        return f"{self.message} [{place}]" if place else self.message

    def __str__(self) -> str:
        """Return message, context and hint as one text."""
        return f"{self.what}. {self.hint}" if self.hint else self.what

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle by value, keyword arguments included."""
        return _rebuild, (type(self), self.message, self.hint, self.context)


def _rebuild(kind: type[CdcError], message: str, hint: str, context: dict[str, Context]) -> CdcError:
    return kind(message, hint=hint, **context)


def dump_error(error: CdcError) -> bytes:
    """Serialize an error for the parent process; a class outside the tree has the code of its base class."""
    document = {"code": error.code, "message": error.message, "hint": error.hint, "context": error.context}
    return json.dumps(document, ensure_ascii=False).encode("utf-8", "surrogatepass")


def load_error(data: bytes) -> CdcError:
    """Return the error that another process serialized.

    An unknown code gives a plain :class:`CdcError`; the code is kept in its context.
    """
    document = json.loads(data.decode("utf-8", "surrogatepass"))
    code, message, hint, context = (document[name] for name in ("code", "message", "hint", "context"))
    kind = error_classes().get(code)
    return _rebuild(kind or CdcError, message, hint, context if kind else {**context, "code": code})


def error_classes() -> dict[str, type[CdcError]]:
    """Return each class of the tree by its code, parents first."""
    kinds = (kind for kind in globals().values() if isinstance(kind, type) and issubclass(kind, CdcError))
    return {kind.code: kind for kind in kinds}


class ConfigError(CdcError):
    """A source file, a setting or a command line is wrong."""

    code = "config_error"


class MaskedColumnMissing(ConfigError):
    """A table lacks a column that a mask names exactly; under another name its values would be stored without the mask."""

    code = "masked_column_missing"


class LakeMissing(ConfigError):
    """The catalog of the lake does not exist yet: nothing was merged."""

    code = "lake_missing"


class LakeRefused(ConfigError):
    """The storage or the catalog of the lake refuses the job, usually for all tables."""

    code = "lake_refused"


class LakeTableShared(ConfigError):
    """Source tables would be one lake table, and no route says so."""

    code = "lake_table_shared"


class SourceError(CdcError):
    """The MySQL or MariaDB server cannot fulfil a request."""

    code = "source_error"


class SourceUnavailable(SourceError):
    """The server cannot be reached, or the connection broke."""

    code = "source_unavailable"
    retryable = True


class TunnelUnavailable(SourceUnavailable):
    """The SSH server or SOCKS proxy on the way to the server cannot be reached, or its connection broke."""

    code = "tunnel_unavailable"


class TunnelRefused(SourceError):
    """The SSH server or SOCKS proxy refuses the log-in or the connection, or its host key is not accepted."""

    code = "tunnel_refused"


class PositionPurged(SourceError):
    """The server no longer has the binlog file that the cursor needs."""

    code = "position_purged"


class PositionNotFound(SourceError):
    """The server has the file, but the position is not in it."""

    code = "position_not_found"


class TableUnreadable(SourceError):
    """The server refuses to read one table; it can be reached, and answers for the others."""

    code = "table_unreadable"


class BinlogIncomplete(SourceError):
    """Transactions are missing from a binlog file of the server."""

    code = "binlog_incomplete"


class UnsupportedServer(SourceError):
    """The server's version, settings or privileges cannot be worked with."""

    code = "unsupported_server"


class AnonymousNotSent(SourceError):
    """The server does not send transactions without GTIDs while its ``gtid_mode`` is ``ON``."""

    code = "anonymous_not_sent"


class ReplicatedChangesNotLogged(SourceError):
    """The binlog of the server lacks changes that it replicates from another one."""

    code = "replicated_changes_not_logged"


class ServerChanged(SourceError):
    """Another server answers than the one the cursor belongs to."""

    code = "server_changed"


class TransactionsMissing(ServerChanged):
    """The new server never had transactions that were read: the context has the server and all of them."""

    code = "transactions_missing"


class DecodeError(CdcError):
    """Bytes of the binlog cannot be decoded: the window stops before its ack."""

    code = "decode_error"


class UnknownEvent(DecodeError):
    """An event type that is not supported."""

    code = "unknown_event"


class UnknownSchema(DecodeError):
    """Rows of a table whose columns are not known."""

    code = "unknown_schema"


class UnsupportedValue(DecodeError):
    """A column type or a value that the lake cannot store exactly."""

    code = "unsupported_value"


class DateInKey(UnsupportedValue):
    """A date in a key that the lake's date type cannot hold; the next plan takes a snapshot with the dates of the key as text."""

    code = "date_in_key"


class MaskLost(UnsupportedValue):
    """A table has values that the source file masks, under a name that no mask covers; it is always quarantined."""

    code = "mask_lost"


class TableReplaced(DecodeError):
    """A captured table has rows that are not in the binlog; it is quarantined, and the next plan takes a new snapshot."""

    code = "table_replaced"


class RowsRolledBack(DecodeError):
    """Rows were decoded before the statement that rolls them back; the window is read again without them."""

    code = "rows_rolled_back"


class ChecksumMismatch(DecodeError):
    """The CRC32 of an event does not match its bytes."""

    code = "checksum_mismatch"


class ReselectError(CdcError):
    """The current row could not be read from the source."""

    code = "reselect_error"
    retryable = True


class StoreError(CdcError):
    """Object storage does not have the expected objects."""

    code = "store_error"


class StoreUnavailable(StoreError):
    """Object storage does not respond, or asks for a retry."""

    code = "store_unavailable"
    retryable = True


class WrongClock(StoreError):
    """The clock of this machine differs from the store's, or is before the last commit of a lake table."""

    code = "wrong_clock"
    retryable = True


class CorruptBatch(StoreError):
    """A file of a batch is missing, or does not match its manifest."""

    code = "corrupt_batch"


class BatchesMissing(StoreError):
    """Batches that the lake or another consumer has not read are no longer stored."""

    code = "batches_missing"


class BatchMismatch(StoreError):
    """The batch already exists with other contents."""

    code = "batch_mismatch"


class MergeError(CdcError):
    """A batch cannot be applied to its lake table."""

    code = "merge_error"


class SparkUnavailable(MergeError):
    """The Spark server does not answer, or was restarted during the job."""

    code = "spark_unavailable"
    retryable = True


class MergeConflict(MergeError):
    """Another writer committed to the table meanwhile."""

    code = "merge_conflict"
    retryable = True


class ForeignChange(MergeError):
    """Another writer changed merged rows of the lake table."""

    code = "foreign_change"


class MachineExhausted(MergeError):
    """A disk or the memory of a machine is full, or Spark has ended, so that no table can be merged."""

    code = "machine_exhausted"


class SchemaChangeStopped(MergeError):
    """A change at the source at which the source file stops the table."""

    code = "schema_change_stopped"


class SchemaChangeAsked(MergeError):
    """A change at the source that waits for a person: the context has its kind, epoch and position."""

    code = "schema_change_asked"


class ValuesNotLogged(MergeError):
    """A statement set values that the binlog does not show: a new snapshot is requested, and replaces the rows."""

    code = "values_not_logged"


class IncompatibleSchema(MergeError):
    """A change of columns that cannot be applied without loss."""

    code = "incompatible_schema"


class TableRedefined(IncompatibleSchema):
    """The rows of a table have another definition than the lake table: a new snapshot is requested, and replaces it."""

    code = "table_redefined"


class AckError(CdcError):
    """A cursor cannot be moved."""

    code = "ack_error"


class CursorMoved(AckError):
    """The cursor was moved since this task loaded it."""

    code = "cursor_moved"


class CursorMissing(AckError):
    """A cursor is missing, although the source has begun."""

    code = "cursor_missing"


class ConsumerHeld(AckError):
    """Another process holds the subscription, until it releases it or its lease runs out."""

    code = "consumer_held"
    retryable = True


class BatchNotDurable(AckError):
    """The store has no evidence that the work to be acknowledged was done."""

    code = "batch_not_durable"
