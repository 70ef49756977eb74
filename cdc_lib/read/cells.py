"""Rows of a lake table as HBase shows rows: a row key, and cells of bytes by column, each with a timestamp.

* The row key is the key as text, ``42``; a key of several columns is a JSON list, ``["de",42]``.
* Columns of the source are in the family ``d``: ``d:total``. Metadata columns are in the family ``cdc``, without the underscore.
* A cell has the value as text in UTF-8, or the bytes of a binary column. NULL has no cell.
* The timestamp is the commit time in milliseconds since 1970; 0 for rows of a snapshot that have none.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc

from cdc_lib.errors import ConfigError
from cdc_lib.merge.collapse import DELETE
from cdc_lib.model.manifest import OP, TS
from cdc_lib.model.table_mode import IS_DELETED, RESET, VALID_FROM
from cdc_lib.read.key_text import parse_key
from cdc_lib.read.table import TableReader

DATA, META = "d", "cdc"
"""The column families."""


@dataclass(frozen=True, slots=True)
class CellRow:
    """A row.

    Args:
        key: the row key.
        timestamp: of all its cells.
        cells: values by column, ``d:total``.
        is_deleted: of versions: the row was removed at this time, and has no cells.
    """

    key: bytes
    timestamp: int
    cells: dict[bytes, bytes]
    is_deleted: bool = False


class CellTable:
    """Reads the rows of a lake table as cells.

    Args:
        reader: of the lake table.
    """

    def __init__(self, reader: TableReader) -> None:
        self.reader = reader
        self._schema = reader.schema
        self._key = reader.key
        time = VALID_FROM if reader.mode == "scd2" else TS
        self._time = time if time in self._schema.names else None

    def rows(self, keys: Sequence[bytes], columns: Iterable[bytes] | None = None) -> list[CellRow | None]:
        """Return the row of each key; None for one that has none.

        Raises:
            ConfigError: a row key or a column is not one of the table, or the table is in ``append`` mode.
            StoreError: a file cannot be read.
        """
        names = self._names(columns)
        found = self.reader.multi_get([self._parsed(key) for key in keys], self._read(names))
        there = found.column("_found").to_pylist()
        rows = self._cells(found.drop_columns(["_found"]), names, self._time)
        return [row if is_there else None for row, is_there in zip(rows, there, strict=True)]

    def versions(self, key: bytes, columns: Iterable[bytes] | None = None, limit: int | None = None) -> list[CellRow]:
        """Return the versions of a row, newest first.

        All in ``scd2`` and ``append`` tables. In others those that stored batches have, also of deletes; one if the lake was opened
        without its store, or earlier versions of the table are refused.

        Args:
            key: the row key.
            columns: families and columns; None for all.
            limit: how many at most, besides deletes.

        Raises:
            ConfigError: as in :meth:`rows`.
            StoreError: a file cannot be read.
        """
        names = self._names(columns)
        if self.reader.mode in ("scd2", "append"):
            return list(
                self._cells(self.reader.versions(self._parsed(key), limit, self._read(names)), names, self._time)
            )
        if not self.reader.has_archived_versions:
            return [row for row in self.rows([key], columns) if row is not None]
        asked = limit
        while True:
            found = self._archived(key, names, asked)
            shown = sum(not row.is_deleted for row in found)
            if asked is None or len(found) < asked or shown >= (limit or 0):
                return found
            asked *= 2

    @property
    def has_versions(self) -> bool:
        """Whether rows may have more than one version."""
        return self.reader.mode in ("scd2", "append") or self.reader.has_archived_versions

    def _archived(self, key: bytes, names: Sequence[str], limit: int | None) -> list[CellRow]:
        """Return the newest versions that stored batches have; the mark of ``soft_delete`` is false in those that have cells."""
        rows = self.reader.archived_versions(self._parsed(key), limit, self._read(names)).rows
        if IS_DELETED in names:
            rows = rows.append_column(IS_DELETED, pa.repeat(False, rows.num_rows))
        return [
            replace(row, key=key, cells={}, is_deleted=True) if op in (DELETE, RESET) else row
            for row, op in zip(self._cells(rows, names, TS), rows.column(OP).to_pylist(), strict=True)
        ]

    def scan(
        self,
        start: bytes | None = None,
        stop: bytes | None = None,
        columns: Iterable[bytes] | None = None,
        *,
        prefix: bytes | None = None,
        limit: int | None = None,
        reverse: bool = False,
    ) -> Iterator[CellRow]:
        """Yield rows in the order of the lake's keys: numbers by value, text byte by byte.

        Args:
            start: the first row key.
            stop: the row key after the last one.
            columns: ``d``, ``d:total`` and the like; None for all.
            prefix: what the row key begins with, if it is a text; the first parts of a key of several columns.
            limit: how many rows at most.
            reverse: whether the last row comes first; ``start`` is then the last one, as in HBase.

        Raises:
            ConfigError: as in :meth:`rows`.
            StoreError: a file cannot be read.
        """
        names, excluded = self._names(columns), stop
        if reverse:
            start, stop = stop, start
        lower, upper = (self._parsed(one) if one else None for one in (start, stop))
        within = prefix is not None and len(self._key) > 1
        if prefix is not None:
            lower = self._parsed(prefix)
            upper = lower if within else None
        if prefix is not None and not within and not pa.types.is_string(self._schema.field(self._key[0]).type):
            raise ConfigError("a prefix needs a key that is a text", hint="Give a start and a stop instead.")
        batches = self.reader.scan(
            lower, upper, self._read(names), include_stop=within or reverse, limit=limit, reverse=reverse
        )
        for batch in batches:
            for row in self._cells(pa.table(batch), names, self._time):
                if prefix is not None and not within and not row.key.startswith(prefix):
                    return
                if not (reverse and row.key == excluded):
                    yield row

    def _parsed(self, key: bytes) -> tuple[object, ...]:
        try:
            return parse_key(self._schema, self._key, key.decode())
        except UnicodeDecodeError as error:
            what = f"the row key of the bytes {key.hex()} is not UTF-8"
            raise ConfigError(what, hint="Bytes are written as hex digits.") from error

    def _names(self, columns: Iterable[bytes] | None) -> list[str]:
        if columns is None:
            return list(self._schema.names)
        every = {_column(name): name for name in self._schema.names}
        found: list[str] = []
        for column in columns:
            wanted = column.removesuffix(b":")
            names = [every[one] for one in every if one == wanted or one.split(b":")[0] == wanted]
            if not names:
                families = f"{DATA} and {META}"
                raise ConfigError(
                    f"there is no column {column.decode('utf-8', 'backslashreplace')}",
                    hint=f"Families are {families}; a column is d:name.",
                )
            found += names
        return list(dict.fromkeys(found))

    def _read(self, names: Sequence[str]) -> list[str]:
        more = (*self._key, *((self._time,) if self._time is not None else ()))
        return list(dict.fromkeys((*names, *more)))

    def _cells(self, rows: pa.Table, names: Sequence[str], time: str | None) -> Iterator[CellRow]:
        keys = list(zip(*(_key_texts(rows.column(name)) for name in self._key), strict=True))
        numeric = [pa.types.is_integer(self._schema.field(name).type) for name in self._key]
        times = [0] * rows.num_rows
        if time is not None:
            millis = pc.fill_null(rows.column(time).cast(pa.timestamp("ms", tz="UTC"), safe=False).cast(pa.int64()), 0)
            times = millis.to_pylist()
        values = {_column(name): _texts(rows.column(name)) for name in names}
        for number, (key, at) in enumerate(zip(keys, times, strict=True)):
            cells = {column: text for column, texts in values.items() if (text := texts[number]) is not None}
            yield CellRow(_row_key(key, numeric), at, cells)


def _column(name: str) -> bytes:
    return f"{META}:{name[1:]}".encode() if name.startswith("_") else f"{DATA}:{name}".encode()


def _row_key(parts: Sequence[bytes | None], numeric: Sequence[bool]) -> bytes:
    if len(parts) == 1:
        return parts[0] or b""
    shown = [
        None if part is None else int(part) if is_number else part.decode("utf-8", "surrogateescape")
        for part, is_number in zip(parts, numeric, strict=True)
    ]
    return json.dumps(shown, ensure_ascii=False, separators=(",", ":")).encode()


def _key_texts(column: pa.ChunkedArray) -> list[bytes | None]:
    """Return parts of keys as they are parsed: bytes are hex digits."""
    texts = _texts(column)
    if pa.types.is_binary(column.type) or pa.types.is_fixed_size_binary(column.type):
        return [None if one is None else one.hex().encode() for one in texts]
    return texts


def _texts(column: pa.ChunkedArray) -> list[bytes | None]:
    of = column.type
    if pa.types.is_binary(of) or pa.types.is_fixed_size_binary(of):
        return column.to_pylist()  # type: ignore[no-any-return]
    if pa.types.is_boolean(of):
        return [None if one is None else str(one).lower().encode() for one in column.to_pylist()]
    texts = column.cast(pa.string()) if pa.types.is_temporal(of) else column
    return [None if one is None else str(one).encode() for one in texts.to_pylist()]
