"""Which tables a reading of a window captures, which it leaves out, and which it leaves out after an error."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field

from cdc_lib.binlog.rows.cascades import CascadeWatch
from cdc_lib.binlog.rows.masking import Shape
from cdc_lib.errors import (
    CdcError,
    ChecksumMismatch,
    ConfigError,
    DecodeError,
    MaskedColumnMissing,
    MaskLost,
    TableUnreadable,
    UnsupportedValue,
)
from cdc_lib.model.position import Position
from cdc_lib.model.quarantine import Fault
from cdc_lib.model.table_name import EVERY_TABLE, TableName
from cdc_lib.ports import CaptureFilter

SkipTables = Callable[[DecodeError | TableUnreadable], Collection[str]]
"""Returns the tables, ``database.table``, that are left out because of an error; empty if it stops the reading."""


def skip_none(_error: DecodeError | TableUnreadable) -> Collection[str]:
    """Return no table: every error stops the reading."""
    return ()


@dataclass(frozen=True, slots=True)
class CapturedTables:
    """The tables of a reading.

    Args:
        captures: whether a table is captured; with ``*`` for the table, whether any of the database may be.
        shape: which columns are decoded, and their masks; by default all columns unmasked.
        excluded: captured tables whose rows are left out.
        skip: returns the tables that are left out because of an error; ``captures`` excludes them from then on. One reading
            finds all tables at fault, and its row groups are then discarded.
        quarantines: whether an error may be recorded as a table's fault: then its message contains no values.
        cascades: collects tables that foreign key actions changed unseen by the binlog.
    """

    captures: CaptureFilter
    shape: Shape = field(default_factory=Shape)
    excluded: Collection[TableName] = ()
    skip: SkipTables = skip_none
    quarantines: bool = False
    cascades: CascadeWatch = field(default_factory=CascadeWatch)

    def excludes(self, database: str, table: str) -> bool:
        """Whether the rows of a captured table are left out."""
        return bool(self.excluded) and TableName(database, table) in self.excluded

    def takes(self, database: str, table: str) -> bool:
        """Whether rows of a table are decoded."""
        return self.captures(database, table) and not self.excludes(database, table)


def as_fault(error: ConfigError, *, quarantines: bool) -> UnsupportedValue | None:
    """Return the error of a table on which the source file cannot be followed as a fault of this table alone.

    Args:
        error: the error.
        quarantines: whether any such error quarantines its table; a lost mask always does.

    Returns:
        None if it stops the source.
    """
    if "table" not in error.context:
        return None
    if isinstance(error, MaskedColumnMissing):
        return MaskLost(error.message, hint=error.hint, **error.context, rows_of=error.context["table"])
    return UnsupportedValue(error.message, hint=error.hint, **error.context) if quarantines else None


def tables_at_fault(error: CdcError, captures: CaptureFilter) -> tuple[TableName, ...]:
    """Return the captured tables at fault for an error; empty if the error is not only about tables.

    Args:
        error: that a window or a snapshot ended in.
        captures: whether a table is captured.
    """
    named = error.context.get("table")
    about = isinstance(error, DecodeError | TableUnreadable) and not isinstance(error, ChecksumMismatch)
    if not about or not isinstance(named, str):
        return ()
    try:
        tables = tuple(TableName.listed(named))
    except ConfigError:
        return ()  # the error is about something else than tables
    return tables if tables and all(table.table != EVERY_TABLE and captures(*table.pair) for table in tables) else ()


def fault_of(error: DecodeError | TableUnreadable, at: Position) -> Fault:
    """Return an error as it is recorded."""
    rows_of = error.context.get("rows_of")
    origins = tuple(TableName.listed(rows_of)) if isinstance(rows_of, str) else ()
    return Fault(at, error.code, error.message, error.hint, origins)
