"""Which tables a reading of a window takes, which of them it leaves out, and for which errors more are left out."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field

from cdc_lib.binlog.rows.cascades import CascadeWatch
from cdc_lib.binlog.rows.masking import Shape
from cdc_lib.errors import CdcError, ChecksumMismatch, ConfigError, DecodeError, TableUnreadable
from cdc_lib.model.table_name import EVERY_TABLE, TableName
from cdc_lib.ports import Wanted

Spare = Callable[[DecodeError | TableUnreadable], Collection[str]]
"""Returns the tables, ``database.table``, that are left out for an error; none where it stops the reading."""


def spare_none(_error: DecodeError | TableUnreadable) -> Collection[str]:
    """Leave out no table: every error stops the reading."""
    return ()


@dataclass(frozen=True, slots=True)
class CapturedTables:
    """The tables of a reading.

    Args:
        wanted: whether a table is captured; with ``*`` for the table, whether one of the database may be.
        shape: which columns are decoded, and their masks; all of them as they are without it.
        excluded: captured tables whose rows are left out.
        spare: returns the tables that are left out for an error, which are no longer wanted from then on. All tables at fault
            are found in one reading, whose row groups count for nothing then.
        quarantines: whether an error may be recorded as a table's fault: its message has no values then.
        cascades: collects tables that the server changed without writing it.
    """

    wanted: Wanted
    shape: Shape = field(default_factory=Shape)
    excluded: Collection[TableName] = ()
    spare: Spare = spare_none
    quarantines: bool = False
    cascades: CascadeWatch = field(default_factory=CascadeWatch)

    def excludes(self, database: str, table: str) -> bool:
        """Whether the rows of a captured table are left out."""
        return bool(self.excluded) and TableName(database, table) in self.excluded

    def takes(self, database: str, table: str) -> bool:
        """Whether rows of a table are decoded."""
        return self.wanted(database, table) and not self.excludes(database, table)


def tables_at_fault(error: CdcError, wanted: Wanted) -> tuple[TableName, ...]:
    """Return the captured tables that an error is about, when it is about nothing else.

    Args:
        error: that a window or a snapshot ended in.
        wanted: whether a table is captured.
    """
    named = error.context.get("table")
    about = isinstance(error, DecodeError | TableUnreadable) and not isinstance(error, ChecksumMismatch)
    if not about or not isinstance(named, str):
        return ()
    try:
        tables = tuple(TableName.listed(named))
    except ConfigError:
        return ()  # the error is about something else than tables
    return tables if tables and all(table.table != EVERY_TABLE and wanted(*table.pair) for table in tables) else ()
