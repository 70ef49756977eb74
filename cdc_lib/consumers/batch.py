"""The batch that a consumer gets: consecutive windows, whose rows are read on demand."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime

import pyarrow as pa

from cdc_lib.consumers.batch_slice import BatchSlice
from cdc_lib.consumers.filter import kept, wants
from cdc_lib.consumers.rows import TableRows, chosen, in_order
from cdc_lib.errors import IncompatibleSchema
from cdc_lib.model.manifest import ABSENT, CELL_HERE, CHANGE_COLUMNS, Ddl, Manifest
from cdc_lib.model.position import Point
from cdc_lib.model.schema import TableSchema
from cdc_lib.model.subscription import Interest
from cdc_lib.model.table_name import TableName
from cdc_lib.model.xa_settlement import XaCommit
from cdc_lib.ports import ObjectStore
from cdc_lib.store import layout
from cdc_lib.store.batch_rows import committed, from_point, read_file


class Batch:
    """Windows in the stream's order, from where the last batch ended.

    Args:
        id: derived from the bounds: the same range always has the same id; None if there was nothing.
        parts: the windows.
        interest: which changes the consumer wants.
        store: store of their files.
        ack: moves the consumer's cursor over this batch.
    """

    def __init__(
        self,
        id_: str | None,
        parts: Sequence[BatchSlice],
        interest: Interest,
        store: ObjectStore,
        ack: Callable[[str], None],
    ) -> None:
        self.id = id_
        self.parts = tuple(parts)
        self._interest = interest
        self._store = store
        self._ack = ack

    def __bool__(self) -> bool:
        """Whether it has windows: an empty result of ``get`` is false."""
        return self.id is not None

    def __repr__(self) -> str:
        """Text for messages."""
        return f"Batch({self.id})"

    @property
    def rows(self) -> int:
        """Maximum number of rows: for an XA COMMIT all rows of its file are counted."""
        return sum(part.most_rows(self._interest) for part in self.parts)

    @property
    def last_time(self) -> datetime | None:
        """XaCommit time of its last event; None when its windows are empty."""
        return max((t for part in self.parts if (t := part.manifest.last_time) is not None), default=None)

    @property
    def ddl(self) -> tuple[Ddl, ...]:
        """Statements on captured tables, in order."""
        return tuple(
            ddl
            for part in self.parts
            for ddl in part.manifest.ddl
            if part.floor is None or Point.at(part.manifest.epoch, ddl.position) >= part.floor
        )

    def ack(self) -> None:
        """Move the consumer's cursor over this batch, which must be the oldest in flight; nothing for an empty one.

        Raises:
            CursorMoved: it is not the oldest in flight, or another holder took over.
        """
        if self.id is not None:
            self._ack(self.id)

    def changes(self) -> Iterator[TableRows]:
        """Read the rows: for each table, and each version of its columns, one Arrow table in the order of changes.

        Raises:
            StoreError: a file cannot be read.
        """
        found: dict[tuple[TableName, str], list[pa.Table]] = {}
        schemas: dict[tuple[TableName, str], TableSchema] = {}
        for part in self.parts:
            for schema, rows in self._read(part):
                name = (schema.name, schema.id)
                schemas.setdefault(name, schema)
                found.setdefault(name, []).append(rows)
        for name, tables in found.items():
            rows = in_order(tables)
            if rows.num_rows:
                yield TableRows(name[0], schemas[name], rows)

    def tables(self) -> dict[str, pa.Table]:
        """Read the rows as one Arrow table for each source table, in the order of changes.

        Columns that a version of the table does not have are null in its rows; integers take the wider type.

        Raises:
            IncompatibleSchema: the type of a column changed so that no type holds both; see :meth:`changes`.
            StoreError: a file cannot be read.
        """
        versions: dict[str, list[TableRows]] = {}
        for one in self.changes():
            versions.setdefault(one.table, []).append(one)
        return {table: _united(table, found) for table, found in versions.items()}

    def _read(self, part: BatchSlice) -> Iterator[tuple[TableSchema, pa.Table]]:
        """Yield the matching rows of each file of a window."""
        for file in part.manifest.files:
            if wants(self._interest, file.table):
                rows = read_file(self._store, layout.beside(part.key, file.path), file)
                yield self._chosen(from_point(rows, part.floor), part.manifest.schemas[file.schema_id])
        held: dict[str, tuple[Manifest, list[XaCommit]]] = {}
        for commit, key, manifest in part.commits:
            held.setdefault(key, (manifest, []))[1].append(commit)
        for key, (manifest, commits) in held.items():
            tables = {table for commit in commits for table in commit.prepared.tables if wants(self._interest, table)}
            for file in manifest.prepared_files:
                if file.table in tables:
                    rows = committed(read_file(self._store, layout.beside(key, file.path), file), commits)
                    yield self._chosen(rows, manifest.schemas[file.schema_id])

    def _chosen(self, rows: pa.Table, schema: TableSchema) -> tuple[TableSchema, pa.Table]:
        kept_rows, kept_schema = chosen(rows, schema, kept(self._interest, (c.name for c in schema.columns)))
        return kept_schema, kept_rows


def _united(table: str, versions: Sequence[TableRows]) -> pa.Table:
    """Unite all versions of a table; ``_absent`` marks are reordered to the columns of the result."""
    names = list(dict.fromkeys(column.name for one in versions for column in one.schema.columns))
    try:
        rows = in_order([_marked(one, names) for one in versions])
    except pa.ArrowTypeError as error:
        raise IncompatibleSchema(
            f"the type of a column changed within a batch so that no type holds both: {error}",
            hint="Take Batch.changes(), which keeps the versions of a table apart.",
            table=table,
        ) from error
    return rows.select([*CHANGE_COLUMNS, ABSENT, *names])


def _marked(one: TableRows, names: Sequence[str]) -> pa.Table:
    """Reorder the ``_absent`` marks to other columns; a column that the version does not have is marked as present."""
    own = [column.name for column in one.schema.columns]
    if own == list(names) or one.rows.column(ABSENT).null_count == one.rows.num_rows:
        return one.rows
    indexes = [own.index(name) if name in own else None for name in names]
    texts = one.rows.column(ABSENT).to_pylist()
    marks = [t and "".join(CELL_HERE if index is None else t[index] for index in indexes) for t in texts]
    return one.rows.set_column(len(CHANGE_COLUMNS), ABSENT, pa.array(marks, pa.string()))
