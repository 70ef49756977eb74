"""Column renames that a lake table has applied; rows from before a rename that are merged later follow them too."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from cdc_lib.errors import MergeError
from cdc_lib.model.ddl_effect import Names
from cdc_lib.model.position import Point
from cdc_lib.model.table_name import TableName

RENAMES_PROPERTY = "cdc.renames"
"""Table property: the renames that were applied to its columns. It changes in the same commit as the columns."""


@dataclass(frozen=True, slots=True)
class ColumnRename:
    """A statement that renamed columns of a source table, in one epoch.

    Args:
        table: ``database.table``.
        at: where its event starts.
        names: columns and their new names, all at once.
        gtid: GTID of the statement; empty without one.
        stamp: when a session ran it, in seconds since 1970; replicas keep this value.
        displaced: lake columns that had one of the new names, and their names since: the source had dropped them.
    """

    table: TableName
    at: Point
    names: Names
    gtid: str = ""
    stamp: int = 0
    displaced: Names = ()

    def is_again(self, other: ColumnRename) -> bool:
        """Whether both are the same statement, read in the same epoch or in two epochs."""
        if self.table != other.table:
            return False
        if self.at.epoch == other.at.epoch:
            return self.at == other.at
        if self.gtid and other.gtid:
            return self.gtid == other.gtid
        return (self.stamp, self.names) == (other.stamp, other.names)

    @property
    def old_names(self) -> set[str]:
        """The names before it, in lower case."""
        return {old.lower() for old, _ in self.names}

    @property
    def new_names(self) -> set[str]:
        """The names after it, in lower case."""
        return {new.lower() for _, new in self.names}

    def new_name(self, column: str) -> str:
        """Return the name of a column after the rename."""
        pairs = (*self.names, *self.displaced)
        return next((new for old, new in pairs if old.lower() == column.lower()), column)


def to_json(renames: Iterable[ColumnRename]) -> str:
    """Return the text of the property."""
    plain = [
        {"table": r.table, "at": r.at, "names": r.names, "gtid": r.gtid, "stamp": r.stamp, "displaced": r.displaced}
        for r in renames
    ]
    return json.dumps({"format_version": 1, "renames": plain}, separators=(",", ":"))


def from_json(text: str | None, table: str) -> tuple[ColumnRename, ...]:
    """Read it back; a lake table without the property has none.

    Raises:
        MergeError: it is not what :func:`to_json` wrote.
    """
    if text is None:
        return ()
    try:
        plain: dict[str, Any] = json.loads(text)
        version = plain["format_version"]
        found = tuple(_renamed(one) for one in plain["renames"])
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise _unreadable(table, repr(error)) from error
    if version != 1:
        raise _unreadable(table, f"its format_version is {version}")
    return found


def _renamed(plain: Mapping[str, Any]) -> ColumnRename:
    names, displaced = (tuple((str(old), str(new)) for old, new in plain[key]) for key in ("names", "displaced"))
    return ColumnRename(
        TableName.parse(plain["table"]), Point(*plain["at"]), names, str(plain["gtid"]), int(plain["stamp"]), displaced
    )


def _unreadable(table: str, fault: str) -> MergeError:
    return MergeError(
        f"the property {RENAMES_PROPERTY} of the lake table cannot be read: {fault}",
        hint="Another version of this library wrote it; merge with that version or a newer one.",
        table=table,
    )
