"""What the last merge could not do, so that it can be asked for without its log."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class StoppedTable:
    """A lake table that could not be merged, for a reason that trying again does not mend.

    Args:
        tables: ``database.table`` of the source tables whose rows go there.
        lake_table: its full name.
        error: name of the error.
        what: what is wrong.
        mend: what to do.
    """

    tables: tuple[str, ...]
    lake_table: str
    error: str
    what: str
    mend: str


@dataclass(frozen=True, slots=True)
class Stopped:
    """The tables that stopped in the last merge of a source.

    Args:
        source: name of the source.
        merge_id: of the merge.
        at: when it ended (UTC).
        tables: those that stopped.
    """

    source: str
    merge_id: str
    at: datetime
    tables: tuple[StoppedTable, ...]
