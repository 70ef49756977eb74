"""Lake tables under the names of happybase, so that a program for HBase reads them with another import.

``import cdc_lib.read.happybase as happybase``. A connection is to a source file; it can only read. See :mod:`cdc_lib.read.cells` for
row keys, columns, values and timestamps.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from queue import Empty, LifoQueue
from typing import Any, NoReturn

from cdc_lib.config import load_source
from cdc_lib.errors import ConfigError
from cdc_lib.model.closing import ClosedAtEnd
from cdc_lib.read.cells import DATA, META, CellRow, CellTable
from cdc_lib.read.cuts import find_cut
from cdc_lib.read.lake import Lake, LakeCut
from cdc_lib.store.objects.open import open_store

Value = bytes | tuple[bytes, int]
"""A value, or a value and its timestamp."""

Text = bytes | str
"""A row key, a column or the name of a table; texts are in UTF-8."""


class NoConnectionsAvailable(RuntimeError):
    """All connections of a pool are in use."""


class Connection(ClosedAtEnd):
    """All tables of a source as of one transaction, until :meth:`open` is called again.

    Args:
        host: path of the source file.
        port: not used, as the other arguments of happybase that are about a network.
        timeout: not used.
        autoconnect: whether the connection is opened at once.
        table_prefix: what the names of all tables begin with; a program leaves it out.
        table_prefix_separator: between the prefix and the name.
        cut: which cut is read; see :func:`cdc_lib.read.cuts.find_cut`.
        **_: ``compat``, ``transport`` and ``protocol`` of happybase.
    """

    def __init__(
        self,
        host: str | Path,
        port: int | None = None,  # noqa: ARG002 - happybase's signature
        timeout: float | None = None,  # noqa: ARG002 - happybase's signature
        autoconnect: bool = True,
        table_prefix: Text | None = None,
        table_prefix_separator: Text = b"_",
        *,
        cut: str = "latest",
        **_: str,
    ) -> None:
        self._config = load_source(Path(host))
        self._prefix = "" if table_prefix is None else _text(table_prefix) + _text(table_prefix_separator)
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
        """Return the names of the tables, ``database.table``: those with the prefix, without it."""
        prefix = self._prefix
        return [name.removeprefix(prefix).encode() for name in self._opened.tables if name.startswith(prefix)]

    def table(self, name: Text, use_prefix: bool = True) -> Table:
        """Return a table.

        Raises:
            ConfigError: there is no such table, or it has no key.
            StoreError: it cannot be read.
        """
        text = (self._prefix if use_prefix else "") + _text(name)
        return Table(text, CellTable(self._opened.table(text)))

    def is_table_enabled(self, name: Text) -> bool:
        """Return that a table can be read, as all can.

        Raises:
            ConfigError: as in :meth:`table`.
        """
        return bool(self.table(name).name)

    @property
    def is_open(self) -> bool:
        """Whether it can be read."""
        return self._cut is not None

    @property
    def _opened(self) -> LakeCut:
        if self._cut is None:
            raise ConfigError("the connection is closed", hint="Call open().")
        return self._cut

    def create_table(self, *_: Any, **__: Any) -> NoReturn:
        """Refuse: the lake is written by merges alone."""
        raise _read_only()

    delete_table = enable_table = disable_table = compact_table = create_table


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

    def regions(self) -> list[dict[str, Any]]:
        """Return one region, the whole table: no server has a part of it."""
        nowhere = {"server_name": b"", "port": 0, "version": 1}
        return [{"name": self.name, "id": 1, "start_key": b"", "end_key": b"", **nowhere}]

    def row(
        self,
        row: Text,
        columns: Iterable[Text] | None = None,
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
        rows: Sequence[Text],
        columns: Iterable[Text] | None = None,
        timestamp: int | None = None,
        include_timestamp: bool = False,
    ) -> list[tuple[bytes, dict[bytes, Value]]]:
        """Return row keys and cells of the rows that exist, in the order of the keys."""
        keys, columns = _all_bytes(rows), _columns(columns)
        if timestamp is None and self._cells.reader.mode != "append":
            found = [row for row in self._cells.rows(keys, columns) if row is not None]
        else:
            found = [one for key in keys if (one := self._newest(key, columns, timestamp)) is not None]
        return [(row.key, _values(row, include_timestamp=include_timestamp)) for row in found]

    def _newest(self, key: bytes, columns: Sequence[bytes] | None, timestamp: int | None) -> CellRow | None:
        versions = self._cells.versions(key, columns)
        found = next((row for row in versions if timestamp is None or row.timestamp < timestamp), None)
        return None if found is None or found.is_deleted else found

    def cells(
        self,
        row: Text,
        column: Text,
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
        name = _bytes(column)
        found = [
            _values(one, include_timestamp=include_timestamp)[name]
            for one in self._cells.versions(_bytes(row), [name])
            if name in one.cells and (timestamp is None or one.timestamp < timestamp)
        ]
        return found[:versions]

    def scan(
        self,
        row_start: Text | None = None,
        row_stop: Text | None = None,
        row_prefix: Text | None = None,
        columns: Iterable[Text] | None = None,
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
        start, stop, prefix = (None if key is None else _bytes(key) for key in (row_start, row_stop, row_prefix))
        for row in self._cells.scan(start, stop, _columns(columns), prefix=prefix, reverse=reverse):
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


class ConnectionPool:
    """Connections that threads share, one for each that has one at a time.

    Args:
        size: how many there are.
        **arguments: of :class:`Connection`.
    """

    def __init__(self, size: int, **arguments: Any) -> None:
        if size < 1:
            raise ConfigError("a pool has at least one connection", hint="Give a size from 1 on.")
        self._free: LifoQueue[Connection] = LifoQueue()
        for number in range(size):  # the first one is opened at once, so that a wrong argument is found here
            self._free.put(Connection(**{**arguments, "autoconnect": number == size - 1}))

    @contextmanager
    def connection(self, timeout: float | None = None) -> Iterator[Connection]:
        """Give a connection for a block.

        Raises:
            NoConnectionsAvailable: all are in use for that many seconds.
        """
        try:
            taken = self._free.get(timeout=timeout)
        except Empty:
            raise NoConnectionsAvailable("no connection of the pool is free") from None
        try:
            if not taken.is_open:
                taken.open()
            yield taken
        finally:
            self._free.put(taken)


def _text(name: Text) -> str:
    return name.decode() if isinstance(name, bytes) else name


def _bytes(text: Text) -> bytes:
    return text.encode() if isinstance(text, str) else text


def _all_bytes(texts: Iterable[Text]) -> list[bytes]:
    return [_bytes(one) for one in texts]


def _columns(columns: Iterable[Text] | None) -> list[bytes] | None:
    if isinstance(columns, str | bytes):
        raise ConfigError("columns are a list, and not one text", hint='Give ["d:name"].')
    return None if columns is None else _all_bytes(columns)


def _values(row: CellRow, *, include_timestamp: bool) -> dict[bytes, Value]:
    if include_timestamp:
        return {column: (value, row.timestamp) for column, value in row.cells.items()}
    return dict(row.cells)


def _read_only() -> ConfigError:
    return ConfigError("the lake can be read here, and not written", hint="Change the row at the source.")
