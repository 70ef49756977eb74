"""Writes the files of a window's batch, without the quarantined tables."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial

import pyarrow as pa

from cdc_lib.binlog.ddl.effects import Kept, Naming
from cdc_lib.binlog.ddl.history.window import WindowHistory
from cdc_lib.binlog.ddl.masked_rows import MaskedRows
from cdc_lib.binlog.framing.scan_progress import WindowSummary
from cdc_lib.binlog.reader import WindowReader
from cdc_lib.binlog.rows.captured_tables import CapturedTables, fault_of, tables_at_fault
from cdc_lib.binlog.rows.cascades import CascadeWatch
from cdc_lib.binlog.rows.masking import Shape
from cdc_lib.binlog.rows.rolled_back import RolledBackRows
from cdc_lib.binlog.rows.row_groups import ReadOptions, WindowSinks
from cdc_lib.binlog.stream_facts import StreamFacts, nothing_omittable
from cdc_lib.config import SourceConfig
from cdc_lib.config.shape import is_shaped, stored_as
from cdc_lib.config.sharing import shares_lake_table
from cdc_lib.drain.erased import ErasedRows, ErasuresOf
from cdc_lib.drain.exclusions import Exclusions, masked_rows
from cdc_lib.drain.origin import Origin
from cdc_lib.errors import (
    DateInKey,
    DecodeError,
    MaskLost,
    PositionNotFound,
    RowsRolledBack,
    TableReplaced,
    TableUnreadable,
    UnsupportedValue,
)
from cdc_lib.model.gtid import GtidSet
from cdc_lib.model.manifest import Manifest
from cdc_lib.model.pace import Pace
from cdc_lib.model.position import Position
from cdc_lib.model.quarantine import Fault, QuarantinedTable, is_replaced
from cdc_lib.model.schema import TableSchema
from cdc_lib.model.table_name import TableName
from cdc_lib.model.window import Window
from cdc_lib.mysql.server_facts import ServerFacts
from cdc_lib.plan.windows import bytes_between
from cdc_lib.ports import ObjectStore
from cdc_lib.schema_history.versions import Histories
from cdc_lib.store import layout
from cdc_lib.store.parquet import BatchWriter
from cdc_lib.store.raw_archive import RawArchiveWriter

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class WindowBatches:
    """Writes the batches of one source's windows.

    Args:
        config: of the source.
        store: where batches go.
        shape: which columns are stored, and with which masks.
        origin: where the windows' bytes come from.
        erasures: of a table: changes of these rows are left out.
    """

    config: SourceConfig
    store: ObjectStore
    shape: Shape
    origin: Origin
    erasures: ErasuresOf = lambda _: ()

    def write(
        self,
        window: Window,
        histories: Histories,
        undrained: Sequence[Window],
        leaving: Exclusions,
        file_times: Mapping[str, datetime],
        before: GtidSet | None = None,
    ) -> Manifest:
        """Write a window's files and return its manifest, not yet stored; repeat without the tables at fault if they are quarantined.

        The tables at fault follow from the window's bytes alone, and all of their rows in the window are left out: rows are
        decoded in portions, so the number of rows before the fault would be random.
        """
        excluded: dict[TableName, Fault | None] = dict.fromkeys(leaving.skipped)
        rolled_back, archives = RolledBackRows(), self.config.raw_archive
        while True:
            masked = masked_rows(self.config, leaving, excluded)
            reading = _WindowReading(self.config, window, leaving.replaced, excluded, rolled_back, masked, before)
            try:
                manifest = self._read_and_write(reading, histories, undrained, file_times, archives=archives)
                return replace(manifest, versions=tuple(sorted(key for key, own in histories.known.items() if own)))
            except RowsRolledBack:
                continue  # the next reading skips the rows known to be rolled back: more each time, so that this loop ends
            except _TablesAtFault:
                excluded = {**reading.faults, **excluded}
            except _RowsErased:
                archives = False

    def _read_and_write(
        self,
        reading: _WindowReading,
        histories: Histories,
        undrained: Sequence[Window],
        file_times: Mapping[str, datetime],
        *,
        archives: bool,
    ) -> Manifest:
        window = reading.window
        key = layout.manifest_key(window)
        history = histories.of_window(window, undrained, self.origin.kept)
        with (
            batch_writer(self.config, self.store, key, layout.part_path) as writer,
            batch_writer(self.config, self.store, key, layout.prepared_path) as prepared,
            self._archiving(key, archives=archives) as archive,
        ):
            erased = ErasedRows(self.erasures, window.epoch, histories.facts.identity)
            sinks = reading.sinks(writer, prepared, archive, self._pace(window, histories.facts), erased)
            summary = self._read(reading, histories, history, sinks)
            if reading.faults:
                raise _TablesAtFault  # discards this reading
            if erased.left_out and archives:
                raise _RowsErased  # the raw events have them
        _check_files(window, summary.file_times, file_times)
        self.origin.check_complete(histories.facts, window, summary)
        histories.keep(history, window)
        quarantined = tuple(
            QuarantinedTable(table, fault) for table, fault in sorted(reading.excluded.items()) if fault
        )
        manifest = replace(
            _window_manifest(window, histories.facts, summary, writer, prepared),
            quarantined=quarantined,
            comments=self.origin.comments(history.mentioned()),
        )
        if archive is None:
            return manifest
        return replace(manifest, raw=archive.archive(self.origin.facts(histories.facts, histories.charsets)))

    @contextmanager
    def _archiving(self, key: str, *, archives: bool) -> Iterator[RawArchiveWriter | None]:
        """Give the writer of the window's raw events if they are kept, else None."""
        if not archives:
            yield None
            return
        with RawArchiveWriter(self.store, key, self.config.drain.compression_level) as archive:
            yield archive

    def _pace(self, window: Window, facts: ServerFacts) -> Callable[[int], None]:
        """Return a callback that counts the decoded bytes and logs the progress."""
        pace = Pace(
            f"window {window.id}", "byte", bytes_between(window.start, facts.files, window.stop), time.monotonic()
        )

        def received(count: int) -> None:
            if line := pace.tick(count, time.monotonic()):
                log.info("%s", line)

        return received

    def _read(
        self, reading: _WindowReading, histories: Histories, history: WindowHistory, sinks: WindowSinks
    ) -> WindowSummary:
        config, facts, origin = self.config, histories.facts, self.origin
        is_mariadb = facts.identity.flavor == "mariadb"
        omittable = partial(origin.omittable, facts.version) if is_mariadb else nothing_omittable
        naming = Naming(
            fold=facts.folds_names,
            swaps=config.tables.online_schema_change,
            kept=origin.kept,
            shaped=partial(is_shaped, config),
            stored=partial(stored_as, config),
            shares=partial(shares_lake_table, config),
            date_texts=config.values.has_date_texts,
            made_of=origin.made_of,
            masked=reading.masked,
        )
        captured = CapturedTables(
            reading.wants,
            self.shape,
            excluded=reading.left_out,
            skip=partial(reading.skip, origin.kept),
            quarantines=config.on_error == "quarantine" or bool(reading.left_out),
            cascades=CascadeWatch(origin.cascades, config.cascades, lambda *table: origin.kept(*table) != "fixed"),
        )
        options = ReadOptions(group_rows=config.drain.row_group_rows, values=config.values, naming=naming)
        stream_facts = StreamFacts(facts.identity.flavor, facts.checksum, histories.charsets, omittable, history)
        with origin.stream(reading.window, facts.identity) as stream:
            return WindowReader(
                reading.window, stream, stream_facts, captured, sinks, options, reading.rolled_back, reading.before
            ).run()


class _RowsErased(Exception):
    """A reading left out erased rows; the window is read again, and its raw events are not kept."""


class _TablesAtFault(Exception):
    """A reading found tables at fault; the window is read again without them."""


@dataclass(frozen=True, slots=True)
class _WindowReading:
    """One reading of a window: what earlier readings found, and the tables at fault that it finds.

    Args:
        config: of the source.
        window: the window to read.
        replaced: tables that may be left out regardless of ``on_error``.
        excluded: tables that are left out, with the faults that earlier readings found in them; None for a table that was
            quarantined before.
        rolled_back: rolled-back rows that earlier readings found.
        masked: follows whose rows tables have.
        before: GTIDs of all transactions before the window; None if unknown.
        faults: the first fault of each table in this reading.
    """

    config: SourceConfig
    window: Window
    replaced: Collection[TableName]
    excluded: Mapping[TableName, Fault | None]
    rolled_back: RolledBackRows
    masked: MaskedRows
    before: GtidSet | None = None
    faults: dict[TableName, Fault] = field(default_factory=dict)

    @property
    def left_out(self) -> frozenset[TableName]:
        """The tables whose statements count and whose rows do not."""
        return frozenset(table for table in self.excluded if not self._is_read_again(table))

    def _is_read_again(self, table: TableName) -> bool:
        """Whether a new snapshot of the table starts automatically: neither its rows nor its statements count."""
        fault = self.excluded.get(table)
        return fault is not None and is_replaced(fault)

    def sinks(
        self,
        rows: BatchWriter,
        prepared: BatchWriter,
        archive: RawArchiveWriter | None,
        received: Callable[[int], None],
        erased: ErasedRows,
    ) -> WindowSinks:
        """Return what receives rows and raw bytes, up to the first fault: a reading with faults is discarded."""

        def take(data: memoryview) -> None:
            if archive is not None and not self.faults:
                archive.take(data)

        return WindowSinks(
            _UntilFault(rows, self.faults, erased),
            _UntilFault(prepared, self.faults, erased),
            take if archive is not None else None,
            received,
        )

    def wants(self, database: str, table: str) -> bool:
        """Whether a table is captured and without a fault so far."""
        name = TableName(database, table)
        captured = self.config.tables.captures(database, table)
        return captured and not self._is_read_again(name) and name not in self.faults

    def skip(self, kept: Callable[[str, str], Kept], error: DecodeError | TableUnreadable) -> Collection[TableName]:
        """Return the tables that are left out from here on because of an error; empty if it stops the source.

        Args:
            kept: how the lake keeps a table.
            error: the error.

        Raises:
            UnsupportedValue: it stops the source.
        """
        error = _without_cure(self.config, error, kept)
        found = at_fault(self.config, error, self.window.start, self.replaced)
        if not found and isinstance(error, UnsupportedValue):
            raise error
        new = {table: fault for table, fault in found.items() if table not in self.excluded}
        for table, fault in new.items():
            if table not in self.faults or isinstance(error, MaskLost):  # no snapshot may read a table that lost a mask
                self.faults[table] = fault
            if isinstance(error, MaskLost):
                self.masked.lost(table.pair, [one.pair for one in fault.rows_of])
        return new.keys()


@dataclass(frozen=True, slots=True)
class _UntilFault:
    """Writes row groups as long as a reading has no fault.

    Args:
        writer: of the files.
        faults: of the reading.
        erased: rows that are left out.
    """

    writer: BatchWriter
    faults: Mapping[TableName, Fault]
    erased: ErasedRows

    def write(self, key: str, schema: TableSchema, rows: pa.Table, renames: int = 0) -> None:
        """Write one row group; see :meth:`BatchWriter.write`."""
        if not self.faults and (rows := self.erased.without(schema, rows)).num_rows:
            self.writer.write(key, schema, rows, renames)


def batch_writer(
    config: SourceConfig, store: ObjectStore, key: str, path_of: Callable[[str, int], str], bounded: Sequence[str] = ()
) -> BatchWriter:
    """Return a writer of files beside the manifest with this key, with statistics of the bounded columns."""
    return BatchWriter(store, lambda path: layout.beside(key, path), path_of, config.drain.compression_level, bounded)


def at_fault(
    config: SourceConfig, error: DecodeError | TableUnreadable, at: Position, replaced: Collection[TableName] = ()
) -> dict[TableName, Fault]:
    """Return the tables that are left out because of an error; empty if it stops the source.

    Args:
        config: of the source.
        error: that a window or a snapshot ended in.
        at: position of the fault, unless the error has one.
        replaced: tables that may be left out regardless of ``on_error``.
    """
    tables = tables_at_fault(error, config.tables.captures)
    automatic = isinstance(error, DateInKey | TableReplaced | MaskLost)
    if config.on_error != "quarantine" and not automatic and not set(tables) <= set(replaced):
        return {}
    error.fill(source=config.source)
    file, offset = error.context.get("file"), error.context.get("offset")
    if isinstance(file, str) and isinstance(offset, int):
        at = Position(file, offset)
    return dict.fromkeys(tables, fault_of(error, at))


def _without_cure(
    config: SourceConfig, error: DecodeError | TableUnreadable, kept: Callable[[str, str], Kept]
) -> DecodeError | TableUnreadable:
    """Return an error of a date in a key as a plain one if no snapshot can bring the table with other types."""
    tables = tables_at_fault(error, config.tables.captures) if isinstance(error, DateInKey) else ()
    if all(kept(*one.pair) == "rows" for one in tables):
        return error
    return UnsupportedValue(
        error.message,
        hint="No snapshot can replace the table's rows. Set zero_dates: string, or exclude the table in the source file.",
        **error.context,
    )


def _check_files(window: Window, read: Mapping[str, datetime], known: Mapping[str, datetime]) -> None:
    """Refuse files of another binlog than the planned one."""
    for file, made in read.items():
        if made != known.get(file, made):
            raise PositionNotFound(
                f"{file} was made at {made:%Y-%m-%d %H:%M:%S} UTC, and the window was planned for another of that name",
                hint="The server's binlog was reset or restored meanwhile. Plan again.",
                source=window.source,
                window=window.id,
            )


def _window_manifest(
    window: Window, facts: ServerFacts, summary: WindowSummary, writer: BatchWriter, prepared: BatchWriter
) -> Manifest:
    return Manifest(
        source=window.source,
        epoch=window.epoch,
        identity=facts.identity,
        window=window,
        chunk=None,
        gtid_first=summary.gtid_first,
        gtid_last=summary.gtid_last,
        first_time=summary.first_time,
        last_time=summary.last_time,
        transactions=summary.transactions,
        events=summary.events,
        files=writer.files,
        schemas={**prepared.schemas, **writer.schemas},
        ddl=tuple(summary.ddl),
        prepared=summary.prepared,
        xa_decisions=summary.xa_decisions,
        prepared_files=prepared.files,
        gtid_set=summary.gtid_set,
        statements=tuple(summary.statements),
        last_commit=summary.last_commit,
        last_transaction=summary.last_transaction,
    )
