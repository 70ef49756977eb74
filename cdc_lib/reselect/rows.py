"""Current rows of a table by their primary keys, as a batch: what a merge takes where the log does not tell enough.

The rows bear the low watermark that was read before the first of the SELECTs, as those of a snapshot's chunk do, and so do
the deletes that stand for keys without a row. That is exact in one direction: a change before the watermark is in the rows.
A change after it may be in them as well, up to the high watermark that is read at the end; it comes again with its window,
and over the row.

The files lie where those of snapshots do, without a manifest: nobody else sees them, and what a merge that died leaves
after is collected like any file that no manifest names.
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
from cdc_lib.config import Credentials, SourceConfig
from cdc_lib.drain.batch import batch_writer
from cdc_lib.drain.columns import shape_of
from cdc_lib.errors import SourceError, UnsupportedValue
from cdc_lib.merge.plan import Batch
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
from cdc_lib.ports import ObjectStore
from cdc_lib.snapshot.by_key import can_be_looked_up, converts_exactly, select_by_keys
from cdc_lib.snapshot.columns import with_order
from cdc_lib.snapshot.key_ranges import select_in_range
from cdc_lib.store import layout

_FOUND, _MISSING = "0", "1"
"""Keys of the two files: rows, and keys without one."""

REPLACED = "\ufffd"
"""What is in a text for bytes that are none, with ``invalid_text: replace``."""


@dataclass(frozen=True, slots=True)
class Reread:
    """What was read back.

    Args:
        batch: its rows, in the shape of a snapshot's chunk.
        rows: keys that have a row.
        missing: keys that have none: the batch holds a delete for each.
        reach: between which points they were read.
    """

    batch: Batch
    rows: int
    missing: int
    reach: Reselected


@dataclass(frozen=True, slots=True)
class Refused:
    """Why rows could not be read back.

    Args:
        why: a part of a sentence.
        again: whether trying again may help.
    """

    why: str
    again: bool = False


class _Changed(SourceError):
    """The table is not the one any more whose rows are read."""


@dataclass(slots=True)
class _Reading:
    """One read that is under way."""

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
    """Reads rows back from the server that the drain stands on.

    Args:
        config: of the source, at that server's address.
        credentials: log-in of the source.
        store: where the rows go.
        identity: of that server.
        epoch: of its positions.
    """

    config: SourceConfig
    credentials: Credentials
    store: ObjectStore
    identity: ServerIdentity
    epoch: int

    def read(self, schema: TableSchema, keys: pa.Table, stop: Point) -> Reread | Refused:
        """Read the rows of keys.

        Args:
            schema: of the table where the merge ends; rows may have more columns, see :func:`goes_on`; others are refused.
            keys: distinct keys, under the names of the key's columns, as the lake holds them.
            stop: where the merge ends; the rows hold everything before it.

        Raises:
            ConfigError: the rules of the source file cannot be followed on the table.
            StoreError: the rows cannot be written.
        """
        try:
            return self._read(schema, keys, stop)
        except (UnsupportedValue, _Changed) as error:
            return Refused(error.message)
        except SourceError as error:
            return Refused(error.message, again=True)

    def within(self, schema: TableSchema, part: RowSelection, keys: pa.Table) -> pa.Table:
        """Return which of some keys lie in a range, by the order that the source has.

        Args:
            schema: of the table.
            part: the range.
            keys: distinct keys, under the names of the key's columns, as the lake holds them.

        Raises:
            SourceError: the source does not answer.
        """
        keys = keys.drop_null()
        connection, _ = on_server(self.config.server, self.credentials, self.identity)
        try:
            collations = InformationSchema(connection).collations(schema)
            found: list[int] = []
            for sql, begin in select_in_range(schema, part, keys, collations):
                found += (begin + number for number in numbers_of(connection, sql))
        finally:
            connection.close()
        return keys.take(pa.array(sorted(found), pa.int64()))

    def _read(self, schema: TableSchema, keys: pa.Table, stop: Point) -> Reread | Refused:
        connection, facts = on_server(self.config.server, self.credentials, self.identity)
        try:
            projection = self._projection(connection, schema)
            if isinstance(projection, Refused):
                return projection
            # The source's names of the key's columns; the lake may spell them otherwise.
            keys = keys.rename_columns(list(projection.schema.primary_key))
            if (odd := self._odd(keys)) is not None:
                return odd
            low = watermark_after(connection, facts, self.epoch, stop)
        finally:
            connection.close()
        return self._written(projection, keys, low)

    def _projection(self, connection: Session, schema: TableSchema) -> Projection | Refused:
        """Return what is selected of the table as it is now, if it still is the one that the merge knows."""
        current = InformationSchema(connection).schema(schema.database, schema.table)
        if current is None:
            return Refused("the table is no longer at the source")
        projection = self._shape.of(self.config.values.applied(current))
        if not goes_on(schema, projection.schema):
            return Refused("the table was altered at the source meanwhile")
        if projection.masked_keys:
            return Refused(f"column {projection.masked_keys[0]} of the key has a mask")
        if not can_be_looked_up(projection.source):
            return Refused("the table has no key that can be looked up")
        return projection

    @property
    def _shape(self) -> Shape:
        return shape_of(self.config, self.credentials)

    def _odd(self, keys: pa.Table) -> Refused | None:
        """Refuse keys that are not those of the source: the lake could not hold them as they are."""
        if any(column.null_count for column in keys.columns):
            return Refused("a part of a key is null in the lake, as dates that are none become")
        texts = [column for column in keys.columns if pa.types.is_string(column.type)]
        if self.config.invalid_text == "replace" and any(_holds(column, REPLACED) for column in texts):
            return Refused("a key holds bytes that are no text")
        return None

    def _written(self, projection: Projection, keys: pa.Table, low: Position) -> Reread | Refused:
        at, token = datetime.now(UTC), secrets.token_hex(8)
        key = layout.reselected_key(self.config.source, projection.schema.name, token)
        with batch_writer(self.config, self.store, key, lambda _, n: layout.chunk_part_path(n)) as writer:
            reading = _Reading(projection, self.epoch, low, at, writer.write)
            try:
                self._look_up(reading, keys)
            except SourceError:
                self._high(projection)  # whether the table is another one is worth more than what a SELECT says then
                raise
            high = self._high(projection)
        chunk = SnapshotChunk("reselect", projection.schema.name, 0, low, None, None, last=True, high_watermark=high)
        schemas = {projection.schema.id: projection.schema}
        manifest = Manifest(
            self.config.source, self.epoch, self.identity, None, chunk, "", "", at, at, 0, 0, writer.files, schemas
        )
        reach = Reselected(Point.at(self.epoch, low), Point.at(self.epoch, high))
        return Reread(Batch(key, manifest), reading.rows, reading.missing, reach)

    def _high(self, projection: Projection) -> Position:
        """Return the end of the binlog after the reads, if the table is still the one that was read.

        Raises:
            _Changed: it is not.
        """
        connection, facts = on_server(self.config.server, self.credentials, self.identity)
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

    def _look_up(self, reading: _Reading, keys: pa.Table) -> None:
        """Read all keys, over as many connections as the source file allows."""
        connections = self.config.reselect.connections
        begun: deque[Future[None]] = deque()
        with ThreadPoolExecutor(connections, "reselect") as pool:
            try:
                for sql, wanted in select_by_keys(reading.projection.source, keys):
                    begun.append(pool.submit(self._one, reading, sql, wanted))
                    if len(begun) > 2 * connections:  # statements are long: few of them wait
                        begun.popleft().result()
                while begun:
                    begun.popleft().result()
            finally:
                pool.shutdown(wait=True, cancel_futures=True)

    def _one(self, reading: _Reading, sql: str, wanted: pa.Table) -> None:
        source = reading.projection.source
        missing = self._found(reading, sql, wanted)
        if missing.num_rows and not converts_exactly(source):
            # A text may have come back from Unicode as other bytes, which the server did not find.
            for again, some in select_by_keys(source, missing, converted=True):
                reading.take(_as_read(source, self._found(reading, again, some)), found=False)
        else:
            reading.take(_as_read(source, missing), found=False)

    def _found(self, reading: _Reading, sql: str, wanted: pa.Table) -> pa.Table:
        """Write the rows that a statement finds, and return the keys that have none."""
        connection = look_up_session(self.config.server, self.credentials, self.identity)
        with query(self.config.server, connection, sql) as stream:
            result = ResultSet(reading.projection, stream, self._shape.masker, self.config.values)
            for rows in result.groups():
                places, wanted = matched(rows, wanted)
                reading.take(rows.take(places), found=True)
        return wanted


def matched(rows: pa.Table, wanted: pa.Table) -> tuple[pa.Array, pa.Table]:
    """Return which rows have exactly one of the keys, and the keys that are left.

    The server compares keys by their collations and may give rows of other keys; here values are compared as the lake has
    them, byte by byte.

    Args:
        rows: with the key's columns.
        wanted: distinct keys.
    """
    names = wanted.column_names
    own = pa.table({n: _zero_as_zero(rows.column(n).cast(wanted.schema.field(n).type)) for n in names})
    keys = pa.table({n: _zero_as_zero(wanted.column(n)) for n in names})
    placed = own.append_column("cdc_place", pa.array(np.arange(rows.num_rows)))
    found = placed.join(keys, names, join_type="left semi")
    numbered = keys.append_column("cdc_place", pa.array(np.arange(wanted.num_rows)))
    left = numbered.join(own, names, join_type="left anti").column("cdc_place").combine_chunks()
    if found.num_rows + len(left) > wanted.num_rows:  # rows of several keys of the source that are one in the lake
        found = found.group_by(names).aggregate([("cdc_place", "min")]).rename_columns([*names, "cdc_place"])
    places = found.column("cdc_place").combine_chunks()
    return places.take(pc.sort_indices(places)), wanted.take(left.take(pc.sort_indices(left)))


def _holds(column: pa.ChunkedArray, text: str) -> bool:
    return bool(pc.any(pc.match_substring(column, text)).as_py())


def _zero_as_zero(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Minus zero is zero for a key."""
    return pc.add(column, 0.0).cast(column.type) if pa.types.is_floating(column.type) else column


def _as_read(source: TableSchema, keys: pa.Table) -> pa.Table:
    """Return keys with the types that the table's rows have in a batch: those of the lake may be wider."""
    policy = ValuePolicy()
    kinds = {column.name: codec_for(column.type, policy, from_text=True).arrow_type for column in source.columns}
    return pa.table({name: keys.column(name).cast(kinds[name]) for name in keys.column_names})


def goes_on(known: TableSchema, now: TableSchema) -> bool:
    """Whether rows of a table as it is now hold all that rows of the known one do, under the same names.

    Columns that were added come with their values: a row that is read now is after the changes that will bring them.
    Beside one of its own type, though, an added column may be that one, renamed, before another took its name.
    """
    keys = [tuple(name.lower() for name in schema.primary_key) for schema in (known, now)]
    before, columns = _columns_of(known), _columns_of(now)
    if keys[0] != keys[1] or tuple(one for one in columns if one in before) != before:
        return False
    end = max((place for place, one in enumerate(columns, 1) if one in before), default=0)
    between = columns[:end]  # what was added at the end is nobody's former self
    return not any(_beside_its_like(way, before) for way in (between, between[::-1]))


def _beside_its_like(columns: Sequence[tuple[str, str]], known: Sequence[tuple[str, str]]) -> bool:
    """Whether an added column comes after a known one of its type, with none but added ones in between."""
    kind = ""
    for column in columns:
        if column in known:
            kind = column[1]
        elif column[1] == kind:
            return True
    return False


def _columns_of(schema: TableSchema) -> tuple[tuple[str, str], ...]:
    return tuple((column.name.lower(), column.type.lake_type) for column in schema.columns)
