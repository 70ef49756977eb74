"""The lake tables of a source, or of a catalog, for reads by key."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

import pyarrow as pa
from pyiceberg.catalog import Catalog
from pyiceberg.exceptions import NoSuchTableError
from pyiceberg.table import Table

from cdc_lib.config import SourceConfig
from cdc_lib.errors import ConfigError
from cdc_lib.lake.catalog import load_table, open_catalog, translate_errors
from cdc_lib.lake.routing import lake_merges
from cdc_lib.model.closing import ClosedAtEnd
from cdc_lib.model.merge_plan import Cut
from cdc_lib.model.position import Position
from cdc_lib.model.table_name import TableName
from cdc_lib.model.verification import TableVerification
from cdc_lib.ports import ObjectStore
from cdc_lib.read.archive.table import TableArchive, open_archive
from cdc_lib.read.cache import DEFAULT_BYTES, Cache
from cdc_lib.read.cuts import LATEST, find_cut
from cdc_lib.read.fresh.pin import with_waiting
from cdc_lib.read.fresh.waiting import Waiting, waiting_batches
from cdc_lib.read.pin import pin
from cdc_lib.read.snapshot import PinnedSnapshot
from cdc_lib.read.table import TableReader
from cdc_lib.source import Source
from cdc_lib.store.verification import verifications


class Lake(ClosedAtEnd):
    """Opens lake tables; they share what was read of files. Threads may share a lake.

    Use :meth:`open` or :meth:`of_catalog`. Close it, or use it in a ``with`` statement.

    Args:
        catalog: an open catalog.
        load: returns the table of a name.
        lake_tables: returns the full names of the lake tables of a name, as a cut has them.
        cache_bytes: how much of what was read is kept in memory.
    """

    def __init__(
        self,
        catalog: Catalog,
        load: Callable[[str], Table],
        lake_tables: Callable[[str], frozenset[str]],
        cache_bytes: int = DEFAULT_BYTES,
    ) -> None:
        self._catalog = catalog
        self._load = load
        self._lake_tables = lake_tables
        self._cache = Cache(cache_bytes)
        self._batches: tuple[SourceConfig, ObjectStore] | None = None

    @classmethod
    def open(
        cls,
        config: SourceConfig,
        *,
        store: ObjectStore | None = None,
        cache_bytes: int = DEFAULT_BYTES,
        catalog: Catalog | None = None,
    ) -> Self:
        """Open the lake of a source; its tables have their names at the source, ``database.table``.

        Args:
            config: the source.
            store: the source's store, for ``fresh``, archived versions, cuts and what is verified; see :func:`cdc_lib.store.objects.open.open_store`.
            cache_bytes: how much of what was read is kept in memory.
            catalog: the catalog of the source's lake, if it is open already.

        Raises:
            ConfigError: there is no lake yet, or its catalog cannot be read without Spark.
            StoreError: the catalog cannot be opened.
        """
        with translate_errors():
            opened = open_catalog(config) if catalog is None else catalog

        def lake_tables(table: str) -> frozenset[str]:
            return frozenset(str(merge.name) for merge in lake_merges(config, [table])[:1])

        lake = cls(opened, lambda table: load_table(config, opened, table), lake_tables, cache_bytes)
        lake._batches = (config, store) if store is not None else None
        return lake

    @classmethod
    def of_catalog(cls, catalog: Catalog, *, cache_bytes: int = DEFAULT_BYTES) -> Self:
        """Read the tables of a PyIceberg catalog by their names in it, ``namespace.table``.

        Args:
            catalog: an open catalog.
            cache_bytes: how much of what was read is kept in memory.
        """

        def load(table: str) -> Table:
            try:
                with translate_errors(table):
                    return catalog.load_table(TableName.parse(table).pair)
            except NoSuchTableError as error:
                raise ConfigError(f"the catalog has no table {table}", hint="", table=table) from error

        return cls(catalog, load, lambda table: frozenset([f"{catalog.name}.{table}"]), cache_bytes)

    def table(self, name: str, *, cut: Cut | None = None, fresh: bool = False) -> TableReader:
        """Open a table at its current snapshot, or as of a cut.

        Args:
            name: as said in :meth:`open` or :meth:`of_catalog`.
            cut: a cut of the source; see :mod:`cdc_lib.read.cuts`.
            fresh: whether the reader also sees the batches that are drained and not merged yet, as the next merge would.

        Raises:
            ConfigError: there is no such table, or the cut does not have it; ``fresh`` with a cut or without a store.
            StoreError: the table cannot be read, or the cut's snapshot was expired.
            MergeError: ``fresh``: only a merge can apply the waiting changes.
        """
        if fresh:
            config, store = self._fresh_parts(cut)
            return TableReader(lambda: self._fresh(name, config, store, waiting_batches(Source.over(config, store))))
        snapshot_id = None if cut is None else self._snapshot_in(cut, name)
        return TableReader(lambda: pin(self._load(name), name, self._cache, snapshot_id), self._archive_of(name, cut))

    def _archive_of(self, name: str, cut: Cut | None) -> Callable[[PinnedSnapshot], TableArchive] | None:
        if self._batches is None:
            return None
        config, store = self._batches
        return lambda snapshot: open_archive(snapshot, self._load(name), config, store, cut)

    def _fresh_parts(self, cut: Cut | None) -> tuple[SourceConfig, ObjectStore]:
        if cut is not None or self._batches is None:
            raise ConfigError(
                "a cut is a state of the past" if cut is not None else "the lake was opened without the source's store",
                hint="Leave out the cut, or fresh."
                if cut is not None
                else "Lake.open(config, store=open_store(config.store))",
            )
        return self._batches

    def _fresh(self, name: str, config: SourceConfig, store: ObjectStore, waiting: Waiting) -> PinnedSnapshot:
        # What is merged after the waiting batches were listed is in the table, and its marker says so.
        table = self._load(name)
        return with_waiting(pin(table, name, self._cache), table, config, store, waiting)

    def _snapshot_in(self, cut: Cut, name: str) -> int:
        names = self._lake_tables(name)
        for table in cut.tables:
            if table.lake_table in names:
                return table.lake_snapshot
        raise ConfigError(
            f"the cut {cut.merge_id} has no lake table of {name}",
            hint="The table came later, or another source's merge makes it. See cdc lake cuts.",
            table=name,
        )

    def cut(self, which: str = LATEST) -> LakeCut:
        """Return the lake as of a cut that is found in the source's store.

        Args:
            which: ``latest``, a time, a GTID, a position or an id; see :func:`cdc_lib.read.cuts.find_cut`.

        Raises:
            ConfigError: the lake was opened without its store, or there is no such cut.
        """
        config, store = self._stored("a cut is found")
        return LakeCut(self, find_cut(store, config.source, which))

    def verified(self, cut: Cut) -> dict[TableName, tuple[TableVerification, ...]]:
        """Return what comparisons with the source say of the tables of a cut; see :attr:`LakeCut.verified`."""
        _, store = self._stored("comparisons are")
        return verifications(store, cut)[0]

    def _stored(self, what: str) -> tuple[SourceConfig, ObjectStore]:
        if self._batches is None:
            raise ConfigError(
                f"{what} in the source's store, and the lake was opened without it",
                hint="Lake.open(config, store=open_store(config.store))",
            )
        return self._batches

    def at(self, cut: Cut) -> LakeCut:
        """Return the lake as of a cut: all its tables as of one transaction.

        Args:
            cut: of the source; see :func:`cdc_lib.read.cuts.find_cut`.
        """
        return LakeCut(self, cut)

    def close(self) -> None:
        """Close the connections to the catalog; open readers can read on, and cannot refresh."""
        self._catalog.close()


@dataclass(frozen=True, slots=True)
class LakeCut:
    """The lake as of one transaction.

    Args:
        lake: the lake.
        cut: names the snapshot of each table, the position, and the GTIDs of the transactions before it.
    """

    lake: Lake
    cut: Cut

    @property
    def tables(self) -> tuple[str, ...]:
        """The source tables that the cut has, as ``database.table``."""
        return tuple(dict.fromkeys(one.table for one in self.cut.tables))

    @property
    def position(self) -> Position:
        """The position of the source's binlog that all tables are as of, in the epoch ``cut.epoch``."""
        return self.cut.position

    @property
    def gtid_set(self) -> str:
        """The GTIDs of the transactions before the position; empty if the source has none."""
        return self.cut.gtid_set

    @property
    def verified(self) -> dict[TableName, tuple[TableVerification, ...]]:
        """What comparisons with the source say of each source table, once for each of its lake tables.

        Raises:
            ConfigError: the lake was opened without its store.
            StoreError: a document cannot be read.
        """
        return self.lake.verified(self.cut)

    def table(self, name: str) -> TableReader:
        """Open a table as of the cut; see :meth:`Lake.table`."""
        return self.lake.table(name, cut=self.cut)

    def sql(self, statement: str) -> pa.RecordBatchReader:
        """Run a query over the tables as of the cut; see :func:`cdc_lib.read.sql.query`. It needs DuckDB.

        Raises:
            ConfigError: it is not one query, names another table, or DuckDB refuses it.
            StoreError: a table cannot be read.
        """
        from cdc_lib.read.sql import query  # noqa: PLC0415 - gets and scans do not wait for DuckDB

        return query(statement, self.tables, self.table)
