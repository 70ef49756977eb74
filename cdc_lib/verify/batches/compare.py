"""Compares the changes of a batch with the events of the second decoder, change by change, in one pass over both.

Both sides have file, offset and row of each change, so that a difference has an exact place, and one missing change does not
make all later ones differ.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from cdc_lib.model.batch_check import BatchDifference, DifferentCell, DifferentChange, NotComparable
from cdc_lib.model.decoded_event import NULL, UNPLACED, DecodedEvent, DecodedImage
from cdc_lib.model.manifest import GTID, OP
from cdc_lib.model.schema import TableSchema
from cdc_lib.model.table_name import TableName
from cdc_lib.verify.batches.cells import Compare, Unsure, compare_of, decoded_text, stored_text
from cdc_lib.verify.batches.places import KnownOfWindow, Place, StoredChange

MAX_DIFFERENCES = 200
"""Most changes of one window that a report lists."""

MAX_TEXT = 300
"""Most characters of a cell in a report."""

_ROLLED_BACK = "a part of its transaction was rolled back, and mysql-replication gives all rows"
_NAMELESS = "the binlog does not name the columns, and the batch does not have all of them"
_XA = "rows of a prepared XA transaction get their place when it is committed"


@dataclass(slots=True)
class UnreadEvents:
    """Which events were not read, and why. An event without a place means all of its transaction."""

    _begins: list[tuple[int, int]] = field(default_factory=list)
    _events: dict[tuple[int, int], str] = field(default_factory=dict)
    _transactions: dict[tuple[int, int], str] = field(default_factory=dict)

    @property
    def began(self) -> tuple[int, int]:
        """Where the current transaction began."""
        return self._begins[-1] if self._begins else (0, 0)

    def begin(self, event: DecodedEvent) -> None:
        """Take the begin of a transaction."""
        self._begins.append((event.file, event.offset))

    def add(self, event: DecodedEvent) -> None:
        """Take an event that was not read."""
        if event.offset == UNPLACED:
            self._transactions[self.began] = event.why
        else:
            self._events[event.file, event.offset] = event.why

    def why(self, place: Place) -> str:
        """Return why a change was not read; empty if it was."""
        index = bisect_right(self._begins, place[:2]) - 1
        began = self._begins[index] if index >= 0 else (0, 0)
        return self._events.get(place[:2]) or self._transactions.get(began, "")


@dataclass(slots=True)
class WindowComparison:
    """One pass over a window.

    Args:
        stored: changes of the batch by table, in their order.
        expected: what is known about the window.
    """

    stored: Mapping[TableName, Iterator[StoredChange]]
    expected: KnownOfWindow
    equal: int = 0
    differing: int = 0
    differences: list[DifferentChange] = field(default_factory=list)
    failed: str = ""
    _left_out: Counter[tuple[TableName, str, str]] = field(default_factory=Counter)
    _unread: UnreadEvents = field(default_factory=UnreadEvents)
    _next: dict[TableName, StoredChange | None] = field(default_factory=dict)
    _compares: dict[tuple[int, bool], tuple[Compare | str, ...]] = field(default_factory=dict)
    _missing: list[tuple[TableName, Place]] = field(default_factory=list)
    _rolled_back: bool = False
    _gtid: str = ""

    def take(self, event: DecodedEvent) -> None:
        """Compare the changes of the next event."""
        match event.kind:
            case "begin":
                self._end_transaction()
                self._gtid = event.gtid
                self._unread.begin(event)
            case "rollback":
                self._rolled_back = True
            case "failed":
                self.failed = event.why
            case "unreadable":
                self._unread.add(event)
            case "rows":
                self._rows(event)

    def finish(self) -> None:
        """Count what the batch has after the last event."""
        self._end_transaction()
        for table in self.stored:
            while (change := self._peek(table)) is not None:
                self._only_stored(table, change)

    @property
    def uncomparable(self) -> int:
        """Number of changes of which nothing was compared."""
        return sum(count for (_, column, _), count in self._left_out.items() if not column)

    @property
    def not_comparable(self) -> tuple[NotComparable, ...]:
        """What was left out, by table and column."""
        return tuple(NotComparable(*what, count) for what, count in sorted(self._left_out.items()))

    def leave_out(self, table: TableName, why: str, changes: int) -> None:
        """Count changes of a table of which nothing is compared."""
        self._left_out[table, "", why] += changes

    def _rows(self, event: DecodedEvent) -> None:
        table = event.table
        if table is None or not self.expected.captured(table):
            return
        # MariaDB leaves the position out of events inside of a transaction: the transaction's own counts.
        at = self._unread.began if event.offset == UNPLACED else (event.file, event.offset)
        why = self.expected.left_out.get(table) or (_XA if self.expected.in_prepared(*at) else "")
        if why:
            self.leave_out(table, why, len(event.rows))
            return
        if event.offset == UNPLACED:
            event = replace(event, offset=self._offset_by_order(table, event))
        number = 0
        for before, after in event.rows:
            if event.unnumbered:
                number = self._number_by_order(table, event, is_update=before is not None and after is not None)
            for image_number, op, image in self._changes(table, event, number, before, after):
                place = Place(event.file, event.offset, image_number)
                self._compare(table, place, op, image, named=event.named)
            number += (before is not None) + (after is not None)

    def _offset_by_order(self, table: TableName, event: DecodedEvent) -> int:
        """Return the offset that the batch has for the next change of a table in the transaction."""
        began = self._unread.began
        self._skip_to(table, Place(*began, 0))
        stored = self._peek(table)
        return stored.place.offset if stored is not None and stored.place.file == event.file else began[1]

    def _number_by_order(self, table: TableName, event: DecodedEvent, *, is_update: bool) -> int:
        """Return the number of the image before the batch's next change of a table in an event; 0 if it has none."""
        self._skip_to(table, Place(event.file, event.offset, 0))
        stored = self._peek(table)
        if stored is None or stored.place[:2] != (event.file, event.offset):
            return 0
        return stored.place.row - (is_update and stored.op == "u")

    def _changes(
        self,
        table: TableName,
        event: DecodedEvent,
        number: int,
        before: DecodedImage | None,
        after: DecodedImage | None,
    ) -> list[tuple[int, str, DecodedImage]]:
        """Return what a batch has for one row: an update of the key, or of a table without one, is two changes.

        Images are numbered, also those before an update that are not stored.
        """
        if before is None or after is None:
            return (
                [(number, "c", after)] if after is not None else [(number, "d", before)] if before is not None else []
            )
        self._skip_to(table, Place(event.file, event.offset, number))
        stored = self._peek(table)
        key = () if stored is None else stored.schema.primary_key
        names = _names(before, stored.schema, named=event.named) if stored is not None else {}
        if key and all(before.values.get(names.get(k, k)) == after.values.get(names.get(k, k)) for k in key):
            return [(number + 1, "u", after)]
        return [(number, "d", before), (number + 1, "u", after)]

    def _compare(self, table: TableName, place: Place, op: str, image: DecodedImage, *, named: bool) -> None:
        self._skip_to(table, place)
        stored = self._peek(table)
        if stored is None or stored.place != place:
            self._missing.append((table, place))
            return
        self._next.pop(table)
        if not named and len(image.values) != len(stored.schema.columns):
            self.leave_out(table, _NAMELESS, 1)
            return
        if stored.op != op:
            self._differs("operation", table, place, stored.part, (DifferentCell(OP, op, stored.op),))
            return
        cells = self._different_cells(table, stored, image, named=named)
        if self._gtid and stored.gtid != self._gtid:
            cells.append(DifferentCell(GTID, self._gtid, stored.gtid))
        if cells:
            self._differs("values", table, place, stored.part, tuple(cells))
        else:
            self.equal += 1

    def _different_cells(
        self, table: TableName, stored: StoredChange, image: DecodedImage, *, named: bool
    ) -> list[DifferentCell]:
        names = _names(image, stored.schema, named=named)
        found = []
        compares = self._compares_of(table, stored.schema, named=named)
        for column, compare, cell in zip(stored.schema.columns, compares, stored.cells, strict=True):
            name = names.get(column.name, column.name)
            if isinstance(compare, str):
                self._left_out[table, column.name, compare] += 1
                continue
            if name not in image.values:
                self._left_out[table, column.name, "the event does not have the column"] += 1
                continue
            decoded = image.values[name]
            try:
                same = compare(cell, decoded, image.nulls.get(name, NULL))
            except Unsure as unsure:
                self._left_out[table, column.name, str(unsure)] += 1
                continue
            if not same:
                texts = decoded_text(decoded), stored_text(column.type, cell)
                found.append(DifferentCell(column.name, *(text and text[:MAX_TEXT] for text in texts)))
        return found

    def _compares_of(self, table: TableName, schema: TableSchema, *, named: bool) -> tuple[Compare | str, ...]:
        key = id(schema), named  # the manifest keeps its schemas alive
        known = self._compares.get(key)
        if known is None:
            known = tuple(
                "it is masked in the batch"
                if self.expected.masked(table, column.name)
                else compare_of(column, named=named)
                for column in schema.columns
            )
            self._compares[key] = known
        return known

    def _skip_to(self, table: TableName, place: Place) -> None:
        """Count the batch's changes before a place: the second decoder has read beyond it."""
        while (stored := self._peek(table)) is not None and stored.place < place:
            self._only_stored(table, stored)

    def _only_stored(self, table: TableName, stored: StoredChange) -> None:
        self._next.pop(table)
        why = self.expected.left_out.get(table) or self._unread.why(stored.place)
        if why:
            self.leave_out(table, why, 1)
        else:
            self._differs("extra", table, stored.place, stored.part)

    def _peek(self, table: TableName) -> StoredChange | None:
        """Return the next change that the batch has of a table, without taking it."""
        if table not in self._next:
            self._next[table] = next(self.stored.get(table, iter(())), None)
        return self._next[table]

    def _end_transaction(self) -> None:
        for table, place in self._missing:
            if self._rolled_back:
                self.leave_out(table, _ROLLED_BACK, 1)
            else:
                self._differs("missing", table, place)
        self._missing.clear()
        self._rolled_back = False

    def _differs(
        self,
        kind: BatchDifference,
        table: TableName,
        place: Place,
        part: str = "",
        cells: tuple[DifferentCell, ...] = (),
    ) -> None:
        self.differing += 1
        if len(self.differences) < MAX_DIFFERENCES:
            self.differences.append(DifferentChange(table, kind, *place, part, cells))


def _names(image: DecodedImage, schema: TableSchema, *, named: bool) -> Mapping[str, str]:
    """Return the decoder's names of columns, where the binlog has none: it numbers them."""
    if named or len(image.values) != len(schema.columns):
        return {}
    return {column.name: name for column, name in zip(schema.columns, image.values, strict=True)}
