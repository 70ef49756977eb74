"""One window of the binlog into the files of a batch, without the tables that are set aside."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial

from cdc_lib.config import SourceConfig
from cdc_lib.config.shape import is_shaped, stored_as
from cdc_lib.config.sharing import shares_lake_table
from cdc_lib.decode.aside import AsideTables, tables_at_fault
from cdc_lib.decode.history.window import WindowHistory
from cdc_lib.decode.masking import Shape
from cdc_lib.decode.partial_rows import nothing_untold
from cdc_lib.decode.progress import WindowSummary
from cdc_lib.decode.reader import StreamFacts, WindowReader
from cdc_lib.decode.row_groups import ReadOptions
from cdc_lib.decode.table_statements import Naming
from cdc_lib.decode.undone import UndoneRows
from cdc_lib.errors import DecodeError, PositionNotFound, RowsUndone, TableReplaced
from cdc_lib.histories import Histories
from cdc_lib.model.aside import Fault, SetAside, is_replaced
from cdc_lib.model.batch import Manifest
from cdc_lib.model.position import Position
from cdc_lib.model.window import Window
from cdc_lib.origins import Origin
from cdc_lib.ports import ObjectStore
from cdc_lib.source.facts import ServerFacts
from cdc_lib.store import layout
from cdc_lib.store.parquet import BatchWriter
from cdc_lib.store.raw_archive import RawArchiveWriter
from cdc_lib.store.raw_events import RawEventWriter


@dataclass(frozen=True, slots=True)
class Leaving:
    """The tables that a window does without.

    Args:
        spared: set aside when the window was planned: their rows are not decoded.
        replaced: a new snapshot replaces their rows: they are left out where they are at fault. Nobody can have drained the
            window with them, so that its bytes are the same whenever it was told.
    """

    spared: Collection[str] = ()
    replaced: Collection[str] = ()


@dataclass(frozen=True, slots=True)
class WindowBatches:
    """Reads windows of one source.

    Args:
        config: of the source.
        store: where batches go.
        shape: which columns are stored, and behind which masks.
        origin: where windows are read from.
    """

    config: SourceConfig
    store: ObjectStore
    shape: Shape
    origin: Origin

    def write(
        self,
        window: Window,
        histories: Histories,
        undrained: Sequence[Window],
        leaving: Leaving,
        file_times: Mapping[str, datetime],
    ) -> Manifest:
        """Write a window's files and return the manifest to be; once more without the tables at fault, where those are set aside.

        Which tables that are follows from the window's bytes alone, and all of their rows in the window are left out: rows
        are decoded in portions, so that how many came before the fault was met would be chance.
        """
        aside: dict[str, Fault | None] = dict.fromkeys(leaving.spared)
        undone = UndoneRows()
        while True:
            try:
                return self._read_and_write(window, histories, undrained, aside, file_times, undone)
            except RowsUndone:
                continue  # it is known now which: each time more, and the window has an end
            except DecodeError as error:
                found = at_fault(self.config, error, window.start, leaving.replaced)
                if found.keys() <= aside.keys():
                    raise
                aside = {**found, **aside}

    def _read_and_write(
        self,
        window: Window,
        histories: Histories,
        undrained: Sequence[Window],
        aside: Mapping[str, Fault | None],
        file_times: Mapping[str, datetime],
        undone: UndoneRows,
    ) -> Manifest:
        key = layout.manifest_key(window)
        history = histories.of_window(window, undrained)
        level = self.config.drain.compression_level
        unread = {table for table, fault in aside.items() if fault is not None and is_replaced(fault)}
        with (
            batch_writer(self.config, self.store, key, layout.part_path) as writer,
            batch_writer(self.config, self.store, key, layout.prepared_path) as prepared,
            RawEventWriter(self.store, key, level) as raw,
            self._archiving(key, level) as archive,
        ):
            left_out = self._left_out(aside.keys() - unread, raw)
            take = archive.take if archive is not None else None
            summary = self._read(window, histories, (writer, prepared), history, left_out, unread, take, undone)
        _check_files(window, summary.file_times, file_times)
        histories.keep(history)
        told = tuple(
            SetAside(table, fault, raw.kept.get(table))
            for table, fault in sorted(aside.items())
            if fault is not None or table in raw.kept
        )
        manifest = replace(_window_manifest(window, histories.facts, summary, writer, prepared), aside=told)
        if archive is None:
            return manifest
        return replace(manifest, raw=archive.archive(self.origin.facts(histories.facts, histories.charsets)))

    @contextmanager
    def _archiving(self, key: str, level: int) -> Iterator[RawArchiveWriter | None]:
        """Give what keeps the window's raw events, where the source file wants that."""
        if not self.config.raw_archive:
            yield None
            return
        with RawArchiveWriter(self.store, key, level) as archive:
            yield archive

    def _left_out(self, aside: Collection[str], raw: RawEventWriter) -> AsideTables | None:
        """Return what keeps the events of tables that are left out; None where no table ever is."""
        if not aside and self.config.on_error != "quarantine":
            return None
        names = [_name(table) for table in aside]
        # Events hold every column as it is: what must not be stored keeps those of its whole table from it.
        return AsideTables(names, [name for name in names if is_shaped(self.config, *name)], raw)

    def _read(
        self,
        window: Window,
        histories: Histories,
        writers: tuple[BatchWriter, BatchWriter],
        history: WindowHistory,
        aside: AsideTables | None,
        unread: Collection[str],
        raw: Callable[[memoryview], None] | None,
        undone: UndoneRows,
    ) -> WindowSummary:
        drain, facts, origin = self.config.drain, histories.facts, self.origin
        untold = origin.untold if facts.identity.flavor == "mariadb" else nothing_untold
        stream_facts = StreamFacts(facts.identity.flavor, facts.checksum, histories.charsets, untold)
        naming = Naming(
            fold=facts.folds_names,
            swaps=self.config.tables.online_schema_change,
            kept=origin.kept,
            shaped=partial(is_shaped, self.config),
            stored=partial(stored_as, self.config),
            shares=partial(shares_lake_table, self.config),
            dates_as_text=self.config.zero_dates == "string",
        )
        options = ReadOptions(group_rows=drain.row_group_rows, values=self.config.values, naming=naming)
        with origin.stream(window, facts.identity) as stream:

            def wanted(database: str, table: str) -> bool:
                # Of what is read anew by itself not even the raw events are kept.
                return self.config.tables.captures(database, table) and f"{database}.{table}" not in unread

            reader = WindowReader(
                window, stream, stream_facts, wanted, *writers, options, history, self.shape, aside, raw, undone
            )  # fmt: skip
            return reader.run()


def batch_writer(config: SourceConfig, store: ObjectStore, key: str, path_of: Callable[[str, int], str]) -> BatchWriter:
    """Return a writer of files beside the manifest with this key."""
    return BatchWriter(store, lambda path: layout.beside(key, path), path_of, config.drain.compression_level)


def at_fault(
    config: SourceConfig, error: DecodeError, at: Position, replaced: Collection[str] = ()
) -> dict[str, Fault]:
    """Return the tables that are to be left out for an error; none when it stops everything.

    Args:
        config: of the source.
        error: that a window or a snapshot ended in.
        at: where, as far as the error does not say.
        replaced: tables that may be left out whatever the source file says.
    """
    tables = tables_at_fault(error, config.tables.captures)
    by_itself = isinstance(error, TableReplaced)
    if config.on_error != "quarantine" and not by_itself and not set(tables) <= set(replaced):
        return {}
    file, offset = error.context.get("file"), error.context.get("offset")
    if isinstance(file, str) and isinstance(offset, int):
        at = Position(file, offset)
    mend = error.hint.removeprefix("Nothing was acknowledged.").strip()
    fault = Fault(at, type(error).__name__, error.message, mend)
    return dict.fromkeys(tables, fault)


def _name(table: str) -> tuple[str, str]:
    database, _, name = table.partition(".")
    return database, name


def _check_files(window: Window, read: Mapping[str, datetime], known: Mapping[str, datetime]) -> None:
    """Refuse what was read from files of another binlog than the one that was planned."""
    for file, made in read.items():
        if made != known.get(file, made):
            raise PositionNotFound(
                f"{file} was made at {made:%Y-%m-%d %H:%M:%S} UTC, and the window was planned for another of that name",
                hint="The server's binlog was reset or restored meanwhile. Nothing was acknowledged: plan again.",
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
        decided=summary.decided,
        prepared_files=prepared.files,
        gtid_set=summary.gtid_set,
        statements=summary.statements,
    )
