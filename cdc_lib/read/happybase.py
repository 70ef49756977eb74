"""Lake tables under the names of happybase, so that a program for HBase reads them with another import.

``import cdc_lib.read.happybase as happybase``. A connection is to a source file; it can only read. See :mod:`cdc_lib.read.cells` for
row keys, columns, values and timestamps.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, NoReturn, Self

from cdc_lib.config import load_source
from cdc_lib.errors import ConfigError
from cdc_lib.read.cells import DATA, META, CellRow, CellTable
from cdc_lib.read.cuts import find_cut
from cdc_lib.read.lake import Lake, LakeCut
from cdc_lib.store.objects.open import open_store

Value = bytes | tuple[bytes, int]
"""A value, or a value and its timestamp."""


class Connection:
    """All tables of a source as of one transaction, until :meth:`open` is called again.

    Args:
        host: path of the source file.
        cut: which cut is read; see :func:`cdc_lib.read.cuts.find_cut`.
        autoconnect: whether the connection is opened at once.
    """

    def __init__(self, host: str | Path, *, cut: str = "latest", autoconnect: bool = True) -> None:
        self._config = load_source(Path(host))
        self._which = cut
        self._lake: Lake | None = None
        self._cut: LakeCut | None = None
        if autoconnect:
            self.open()

    def open(self) -> None:
        """Open the lake, and go to the cut.

        Raises:
            ConfigError: there is no lake yet, or no such cut.
            StoreError: the catalog or the store cannot be read.
        """
        store = open_store(self._config.store)
        cut = find_cut(store, self._config.source, self._which)
        self._lake = self._lake or Lake.open(self._config, store=store)
        self._cut = self._lake.at(cut)

    def close(self) -> None:
        """Close the lake."""
        if self._lake is not None:
            self._lake.close()
        self._lake = self._cut = None

    def tables(self) -> list[bytes]:
        """Return the names of the tables, ``database.table``."""
        return [name.encode() for name in self._opened.tables]

    def table(self, name: str | bytes, use_prefix: bool = True) -> Table:  # noqa: ARG002 - happybase's signature
        """Return a table.

        Raises:
            ConfigError: there is no such table, or it has no key.
            StoreError: it cannot be read.
        """
        text = name.decode() if isinstance(name, bytes) else name
        return Table(text, CellTable(self._opened.table(text)))

    @property
    def _opened(self) -> LakeCut:
        if self._cut is None:
            raise ConfigError("the connection is closed", hint="Call open().")
        return self._cut

    def create_table(self, *_: Any, **__: Any) -> NoReturn:
        """Refuse: the lake is written by merges alone."""
        raise _read_only()

    delete_table = enable_table = disable_table = compact_table = create_table

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class Table:
    """A table.

    Args:
        name: ``database.table``.
        cells: its rows.
    """

    def __init__(self, name: str, cells: CellTable) -> None:
        self.name = name.encode()
        self._cells = cells

    def families(self) -> dict[bytes, dict[str, Any]]:
        """Return the column families."""
        many = None if self._cells.has_versions else 1
        return {f"{name}:".encode(): {"name": f"{name}:".encode(), "max_versions": many} for name in (DATA, META)}

    def row(
        self,
        row: bytes,
        columns: Iterable[bytes] | None = None,
        timestamp: int | None = None,
        include_timestamp: bool = False,
    ) -> dict[bytes, Value]:
        """Return the cells of a row; empty if there is none.

        Args:
            row: the row key.
            columns: families and columns; None for all.
            timestamp: only cells before this time, in milliseconds since 1970.
            include_timestamp: whether each value comes with its timestamp.
        """
        found = self.rows([row], columns, timestamp, include_timestamp)
        return found[0][1] if found else {}

    def rows(
        self,
        rows: Sequence[bytes],
        columns: Iterable[bytes] | None = None,
        timestamp: int | None = None,
        include_timestamp: bool = False,
    ) -> list[tuple[bytes, dict[bytes, Value]]]:
        """Return row keys and cells of the rows that exist, in the order of the keys."""
        if timestamp is None and self._cells.reader.mode != "append":
            found = [row for row in self._cells.rows(rows, columns) if row is not None]
        else:
            found = [one for key in rows if (one := self._newest(key, columns, timestamp)) is not None]
        return [(row.key, _values(row, include_timestamp=include_timestamp)) for row in found]

    def _newest(self, key: bytes, columns: Iterable[bytes] | None, timestamp: int | None) -> CellRow | None:
        versions = self._cells.versions(key, columns)
        found = next((row for row in versions if timestamp is None or row.timestamp < timestamp), None)
        return None if found is None or found.is_deleted else found

    def cells(
        self,
        row: bytes,
        column: bytes,
        versions: int | None = None,
        timestamp: int | None = None,
        include_timestamp: bool = False,
    ) -> list[Value]:
        """Return the values of a cell, newest first.

        Args:
            row: the row key.
            column: ``d:total``.
            versions: how many at most.
            timestamp: as in :meth:`row`.
            include_timestamp: as in :meth:`row`.
        """
        found = [
            _values(one, include_timestamp=include_timestamp)[column]
            for one in self._cells.versions(row, [column])
            if column in one.cells and (timestamp is None or one.timestamp < timestamp)
        ]
        return found[:versions]

    def scan(
        self,
        row_start: bytes | None = None,
        row_stop: bytes | None = None,
        row_prefix: bytes | None = None,
        columns: Iterable[bytes] | None = None,
        filter: bytes | str | None = None,  # noqa: A002 - happybase's name
        timestamp: int | None = None,
        include_timestamp: bool = False,
        batch_size: int = 1000,  # noqa: ARG002 - rows come in Arrow's batches
        scan_batching: int | None = None,  # noqa: ARG002 - as batch_size
        limit: int | None = None,
        sorted_columns: bool = False,
        reverse: bool = False,
    ) -> Iterator[tuple[bytes, dict[bytes, Value]]]:
        """Yield row keys and cells in the order of the lake's keys, which is by value and not by the bytes of row keys.

        Raises:
            ConfigError: a filter is given, or a prefix beside a start or a stop.
        """
        if filter is not None:
            raise ConfigError("filters of HBase are not known here", hint="Use cdc_lib.read.sql for a WHERE.")
        if row_prefix is not None and (row_start is not None or row_stop is not None):
            raise ConfigError("a scan has a prefix, or a start and a stop", hint="Leave one of them out.")
        left = limit
        for row in self._cells.scan(row_start, row_stop, columns, prefix=row_prefix, reverse=reverse):
            if left is not None and left <= 0:
                return
            if timestamp is None or row.timestamp < timestamp:
                left = None if left is None else left - 1
                values = _values(row, include_timestamp=include_timestamp)
                yield row.key, dict(sorted(values.items())) if sorted_columns else values

    def put(self, *_: Any, **__: Any) -> NoReturn:
        """Refuse: the lake is written by merges alone."""
        raise _read_only()

    delete = batch = counter_get = counter_set = counter_inc = counter_dec = put


def _values(row: CellRow, *, include_timestamp: bool) -> dict[bytes, Value]:
    if include_timestamp:
        return {column: (value, row.timestamp) for column, value in row.cells.items()}
    return dict(row.cells)


def _read_only() -> ConfigError:
    return ConfigError("the lake can be read here, and not written", hint="Change the row at the source.")
