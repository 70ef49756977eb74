"""Rows of a batch as Arrow tables: from its Parquet files, and from earlier ones for its XA COMMITs."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from cdc_lib.errors import CorruptBatch
from cdc_lib.model.manifest import ABSENT, BINLOG, CHANGE_COLUMNS, EPOCH, GTID, OFFSET, TS, DataFile
from cdc_lib.model.position import Point
from cdc_lib.model.xa_settlement import XaCommit
from cdc_lib.ports import ObjectStore


@contextmanager
def parquet_file(store: ObjectStore, key: str) -> Iterator[pq.ParquetFile]:
    """Open one Parquet file of a batch for the block that reads it.

    Raises:
        CorruptBatch: it is missing, or is not a Parquet file.
    """
    with store.open_read(key) as data:
        try:
            yield pq.ParquetFile(data)
        except (pa.ArrowInvalid, OSError) as error:
            raise CorruptBatch(
                f"a file of a batch cannot be read: {error}",
                hint="Restore it from a backup, or rewind the drain cursor to before its window and drain it again.",
                key=key,
            ) from error


def read_file(store: ObjectStore, key: str, file: DataFile) -> pa.Table:
    """Read one Parquet file of a batch; see :func:`read_groups`."""
    return pa.concat_tables(read_groups(store, key, file))


def read_groups(store: ObjectStore, key: str, file: DataFile) -> Iterator[pa.Table]:
    """Yield the rows of one Parquet file of a batch by row group, at least one table; they always have ``_absent``.

    Raises:
        CorruptBatch: it is missing, is not a Parquet file, or has other rows than in its manifest.
    """
    with parquet_file(store, key) as parquet:
        if parquet.metadata.num_rows != file.rows:
            raise _other_rows(key, file)
        for number in range(parquet.num_row_groups):
            yield _with_absent(parquet.reader.read_row_group(number))
        if not parquet.num_row_groups:
            yield _with_absent(parquet.schema_arrow.empty_table())


def _with_absent(rows: pa.Table) -> pa.Table:
    if ABSENT in rows.schema.names:
        return rows
    return rows.add_column(len(CHANGE_COLUMNS), ABSENT, pa.nulls(rows.num_rows, pa.string()))


def read_columns(
    store: ObjectStore, key: str, file: DataFile, names: Sequence[str] | None, groups: Collection[int] | None = None
) -> dict[int, pa.Table]:
    """Read some columns of some row groups of one Parquet file of a batch.

    Args:
        store: holds the batch.
        key: of the file.
        file: as its manifest describes it.
        names: names of the columns as the file has them; None for all.
        groups: numbers of the row groups; None for all.

    Returns:
        By the number of the row group, its rows with these columns in this order.

    Raises:
        CorruptBatch: it is missing, is not a Parquet file, or has other rows than in its manifest.
    """
    with parquet_file(store, key) as parquet:
        if parquet.metadata.num_rows != file.rows:
            raise _other_rows(key, file)
        has = parquet.schema_arrow.names
        # By number: a name with a dot would be a path.
        numbers = None if names is None else sorted(map(has.index, names))
        chosen = range(parquet.num_row_groups) if groups is None else groups
        read = {one: parquet.reader.read_row_group(one, column_indices=numbers, use_threads=False) for one in chosen}
    return read if names is None else {number: rows.select(list(names)) for number, rows in read.items()}


def last_point(store: ObjectStore, key: str) -> Point:
    """Return the position of the last row of one Parquet file of a window, whose rows are in the stream's order.

    Raises:
        CorruptBatch: it is missing, or is not a Parquet file.
    """
    with parquet_file(store, key) as parquet:
        rows = parquet.read_row_group(parquet.num_row_groups - 1, columns=[EPOCH, BINLOG, OFFSET])
    epoch, file, offset = (rows.column(name)[-1].as_py() for name in (EPOCH, BINLOG, OFFSET))
    return Point(epoch, file, offset)


def _other_rows(key: str, file: DataFile) -> CorruptBatch:
    return CorruptBatch("a file of a batch holds other rows than its manifest says", key=key, expected=file.rows)


def from_point(rows: pa.Table, floor: Point | None) -> pa.Table:
    """Leave out rows before a point."""
    if floor is None:
        return rows
    epoch, file, offset = (rows.column(name) for name in (EPOCH, BINLOG, OFFSET))
    same_file = pc.and_(pc.equal(file, floor.file), pc.greater_equal(offset, floor.offset))
    same_epoch = pc.and_(pc.equal(epoch, floor.epoch), pc.or_(pc.greater(file, floor.file), same_file))
    return rows.filter(pc.or_(pc.greater(epoch, floor.epoch), same_epoch))


def committed(rows: pa.Table, commits: Sequence[XaCommit]) -> pa.Table:
    """Return the rows of committed XA transactions with the order key, the time and the GTID of their commits.

    Args:
        rows: rows of a file of prepared rows, with file and offset of the start of their transaction.
        commits: commits, in any order.
    """
    found = []
    for commit in commits:
        began, at = commit.prepared.start, commit.point
        own = pc.and_(pc.equal(rows.column(BINLOG), began.file_number), pc.equal(rows.column(OFFSET), began.offset))
        part = rows.filter(own)
        values = {
            EPOCH: at.epoch,
            BINLOG: at.file,
            OFFSET: at.offset,
            TS: commit.decision.time,
            GTID: commit.decision.gtid or None,
        }
        for name, value in values.items():
            index = part.schema.get_field_index(name)
            kind = part.schema.field(index).type
            part = part.set_column(index, name, pa.array([value] * part.num_rows, kind))
        found.append(part)
    return pa.concat_tables(found) if found else rows.slice(0, 0)
