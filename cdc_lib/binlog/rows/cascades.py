"""Detects changes whose foreign key actions changed rows of other tables unseen by the binlog.

A delete in a parent, or an update of the columns that a foreign key refers to, may have changed its children, their children,
and so on. All such tables of a window are collected; they follow from its bytes and the keys alone.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping

import numpy as np
import numpy.typing as npt

from cdc_lib.binlog.framing import event_types, packets
from cdc_lib.binlog.framing.receiver import Bytes
from cdc_lib.binlog.framing.scan_progress import ErrorContext, ScanProgress
from cdc_lib.binlog.rows import locate
from cdc_lib.binlog.rows.table_map import TableLayout
from cdc_lib.errors import TableReplaced, UnknownEvent
from cdc_lib.model.cascades import Cascades, OnCascade, TableName
from cdc_lib.model.lexer import DEFAULT_QUOTING, Quoting, uncommented

Records = npt.NDArray[np.int64]

_DELETES = (event_types.DELETE_ROWS_V1, event_types.DELETE_ROWS, 168, 171)
_UPDATES = (event_types.UPDATE_ROWS_V1, event_types.UPDATE_ROWS, event_types.PARTIAL_UPDATE_ROWS, 167, 170)
_DROPS_KEY = re.compile(r"\bDROP\s+(FOREIGN\s+KEY|CONSTRAINT)\b", re.IGNORECASE)
_NAMES_KEY = re.compile("FOREIGN|CONSTRAINT", re.IGNORECASE)
"""In every statement that drops a key: the text of others is not cut into tokens."""
_CELLS = 1 << 16
"""Initial number of rows that are checked together; grows for larger events."""


class CascadeWatch:
    """Collects the tables that may have been changed.

    Args:
        cascades: the foreign keys.
        rule: what to do with the tables.
        can_be_read: whether a new snapshot can replace a table.
    """

    def __init__(
        self,
        cascades: Cascades | None = None,
        rule: OnCascade = "snapshot",
        can_be_read: Callable[[str, str], bool] = lambda _database, _table: True,
    ) -> None:
        """Start without changes."""
        self._cascades = cascades or Cascades()
        self._rule = rule
        self._can_be_read = can_be_read
        self._parents = self._cascades.parents() if rule != "ignore" else frozenset()
        self._ids: dict[int, TableName] = {}
        self._found: dict[
            TableName, tuple[str, ErrorContext]
        ] = {}  # by table, the first change that may have reached it

    def holds(self, table: TableName) -> bool:
        """Whether changes of a table may change others."""
        return table in self._parents

    def introduce(self, table_id: int, table: TableName) -> None:
        """Learn the number under which events of a parent come that is not decoded."""
        self._ids[table_id] = table

    def forget(self) -> None:
        """Begin a file: table ids are given again."""
        self._ids.clear()

    def event(self, kind: int, body: bytes, progress: ScanProgress) -> bool:
        """Look at a rows event; False where it is not one of a parent that is not decoded."""
        table = self._ids.get(int.from_bytes(body[:6], "little"))
        if table is None:
            return False
        if kind in _DELETES:
            self._note(table, "delete", progress.error_context())
        elif kind in _UPDATES:
            self._note(table, "update", progress.error_context())  # its columns are not decoded
        return True

    def records(self, data: Bytes, found: Records, layouts: Mapping[int, TableLayout], progress: ScanProgress) -> None:
        """Check row events before they are decoded.

        Args:
            data: bytes that they lie in.
            found: of frame.scan.
            layouts: by slot, those of parents.
            progress: of the walk.
        """
        for slot, layout in layouts.items():
            mine = np.flatnonzero(found[:, packets.SLOT] == slot)
            if not mine.size:
                continue
            table = (layout.schema.database, layout.schema.table)
            kinds = found[mine, packets.TYPE]
            deletes = mine[np.isin(kinds, _DELETES)]
            if deletes.size:
                self._note(table, "delete", progress.error_context(found[deletes[0]]))
            updates = mine[np.isin(kinds, _UPDATES)]
            if updates.size and (at := self._first_changed(data, found, updates, table, layout)) is not None:
                self._note(table, "update", progress.error_context(found[at]))

    def _first_changed(
        self, data: Bytes, found: Records, chosen: Records, table: TableName, layout: TableLayout
    ) -> int | None:
        """Return the first update that gives other values to columns that a key refers to."""
        names = self._cascades.columns_of(table)
        keys = np.array([i for i, c in enumerate(layout.schema.columns) if c.name.lower() in names], np.int64)
        if not names:
            return None
        if keys.size < len(names):  # not all key columns are named: assume a change
            return int(chosen[0])
        first, room = 0, _CELLS // max(1, layout.prefix.shape[0])
        while first < chosen.size:
            pos, length = locate.scratch_cells(layout.prefix.shape[0], room)
            op, event, image = locate.scratch_marks(room)
            status, n, next_row, _ = locate.locate(
                data, found, chosen, first, layout.prefix, layout.width, keys, room, 1 << 40, pos, length, op, event, image
            )  # fmt: skip
            moved = np.flatnonzero(op[:n] == locate.DELETE)
            if moved.size:
                return int(event[moved[0]])
            if status == locate.PARTIAL_IMAGE:
                if _may_change(data, found[chosen[next_row]], keys):
                    return int(chosen[next_row])
                next_row += 1
            elif status == locate.SPACE_FULL and next_row == first:
                room *= 2
            elif status in (locate.BAD_LENGTH, locate.BAD_COLUMNS):
                return None  # the decoder says what is wrong
            first = int(next_row)
        return None

    def statement(
        self, text: str, tables: Collection[TableName], context: ErrorContext, quoting: Quoting = DEFAULT_QUOTING
    ) -> None:
        """Check a statement: after the drop of a foreign key, its earlier actions are unknown."""
        if self._cascades.logged or self._rule == "ignore" or not _NAMES_KEY.search(text):
            return
        if not _DROPS_KEY.search(uncommented(text, quoting)):
            return
        for table in self._cascades.reached(tables):
            self._found.setdefault(table, (f"a foreign key of {'.'.join(next(iter(tables)))} was dropped", context))

    def _note(self, parent: TableName, how: str, context: ErrorContext) -> None:
        word = "a delete" if how == "delete" else "another key"
        for table in self._cascades.below(parent, "delete" if how == "delete" else "update"):
            self._found.setdefault(table, (f"{word} in {'.'.join(parent)}", context))

    def check(self, counts: Callable[[str, str], bool]) -> None:
        """Raise an error at the window's end if tables were changed.

        Args:
            counts: whether rows of a table are taken in this window.

        Raises:
            TableReplaced: these tables are read again.
            UnknownEvent: they cannot be read again, or the source file wants to stop.
        """
        found = {table: change for table, change in sorted(self._found.items()) if counts(*table)}
        if not found:
            return
        why, context = min(found.values(), key=lambda change: (str(change[1]["file"]), int(str(change[1]["offset"]))))
        message = f"the server changed rows by foreign keys and did not write them to its binlog: {why}"
        fixed = [table for table in found if not self._can_be_read(*table)]
        if self._rule == "stop" or fixed:
            raise UnknownEvent(
                message,
                hint="Take a new snapshot of these tables (cdc snapshot), and set cascades: snapshot or ignore."
                if not fixed
                else "No snapshot can replace the rows of these tables in the lake. Set cascades: ignore if that may be.",
                **context,
                table=", ".join(map(".".join, fixed or found)),
            )
        raise TableReplaced(
            message, hint="The tables are read again automatically.", **context, table=", ".join(map(".".join, found))
        )


def _may_change(data: Bytes, record: Records, keys: npt.NDArray[np.int64]) -> bool:
    """Whether the after image of an event that lacks columns has one of some columns."""
    count, at = locate.step_into(data, int(record[packets.BODY]), int(record[packets.END]), int(record[packets.TYPE]))
    if count < 0:
        return True
    bitmap = int(at) + (int(count) + 7) // 8
    return any(bool(data[bitmap + (int(c) >> 3)] >> (int(c) & 7) & 1) for c in keys)
