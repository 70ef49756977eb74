"""A lake table, read by key at one pinned snapshot."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from typing import Any

import pyarrow as pa

from cdc_lib.apply.key_rows import RowKey
from cdc_lib.errors import ConfigError, CursorMoved
from cdc_lib.model.lake_table import ORDER
from cdc_lib.model.position import Point
from cdc_lib.model.table_mode import ONE_VERSION_MODES
from cdc_lib.read.archive.decide import refuse_without_zone
from cdc_lib.read.archive.table import TableArchive
from cdc_lib.read.archive.versions import ArchivedVersions
from cdc_lib.read.columns import in_order
from cdc_lib.read.kept_versions import CHANGED, TIMES, kept_versions, within
from cdc_lib.read.key_range import ScanRange
from cdc_lib.read.keys import NoSuchKey
from cdc_lib.read.lookup import Many, find
from cdc_lib.read.scan import Scan
from cdc_lib.read.snapshot import PinnedSnapshot

FOUND = "_found"
"""The column of :meth:`TableReader.multi_get` that says whether the key has a row."""


class TableReader:
    """Reads a lake table by key. All reads see one snapshot until :meth:`refresh`; threads may share a reader.

    A key is the value of the key column, a tuple in the order of the key, or a dict by the columns' names. Text and bytes
    compare byte by byte; the source's collation does not matter.

    Args:
        pin: returns the snapshot to read: the current one, or always the same.
        archive: returns what stored batches know of a snapshot's table; None if the lake was opened without its store.
    """

    def __init__(
        self, pin: Callable[[], PinnedSnapshot], archive: Callable[[PinnedSnapshot], TableArchive] | None = None
    ) -> None:
        self._pin = pin
        self._open_archive = archive
        self._snapshot = pin()
        self._archive: TableArchive | None = None

    @property
    def snapshot_id(self) -> int | None:
        """The pinned snapshot; None if the table has none yet."""
        return self._snapshot.id

    @property
    def pinned(self) -> PinnedSnapshot:
        """The pinned snapshot, as the parts of this package read it."""
        return self._snapshot

    @property
    def until(self) -> Point | None:
        """With ``fresh``: the position after all changes that the reader sees, as epoch, file number and offset."""
        return self._snapshot.until

    @property
    def mode(self) -> str:
        """How the table keeps rows."""
        return self._snapshot.mode

    @property
    def has_archived_versions(self) -> bool:
        """Whether :meth:`archived_versions` answers for this table; the first call reads manifests, as that does.

        Raises:
            StoreError: a cursor, a manifest or the table's marker cannot be read.
        """
        if self._open_archive is None or self.mode not in ONE_VERSION_MODES:
            return False
        try:
            self._opened_archive()
        except (ConfigError, CursorMoved):  # routed, filtered, without cursors: archived_versions says the reason
            return False
        return True

    @property
    def key(self) -> tuple[str, ...]:
        """Names of the key's columns. Raises ConfigError if the table has no key."""
        return tuple(column.name for column in self._snapshot.key.columns)

    @property
    def schema(self) -> pa.Schema:
        """All columns with their Arrow types."""
        return pa.schema([column.field for column in self._snapshot.columns.choose(None)])

    def refresh(self) -> None:
        """Pin the table's current snapshot; reads that have begun continue with the earlier one.

        Raises:
            ConfigError: the table does not exist any more.
            StoreError: the catalog or the table cannot be read.
        """
        self._snapshot = self._pin()

    def get(self, key: Any, columns: Iterable[str] | None = None, *, deleted: bool = False) -> dict[str, Any] | None:
        """Return the row of a key: the current version in ``scd2`` tables. None if there is none.

        Args:
            key: see the class.
            columns: names of the columns; None for all.
            deleted: whether a row that is marked as deleted in a ``soft_delete`` table is returned too.

        Raises:
            ConfigError: the key or a column is not one of this table; the table has no key, or is in ``append`` mode.
            StoreError: a file cannot be read.
        """
        snapshot = self._one_row_per_key()
        chosen = snapshot.columns.choose(columns)
        try:
            parsed = snapshot.key.parse(key)
        except NoSuchKey:
            return None
        for group, rows in find(snapshot, parsed, everything=_everything(snapshot, deleted)):
            return snapshot.row(group, int(rows[0]), chosen) if chosen else {}
        return None

    def exists(self, key: Any, *, deleted: bool = False) -> bool:
        """Whether :meth:`get` would return a row; reads the key columns only."""
        return self.get(key, (), deleted=deleted) is not None

    def multi_get(
        self, keys: Sequence[Any], columns: Iterable[str] | None = None, *, deleted: bool = False
    ) -> pa.Table:
        """Return the rows of many keys in the order of the keys; a key may be given twice.

        Args:
            keys: see the class.
            columns: names of the columns; None for all.
            deleted: as in :meth:`get`.

        Returns:
            One row for each key. ``_found`` says whether the key has a row; if not, all other columns are null.

        Raises:
            ConfigError: as in :meth:`get`.
            StoreError: a file cannot be read.
        """
        snapshot = self._one_row_per_key()
        chosen = snapshot.columns.choose(columns)
        parsed = [_parsed(snapshot, key) for key in keys]
        asked = list({key.order: key for key in parsed if key is not None}.values())
        found, of_keys = in_order([], chosen), list[RowKey]()
        if asked:
            many = Many(snapshot, asked, everything=_everything(snapshot, deleted))
            found, of_keys = many.read(chosen)
        numbers = {key.order: number for number, key in enumerate(of_keys)}
        return _arranged(found, [None if key is None else numbers.get(key.order) for key in parsed])

    def versions(
        self,
        key: Any,
        limit: int | None = None,
        columns: Iterable[str] | None = None,
        *,
        since: datetime | None = None,
        until: datetime | None = None,
    ) -> pa.Table:
        """Return the versions of a row in an ``scd2`` table, or its changes in an ``append`` table, newest first.

        Args:
            key: see the class.
            limit: how many at most.
            columns: names of the columns; None for all.
            since: only versions that were committed at this time or later.
            until: only versions that were committed before this time.

        Returns:
            These columns, and ``_changed``: the names of the source's columns that differ from the version before. It is null if there
            is none, or the row was inserted or deleted.

        Raises:
            ConfigError: as in :meth:`get`, a time has no time zone, or the table is in another mode.
            StoreError: a file cannot be read.
        """
        snapshot = self._snapshot
        if snapshot.mode not in TIMES:
            raise ConfigError(
                f"the lake table is in {snapshot.mode} mode, which keeps one version of each row",
                hint="Use get, archived_versions, or the mode scd2.",
                table=snapshot.name,
            )
        _refuse_fresh_versions(snapshot)
        refuse_without_zone(since, until)
        chosen = snapshot.columns.choose(columns)
        rows = kept_versions(snapshot, _parsed(snapshot, key), chosen)
        shown = within(rows, TIMES[snapshot.mode], since, until)
        return shown.select([*(column.name for column in chosen), CHANGED]).slice(0, limit)

    def archived_versions(
        self,
        key: Any,
        limit: int | None = None,
        columns: Iterable[str] | None = None,
        *,
        since: datetime | None = None,
        until: datetime | None = None,
    ) -> ArchivedVersions:
        """Return the versions of a row of a ``mirror`` or ``soft_delete`` table, newest first.

        They are the lake's row, and the changes that stored batches have. The mark of ``soft_delete`` is not among the columns.
        The first call reads the manifests of the stored batches, and the key columns of the table's files; they stay in memory.

        Args:
            key: see the class.
            limit: how many at most.
            columns: names of the columns; None for all.
            since: only versions that were committed at this time or later.
            until: only versions that were committed before this time.

        Raises:
            ConfigError: as in :meth:`get`; a time has no time zone; the table is in another mode, its rows are routed or filtered, the
                reader is ``fresh``, or the lake was opened without its store.
            BatchesMissing: ``since`` is before the time from which on all versions are known.
            StoreError: a file cannot be read.
            IncompatibleSchema: an archived row does not fit into the lake table.
        """
        return self._opened_archive().versions(key, limit, columns, since, until)

    def _opened_archive(self) -> TableArchive:
        snapshot, archive = self._snapshot, self._archive
        if self._open_archive is None:
            raise ConfigError(
                "archived versions are in the source's store, and the reader has none, or reads waiting changes",
                hint="Lake.open(config, store=open_store(config.store)), and a table without fresh.",
                table=snapshot.name,
            )
        if archive is None or archive.snapshot is not snapshot:
            archive = self._archive = self._open_archive(snapshot)
        return archive

    def scan(
        self,
        start: Any = None,
        stop: Any = None,
        columns: Iterable[str] | None = None,
        *,
        prefix: Any = None,
        include_stop: bool = False,
        limit: int | None = None,
        reverse: bool = False,
        deleted: bool = False,
    ) -> pa.RecordBatchReader:
        """Stream the rows of a range of keys in key order.

        The order is that of the lake's values: numbers and times by value, text and bytes byte by byte. The source may sort text
        otherwise, by its collation. A null part of a key comes first. In ``append`` tables the changes of one key follow each other
        from the oldest to the newest.

        Args:
            start: the first key, or the first parts of one; None for the beginning. Also with ``reverse``, it is the least key.
            stop: the key after the last one, or the first parts of one; None for the end.
            columns: names of the columns; None for all.
            prefix: instead of ``start`` and ``stop``: the first parts of the keys. If the last one of them is a text or bytes, it is what
                that part begins with.
            include_stop: whether rows with the key ``stop``, or a key that begins with it, are read too.
            limit: how many rows at most.
            reverse: whether the greatest key comes first.
            deleted: as in :meth:`get`.

        Raises:
            ConfigError: the table has no key; a key or a column is not one of the table; a prefix beside ``start`` or ``stop``.
            StoreError: a file cannot be read; also raised while the rows are read.
        """
        snapshot = self._snapshot
        chosen = snapshot.columns.choose(columns)
        if prefix is not None and (start is not None or stop is not None):
            raise ConfigError(
                "a scan has a prefix, and a start or a stop", hint="Give one or the other.", table=snapshot.name
            )
        within = (
            ScanRange.parse(snapshot.key, start, stop, include_stop=include_stop)
            if prefix is None
            else ScanRange.of_prefix(snapshot.key, prefix)
        )
        order = snapshot.columns.choose(ORDER) if snapshot.mode == "append" else ()
        everything = _everything(snapshot, deleted)
        scan = Scan(snapshot, within, chosen, order, reverse=reverse, everything=everything)
        schema = pa.schema([column.field for column in chosen])
        return pa.RecordBatchReader.from_batches(schema, scan.batches(limit))

    def rows(self, columns: Iterable[str] | None = None) -> pa.RecordBatchReader:
        """Stream all rows of the lake table in no order, as other engines see them; the table needs no key.

        Args:
            columns: names of the columns; None for all.

        Raises:
            ConfigError: a column is not one of the table.
            StoreError: a file cannot be read; also raised while the rows are read.
        """
        snapshot = self._snapshot
        _refuse_fresh_versions(snapshot)
        chosen = snapshot.columns.choose(columns)
        return pa.RecordBatchReader.from_batches(
            pa.schema([column.field for column in chosen]), snapshot.all_rows(chosen)
        )

    def _one_row_per_key(self) -> PinnedSnapshot:
        snapshot = self._snapshot
        if snapshot.mode == "append":
            raise ConfigError(
                "the lake table is in append mode, which has many rows for each key",
                hint="Use versions or scan.",
                table=snapshot.name,
            )
        return snapshot


def _refuse_fresh_versions(snapshot: PinnedSnapshot) -> None:
    """Refuse to show past versions together with waiting changes, which end some of them."""
    if snapshot.mode == "scd2" and snapshot.until is not None:
        raise ConfigError(
            "past versions are read from the lake alone", hint="Open the table without fresh.", table=snapshot.name
        )


def _everything(snapshot: PinnedSnapshot, deleted: bool) -> bool:
    return deleted and snapshot.mode == "soft_delete"


def _parsed(snapshot: PinnedSnapshot, key: Any) -> RowKey | None:
    try:
        return snapshot.key.parse(key)
    except NoSuchKey:
        return None


def _arranged(rows: pa.Table, numbers: Sequence[int | None]) -> pa.Table:
    """Return the numbered rows in this order, and null where a number is missing."""
    indices = pa.array(numbers, pa.int64())
    arrays = [column.take(indices) for column in rows.columns]
    return pa.Table.from_arrays([*arrays, indices.is_valid()], names=[*rows.column_names, FOUND])
