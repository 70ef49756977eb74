"""The tables of the TABLE_MAP events so far: table ids, their layouts, and whether they are captured."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator

import numpy as np

from cdc_lib.binlog.framing import packets
from cdc_lib.binlog.framing.scan_progress import ScanProgress
from cdc_lib.binlog.rows.captured_tables import CapturedTables, as_fault
from cdc_lib.binlog.rows.columns import Conversion, TableColumns
from cdc_lib.binlog.rows.partial_columns import PartialColumns
from cdc_lib.binlog.rows.partial_rows import PartialRows
from cdc_lib.binlog.rows.table_map import TableLayout, parse, refuse_unreadable, table_name
from cdc_lib.binlog.stream_facts import StreamFacts
from cdc_lib.errors import ConfigError, DecodeError, UnsupportedValue
from cdc_lib.model.projection import Projection
from cdc_lib.model.schema_version import Definition
from cdc_lib.model.table_name import EVERY_TABLE
from cdc_lib.model.value_policy import ValuePolicy

_DUMMY_TABLE = 0xFFFFFF
_STATEMENT_ENDS = 1


def closes_statement(body: bytes) -> bool:
    """Whether a rows event of an unknown table only closes a statement: its table id, which a table may have too, and flag."""
    return int.from_bytes(body[:6], "little") == _DUMMY_TABLE and bool(body[6] & _STATEMENT_ENDS)


class KnownTables:
    """Table ids of the current binlog file, and the columns of every layout seen in the window.

    Args:
        progress: of the reading.
        facts: of the server.
        captured: the tables to decode, and their columns.
        values: policy for values that the lake cannot represent.
    """

    def __init__(
        self, progress: ScanProgress, facts: StreamFacts, captured: CapturedTables, values: ValuePolicy
    ) -> None:
        """Know no table yet."""
        self.columns: list[TableColumns] = []
        self.renames: list[int] = []  # by slot: how many statements renamed columns of the table before
        self.prepared: dict[int, TableColumns] = {}
        self._progress = progress
        self._facts = facts
        self.captured = captured
        self._conversion = Conversion(captured.shape.masker, progress.window.epoch, values)
        self._partial: dict[tuple[int, bool], PartialRows] = {}
        self.cascades = captured.cascades
        self.skipped: set[str] = set()  # tables at fault: the reading continues to find all of them
        self.parents: dict[int, TableLayout] = {}  # by slot, of tables whose changes may change others
        self._by_layout: dict[tuple[object, ...], int] = {}
        self._last: dict[tuple[str, str], int] = {}
        self._databases: set[str] = set()  # of all tables so far
        self._slots_by_name: defaultdict[str, list[int]] = defaultdict(list)
        self._renames: Counter[str] = Counter()  # statements on a table that renamed columns
        self.forget()

    def forget(self) -> None:
        """Begin a file: table ids are given again; the layouts stay."""
        self.ids = np.full(1024, -1, np.int64)
        self.slots = np.zeros(1024, np.int64)
        self._known = 0
        self.cascades.forget()

    def take(self, body: bytes) -> None:
        """Learn the table that a TABLE_MAP introduces.

        Args:
            body: the event after its header and without its checksum.

        Raises:
            DecodeError: the table is captured and cannot be read.
            ConfigError: the source file's columns or masks cannot be followed on it.
        """
        table_id = int.from_bytes(body[:6], "little")
        try:
            name = table_name(body)
            if not self.captured.takes(*name):
                if self.cascades.holds(name):
                    self.cascades.introduce(table_id, name)
                else:
                    self._learn(table_id, packets.UNWANTED)
                return
            history = self._facts.history
            columns_of = history.definition if history is not None else None
            layout = parse(body, self._facts.charsets, self._progress.flavor, columns_of, self._progress.release)
            renames = self._renames[layout.schema.name]
            sizes = layout.prefix.tobytes(), layout.width.tobytes(), layout.added_defaults
            key = (layout.schema, *sizes, layout.null_by_default, renames)
            if key not in self._by_layout:
                self.columns.append(self._columns(layout))
                self.renames.append(renames)
                self._by_layout[key] = len(self.columns) - 1
                self._slots_by_name[layout.schema.name].append(len(self.columns) - 1)
                self._databases.add(layout.schema.database)
                if self.cascades.holds(name):
                    self.parents[self._by_layout[key]] = layout
        except (DecodeError, ConfigError) as error:
            error.context = {**self._progress.error_context(), **error.context}
            fault = as_fault(error, quarantines=self.captured.quarantines) if isinstance(error, ConfigError) else None
            if fault is None:
                raise
            raise fault from error
        self._last[name] = self._by_layout[key]
        self._learn(table_id, self._by_layout[key])

    def _columns(self, layout: TableLayout) -> TableColumns:
        """Return what collects the rows of a layout, with the columns and types that the lake keeps."""
        projection = self.captured.shape.of(self._conversion.values.applied(layout.schema))
        self._refuse_unreadable(projection)
        return TableColumns(layout, projection, self._conversion)

    def _refuse_unreadable(self, projection: Projection) -> None:
        for column in projection.source.columns:
            refuse_unreadable(projection.source.name, column)
        old = [column.name for column in projection.source.columns if column.type.form == "old"]
        if old and self._progress.flavor == "mariadb" and self._conversion.values.legacy_temporals == "error":
            raise UnsupportedValue(
                f"column {old[0]} is kept in the format before MySQL 5.6, and MariaDB's binlog does not contain its fraction",
                hint="Set mysql56_temporal_format=ON at the source and ALTER TABLE ... FORCE; or set legacy_temporals: no_fraction "
                "in the source file if no such column (COLUMN_TYPE ends in /* mariadb-5.3 */) has a fraction.",
                table=projection.source.name,
            )

    def skip(self, names: Collection[str]) -> None:
        """Decode no more rows of tables; ``captures`` excludes them from now on as well."""
        new = set(names) - self.skipped
        self.skipped |= new
        removed = [slot for name in new for slot in self._slots_by_name.get(name, ())]
        self.slots[np.isin(self.slots, removed) & (self.ids != -1)] = packets.UNWANTED

    def last(self, database: str, table: str) -> Definition | None:
        """Return a table as its last rows in the window have it, or the history where there were none; None if neither knows it."""
        history = self._facts.history
        known = history.known(database, table) if history is not None else None
        slot = self._last.get((database, table))
        if slot is None:
            return known
        return Definition(self.columns[slot].layout.schema, known.charset if known is not None else "")

    def renamed(self, table: str) -> None:
        """Take note that columns of a table have other names from here on."""
        self._renames[table] += 1

    def partial(self, slot: int, *, prepared: bool) -> PartialRows:
        """Return what decodes the events of a layout whose images need not have all columns; those of XA apart."""
        if (slot, prepared) not in self._partial:
            like = self.columns[slot]
            omittable = self._facts.omittable(like.layout.schema.database, like.layout.schema.table)
            columns = PartialColumns(like.layout, like.projection, self._conversion, prepared=prepared)
            self._partial[slot, prepared] = PartialRows(columns, omittable)
        return self._partial[slot, prepared]

    def partials(self) -> Iterator[tuple[int, bool]]:
        """Yield the slots that such events were seen of, and whether in XA transactions."""
        yield from sorted(self._partial)

    def prepared_columns(self, slot: int) -> TableColumns:
        """Return the columns that collect a layout's rows of XA transactions."""
        if slot not in self.prepared:
            like = self.columns[slot]
            self.prepared[slot] = TableColumns(like.layout, like.projection, self._conversion, prepared=True)
        return self.prepared[slot]

    def touches(self, database: str, table: str) -> bool:
        """Whether a table that a statement names is captured; EVERY_TABLE for all of its database."""
        if table != EVERY_TABLE:
            return self.captured.captures(database, table)
        return database in self._databases or self.captured.captures(database, EVERY_TABLE)

    def _learn(self, table_id: int, slot: int) -> None:
        """Enter a table id; the hash table grows before it is half full."""
        if 2 * (self._known + 1) > self.ids.shape[0]:
            old = [(int(i), int(s)) for i, s in zip(self.ids, self.slots, strict=True) if i != -1]
            self.ids = np.full(2 * self.ids.shape[0], -1, np.int64)
            self.slots = np.zeros(self.ids.shape[0], np.int64)
            self._known = 0
            for known, known_slot in old:
                self._learn(known, known_slot)
        mask = self.ids.shape[0] - 1
        index = (table_id * 0x9E3779B1) & mask
        while self.ids[index] != -1:
            index = (index + 1) & mask
        self.ids[index] = table_id
        self.slots[index] = slot
        self._known += 1
