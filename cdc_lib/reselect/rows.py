"""Reads the current rows of primary keys into a batch, for a merge whose changes are not sufficient.

The rows have the low watermark that was read before the first SELECT, as in a snapshot chunk, and so do the deletes for
keys without a row. Every change before the watermark is in the rows. A later change, up to the high watermark that is
read at the end, may be in them too; its window brings it again, and overwrites the row.

The files are in the folder of snapshots, without a manifest: nothing else reads them, and files of a killed merge are
collected like any file that no manifest names.
"""

from __future__ import annotations

import secrets
import threading
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cdc_lib.binlog.result_set import ResultSet
from cdc_lib.binlog.rows.masking import Shape
from cdc_lib.binlog.types.registry import codec_for
from cdc_lib.drain.batch import batch_writer
from cdc_lib.drain.columns import shape_of
from cdc_lib.errors import SourceError, UnsupportedValue
from cdc_lib.merge.plan import StoredBatch
from cdc_lib.model.cursor import DRAIN
from cdc_lib.model.lake_table import Reselected
from cdc_lib.model.manifest import Manifest, SnapshotChunk
from cdc_lib.model.position import Point, Position
from cdc_lib.model.projection import Projection
from cdc_lib.model.row_selection import RowSelection
from cdc_lib.model.schema import TableSchema
from cdc_lib.model.server_identity import ServerIdentity
from cdc_lib.model.value_policy import ValuePolicy
from cdc_lib.mysql.binlog_stream import query
from cdc_lib.mysql.connection import Session
from cdc_lib.mysql.information_schema import InformationSchema
from cdc_lib.mysql.lookup_session import look_up_session, numbers_of, on_server, watermark_after
from cdc_lib.mysql.server_facts import read_binlog_end
from cdc_lib.plan.gaps import planned_cursor
from cdc_lib.reselect.result import Refused, Reread
from cdc_lib.snapshot.by_key import can_be_looked_up, converts_exactly, select_by_keys
from cdc_lib.snapshot.columns import with_order
from cdc_lib.snapshot.key_ranges import select_in_range
from cdc_lib.source import Source
from cdc_lib.store import layout

_FOUND, _MISSING = "0", "1"
"""Keys of the two files: rows, and keys without a row."""

REPLACED = "\ufffd"
"""What replaces invalid bytes in a text, with ``invalid_text: replace``."""


class _Changed(SourceError):
    """The table was changed while its rows were read."""


@dataclass(slots=True)
class _Reselection:
    """State of one re-selection."""

    projection: Projection
    epoch: int
    low: Position
    at: datetime
    write: Callable[[str, TableSchema, pa.Table], None]
    rows: int = 0
    missing: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def take(self, rows: pa.Table, *, found: bool) -> None:
        """Write rows, or keys that have none."""
        if rows.num_rows == 0:
            return
        ordered = with_order(rows, self.epoch, self.low, self.at, "r" if found else "d")
        with self.lock:
            self.write(_FOUND if found else _MISSING, self.projection.schema, ordered)
            self.rows += rows.num_rows if found else 0
            self.missing += 0 if found else rows.num_rows


@dataclass(frozen=True, slots=True)
class Reselector:
    """Re-selects rows from the server of the drain cursor.

    Args:
        source: the source.
        identity: of that server.
        epoch: of its positions.
    """

    source: Source
    identity: ServerIdentity
    epoch: int

    @classmethod
    def of(cls, source: Source) -> Reselector:
        """Return the re-selector for the server of the drain cursor.

        Raises:
            CursorMoved: the source was never planned.
        """
        cursor = planned_cursor(source, DRAIN)
        return cls(source.at_cursor(cursor).with_text_keys(cursor), cursor.identity, cursor.epoch)

    def read(self, schema: TableSchema, keys: pa.Table, stop: Point) -> Reread | Refused:
        """Read the rows of keys.

        Args:
            schema: of the table at the end of the merge; rows may have more columns, see :func:`is_compatible`.
            keys: distinct keys, under the names of the key's columns, as the lake holds them.
            stop: end of the merge; the rows include every change before it.

        Raises:
            ConfigError: the rules of the source file cannot be followed on the table.
            StoreError: the rows cannot be written.
        """
        try:
            return self._read(schema, keys, stop)
        except _Changed as error:
            return Refused(error.message, replaced=True)
        except UnsupportedValue as error:
            return Refused(error.message)
        except SourceError as error:
            return Refused(error.message, again=True)

    def keys_in_range(self, schema: TableSchema, selection: RowSelection, keys: pa.Table) -> pa.Table:
        """Return the keys that lie in a range, in the source's order of keys.

        Args:
            schema: of the table.
            selection: the range.
            keys: distinct keys, under the names of the key's columns, as the lake holds them.

        Raises:
            SourceError: the source does not answer.
        """
        keys = keys.drop_null()
        connection, _ = on_server(self.source.config.server, self.source.credentials, self.identity)
        try:
            collations = InformationSchema(connection).collations(schema)
            numbers: list[int] = []
            for sql, begin in select_in_range(schema, selection, keys, collations):
                numbers += (begin + number for number in numbers_of(connection, sql))
        finally:
            connection.close()
        return keys.take(pa.array(sorted(numbers), pa.int64()))

    def _read(self, schema: TableSchema, keys: pa.Table, stop: Point) -> Reread | Refused:
        connection, facts = on_server(self.source.config.server, self.source.credentials, self.identity)
        try:
            projection = self._projection(connection, schema)
            if isinstance(projection, Refused):
                return projection
            # The source's names of the key columns; the lake may spell them differently.
            keys = keys.rename_columns(list(projection.schema.primary_key))
            if (unusable := self._unusable(keys)) is not None:
                return unusable
            low = watermark_after(connection, facts, self.epoch, stop)
        finally:
            connection.close()
        return self._written(projection, keys, low)

    def _projection(self, connection: Session, schema: TableSchema) -> Projection | Refused:
        """Return the projection of the current table, if it is still the table that the merge knows."""
        current = InformationSchema(connection).schema(schema.database, schema.table)
        if current is None:
            return Refused("the table is no longer at the source", replaced=True)
        projection = self._shape.of(self.source.config.values.applied(current))
        if not is_compatible(schema, projection.schema):
            return Refused("the table was altered at the source meanwhile", replaced=True)
        if projection.masked_keys:
            return Refused(f"column {projection.masked_keys[0]} of the key has a mask")
        if not can_be_looked_up(projection.source):
            return Refused("the table has no key that can be looked up")
        return projection

    @property
    def _shape(self) -> Shape:
        return shape_of(self.source.config, self.source.credentials)

    def _unusable(self, keys: pa.Table) -> Refused | None:
        """Refuse keys that the lake could not hold exactly as the source has them."""
        if any(column.null_count for column in keys.columns):
            return Refused("a part of a key is null in the lake, as invalid dates are")
        texts = [column for column in keys.columns if pa.types.is_string(column.type)]
        if self.source.config.invalid_text == "replace" and any(_holds(column, REPLACED) for column in texts):
            return Refused("a key holds invalid text")
        return None

    def _written(self, projection: Projection, keys: pa.Table, low: Position) -> Reread | Refused:
        at, token = datetime.now(UTC), secrets.token_hex(8)
        key = layout.reselected_key(self.source.name, projection.schema.name, token)
        with batch_writer(self.source.config, self.source.store, key, lambda _, n: layout.chunk_part_path(n)) as writer:
            reading = _Reselection(projection, self.epoch, low, at, writer.write)
            try:
                self._look_up(reading, keys)
            except SourceError:
                self._high(projection)  # that the table was changed explains more than the SELECT's error
                raise
            high = self._high(projection)
        chunk = SnapshotChunk("reselect", projection.schema.name, 0, low, None, None, last=True, high_watermark=high)
        schemas = {projection.schema.id: projection.schema}
        manifest = Manifest(
            self.source.name, self.epoch, self.identity, None, chunk, "", "", at, at, 0, 0, writer.files, schemas
        )
        reach = Reselected(Point.at(self.epoch, low), Point.at(self.epoch, high))
        return Reread(StoredBatch(key, manifest), reading.rows, reading.missing, reach)

    def _high(self, projection: Projection) -> Position:
        """Return the end of the binlog after the reads, if the table is still the one that was read.

        Raises:
            _Changed: it is not.
        """
        connection, facts = on_server(self.source.config.server, self.source.credentials, self.identity)
        try:
            high = read_binlog_end(connection, facts)
            now = self._projection(connection, projection.schema)
            if isinstance(now, Refused):
                raise _Changed(now.why)
            if _columns_of(now.schema) != _columns_of(projection.schema):
                raise _Changed("the table was altered at the source while its rows were read")
        finally:
            connection.close()
        return high

    def _look_up(self, reading: _Reselection, keys: pa.Table) -> None:
        """Read all keys, over as many connections as the source file allows."""
        connections = self.source.config.reselect.connections
        submitted: deque[Future[None]] = deque()
        with ThreadPoolExecutor(connections, "reselect") as pool:
            try:
                for sql, requested in select_by_keys(reading.projection.source, keys):
                    submitted.append(pool.submit(self._read_keys, reading, sql, requested))
                    if len(submitted) > 2 * connections:  # statements are long: only a few are queued
                        submitted.popleft().result()
                while submitted:
                    submitted.popleft().result()
            finally:
                pool.shutdown(wait=True, cancel_futures=True)

    def _read_keys(self, reading: _Reselection, sql: str, requested: pa.Table) -> None:
        source = reading.projection.source
        missing = self._write_rows(reading, sql, requested)
        if missing.num_rows and not converts_exactly(source):
            # A text may have other bytes after the conversion from Unicode, which the server did not find.
            for again, some in select_by_keys(source, missing, converted=True):
                reading.take(_as_read(source, self._write_rows(reading, again, some)), found=False)
        else:
            reading.take(_as_read(source, missing), found=False)

    def _write_rows(self, reading: _Reselection, sql: str, requested: pa.Table) -> pa.Table:
        """Write the rows that a statement finds, and return the keys that have none."""
        connection = look_up_session(self.source.config.server, self.source.credentials, self.identity)
        with query(self.source.config.server, connection, sql) as stream:
            result = ResultSet(reading.projection, stream, self._shape.masker, self.source.config.values)
            for rows in result.groups():
                numbers, requested = matched(rows, requested)
                reading.take(rows.take(numbers), found=True)
        return requested


def matched(rows: pa.Table, requested: pa.Table) -> tuple[pa.Array, pa.Table]:
    """Return the indexes of the rows that have exactly one of the keys, and the keys without a row.

    The server compares keys by their collations and may return rows of other keys; here the lake's values are compared
    byte by byte.

    Args:
        rows: with the key columns.
        requested: distinct keys.
    """
    names = requested.column_names
    of_rows = pa.table({n: _zero_as_zero(rows.column(n).cast(requested.schema.field(n).type)) for n in names})
    keys = pa.table({n: _zero_as_zero(requested.column(n)) for n in names})
    with_numbers = of_rows.append_column("cdc_number", pa.array(np.arange(rows.num_rows)))
    found = with_numbers.join(keys, names, join_type="left semi")
    numbered = keys.append_column("cdc_number", pa.array(np.arange(requested.num_rows)))
    missing = numbered.join(of_rows, names, join_type="left anti").column("cdc_number").combine_chunks()
    if found.num_rows + len(missing) > requested.num_rows:  # several keys of the source are one key in the lake
        found = found.group_by(names).aggregate([("cdc_number", "min")]).rename_columns([*names, "cdc_number"])
    numbers = found.column("cdc_number").combine_chunks()
    return numbers.take(pc.sort_indices(numbers)), requested.take(missing.take(pc.sort_indices(missing)))


def _holds(column: pa.ChunkedArray, text: str) -> bool:
    return bool(pc.any(pc.match_substring(column, text)).as_py())


def _zero_as_zero(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return floating point keys with minus zero as zero."""
    return pc.add(column, 0.0).cast(column.type) if pa.types.is_floating(column.type) else column


def _as_read(source: TableSchema, keys: pa.Table) -> pa.Table:
    """Return keys with the types of the table's rows in a batch: the lake's types may be wider."""
    policy = ValuePolicy()
    kinds = {column.name: codec_for(column.type, policy, from_text=True).arrow_type for column in source.columns}
    return pa.table({name: keys.column(name).cast(kinds[name]) for name in keys.column_names})


def is_compatible(known: TableSchema, now: TableSchema) -> bool:
    """Whether the current table still has all columns of the known one, under the same names.

    Added columns come with their values: the re-selected rows are newer than the changes that will bring them. But an
    added column next to one of the same type may be that column, renamed before another one took its name.
    """
    keys = [tuple(name.lower() for name in schema.primary_key) for schema in (known, now)]
    before, columns = _columns_of(known), _columns_of(now)
    if keys[0] != keys[1] or tuple(one for one in columns if one in before) != before:
        return False
    end = max((index for index, one in enumerate(columns, 1) if one in before), default=0)
    between = columns[:end]  # a column added at the end is no renamed one
    return not any(_follows_its_type(way, before) for way in (between, between[::-1]))


def _follows_its_type(columns: Sequence[tuple[str, str]], known: Sequence[tuple[str, str]]) -> bool:
    """Whether an added column follows a known one of its type, with only added ones in between."""
    kind = ""
    for column in columns:
        if column in known:
            kind = column[1]
        elif column[1] == kind:
            return True
    return False


def _columns_of(schema: TableSchema) -> tuple[tuple[str, str], ...]:
    return tuple((column.name.lower(), column.type.lake_type) for column in schema.columns)
