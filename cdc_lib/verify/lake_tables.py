"""The lake tables of a source, each at one snapshot, as the reading client opens them."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import cast

from pyiceberg.catalog import Catalog
from pyiceberg.exceptions import NoSuchTableError

from cdc_lib.errors import StoreError
from cdc_lib.lake.catalog import translate_errors
from cdc_lib.model.lake_table import COMPUTED_PROPERTY, LakeColumn, LakeName, LakeTable, computed_from
from cdc_lib.model.lake_types import spark_name
from cdc_lib.model.table_mode import Mode
from cdc_lib.model.table_name import TableName
from cdc_lib.read.cache import Cache
from cdc_lib.read.fresh.markers import marker_of
from cdc_lib.read.pin import pin
from cdc_lib.read.snapshot import PinnedSnapshot
from cdc_lib.verify.comparability import Key, Subject
from cdc_lib.verify.judgement import RowState
from cdc_lib.verify.lake import states_of
from cdc_lib.verify.lake_reader import LakeReader

CACHE_BYTES = 64 << 20
"""Memory for what is read of files."""


@dataclass(frozen=True, slots=True)
class OpenedTable:
    """A lake table at one snapshot.

    Args:
        state: its columns, its key, and the marker of the source table, as of the snapshot.
        snapshot: reads it.
    """

    state: LakeTable
    snapshot: PinnedSnapshot

    def rows(self, subject: Subject, keys: Collection[Key]) -> dict[str, RowState]:
        """Return the rows of some keys that exist in the lake, by name.

        Raises:
            StoreError: a file cannot be read.
            ConfigError: the lake table cannot have one of the keys.
        """
        batches = LakeReader(self.snapshot, subject, order_keys=True).of_keys(list(keys)) if keys else ()
        return states_of(subject, (row for batch in batches for row in batch.states()))


@dataclass(frozen=True, slots=True)
class LakeTables:
    """Opens the lake tables of a source."""

    catalog: Catalog
    source: str
    cache: Cache = field(default_factory=lambda: Cache(CACHE_BYTES))

    def open(self, lake: LakeName, table: TableName, snapshot_id: int | None, *, routed: bool) -> OpenedTable:
        """Open a lake table.

        Args:
            lake: its name.
            table: ``database.table`` at the source, whose marker is read.
            snapshot_id: the snapshot; None for the current one.
            routed: whether a route sends the table there.

        Raises:
            StoreError: it does not exist, the snapshot was expired, or it needs Spark.
            MergeError: the marker cannot be parsed.
        """
        found = self.find(lake, table, snapshot_id, routed=routed)
        if found is None:
            raise StoreError(f"the catalog has no table {lake}", hint="The next merge makes it.", table=table)
        return found

    def find(
        self, lake: LakeName, table: TableName, snapshot_id: int | None = None, *, routed: bool
    ) -> OpenedTable | None:
        """Open a lake table as :meth:`open` does; None if it does not exist."""
        try:
            with translate_errors(table):
                loaded = self.catalog.load_table((*lake.namespace, lake.name))
        except NoSuchTableError:
            return None
        snapshot = pin(loaded, table, self.cache, snapshot_id)
        marker = marker_of(loaded.metadata, self.source, table, routed=routed, snapshot_id=snapshot_id)
        columns = tuple(LakeColumn(name, spark_name(str(of))) for name, of in snapshot.columns.types.items())
        key = tuple(column.name for column in snapshot.key.columns) if snapshot.has_key else ()
        mode = cast("Mode", snapshot.mode)
        computed = computed_from(loaded.metadata.properties.get(COMPUTED_PROPERTY))
        state = LakeTable(columns, key, mode, marker, snapshot.id, None, {table: marker}, computed=computed)
        return OpenedTable(state, snapshot)
