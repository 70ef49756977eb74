"""The keys that the batches of a merge changed in one table, and the last batch of each. Only columns of the key are read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from random import Random

import pyarrow as pa
import pyarrow.compute as pc

from cdc_lib.errors import IncompatibleSchema
from cdc_lib.merge.plan import StoredBatch
from cdc_lib.model.manifest import CHANGE_COLUMNS, DataFile
from cdc_lib.model.table_name import TableName
from cdc_lib.model.value_policy import ValuePolicy
from cdc_lib.model.xa_settlement import XaCommit
from cdc_lib.ports import ObjectStore
from cdc_lib.reselect.rows import REPLACED
from cdc_lib.store import layout
from cdc_lib.store.batch_rows import committed, read_columns
from cdc_lib.verify.canonical_text import Cell, has_null
from cdc_lib.verify.cell_arrays import text_array
from cdc_lib.verify.comparability import Subject

READ_ROWS = 100_000
"""Changes of one table whose keys are read at most; of more, those of some files, chosen at random."""

_YEAR_ZERO = "0000-"

_BATCH = "cdc_batch"
"""Number of the last batch of a key, beside columns that have the names ``0``, ``1``, …"""


@dataclass(frozen=True, slots=True)
class ChangedKey:
    """One key.

    Args:
        texts: of the key's cells.
        batch: key of the manifest of the last batch that has a change of it.
    """

    texts: tuple[str, ...]
    batch: str


@dataclass(frozen=True, slots=True)
class ChangedKeys:
    """Keys of one table.

    Args:
        chosen: those to compare.
        changes: rows of the table in the batches.
        sampled: whether the batches have more keys than these.
        unusable: keys that cannot be looked up; see :func:`can_be_looked_up`.
    """

    chosen: tuple[ChangedKey, ...]
    changes: int
    sampled: bool
    unusable: int


@dataclass(frozen=True, slots=True)
class _KeyFile:
    """One file of the table: of a batch, or of prepared rows some of which a batch commits."""

    batch: int
    key: str
    file: DataFile
    names: tuple[str, ...]
    commits: tuple[XaCommit, ...] = ()


def changed_keys(
    store: ObjectStore, subject: Subject, batches: Sequence[StoredBatch], most: int, seed: str
) -> ChangedKeys:
    """Return the keys that batches changed: all of them, or ``most`` at random.

    Args:
        store: holds the batches.
        subject: the table.
        batches: of the merge, in its order.
        most: keys to return.
        seed: the same one gives the same keys.

    Raises:
        CorruptBatch: a file cannot be read.
        IncompatibleSchema: the table's key became another one within the batches.
    """
    table, cells = subject.schema.name, subject.keys
    random = Random(seed)  # noqa: S311 - a sample, no secret
    files = list(_files(table, batches))
    changes = sum(one.file.rows for one in files)
    numbers = chosen_files([one.file.rows for one in files], random)
    if not numbers:
        return ChangedKeys((), changes, sampled=False, unusable=0)
    parts = [_keys(store, files[number], len(cells)) for number in numbers]
    rows = _together(table, parts)
    names = [str(number) for number in range(len(cells))]
    distinct = rows.group_by(names, use_threads=False).aggregate([(_BATCH, "max")])
    chosen = distinct.take(pa.array(chosen_keys(distinct.num_rows, most, random), pa.int64()))
    texts = zip(
        *(text_array(cell, chosen.column(name)).to_pylist() for cell, name in zip(cells, names, strict=True)),
        strict=True,
    )
    last = chosen.column(f"{_BATCH}_max").to_pylist()
    found = [
        ChangedKey(tuple(map(str, key)), batches[number].key)
        for key, number in zip(texts, last, strict=True)
        if can_be_looked_up(cells, key, subject.values)
    ]
    sampled = len(numbers) < len(files) or chosen.num_rows < distinct.num_rows
    return ChangedKeys(tuple(found), changes, sampled, chosen.num_rows - len(found))


def can_be_looked_up(cells: Sequence[Cell], key: Sequence[str | None], policy: ValuePolicy) -> bool:
    """Whether the lake holds a key exactly as the source does, and Python can hold it.

    Args:
        cells: of the key.
        key: their texts; an invalid date is null.
        policy: the source file's policy for values that the lake cannot hold.
    """
    if has_null(cells, key):
        return False
    for cell, text in zip(cells, key, strict=True):
        if text is None or (policy.replaces and REPLACED in text):
            return False
        if cell.column.type.family.is_date and text.startswith(_YEAR_ZERO):
            return False
    return True


def _together(table: TableName, parts: Sequence[pa.Table]) -> pa.Table:
    """Return the keys of all files, in the widest of their types."""
    try:
        return pa.concat_tables(parts, promote_options="permissive")
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        raise _other_key(table) from None


def _other_key(table: TableName) -> IncompatibleSchema:
    return IncompatibleSchema(
        "the primary key of the table became another one within this merge",
        hint="cdc verify compares the whole table.",
        table=table,
    )


def _files(table: TableName, batches: Sequence[StoredBatch]) -> Iterator[_KeyFile]:
    for number, batch in enumerate(batches):
        for file in batch.manifest.files:
            if file.table == table:
                names = batch.manifest.schemas[file.schema_id].primary_key
                yield _KeyFile(number, layout.beside(batch.key, file.path), file, names)
        holding = {held.key: held for _, held in batch.commits}
        for key, held in holding.items():
            commits = tuple(commit for commit, _ in batch.commits if commit.manifest == key)
            for file in held.manifest.prepared_files:
                if file.table == table:
                    names = held.manifest.schemas[file.schema_id].primary_key
                    yield _KeyFile(number, layout.beside(key, file.path), file, names, commits)


def _keys(store: ObjectStore, one: _KeyFile, parts: int) -> pa.Table:
    """Return the keys of a file, under the numbers of their parts: a part may have been renamed since."""
    if len(one.names) != parts:
        raise _other_key(one.file.table)
    more = CHANGE_COLUMNS if one.commits else ()
    rows = pa.concat_tables(read_columns(store, one.key, one.file, [*one.names, *more]).values())
    if one.commits:
        rows = committed(rows, one.commits)
    columns = [_plain_zero(rows.column(name)) for name in one.names]
    batch = pa.repeat(pa.scalar(one.batch, pa.int32()), rows.num_rows)
    return pa.table([*columns, batch], names=[*map(str, range(parts)), _BATCH])


def _plain_zero(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return minus zero as zero: they are one key."""
    return pc.add(column, pa.scalar(0.0, column.type)) if pa.types.is_floating(column.type) else column


def chosen_files(rows: Sequence[int], random: Random, most: int = READ_ROWS) -> list[int]:
    """Return the numbers of the files to read, in ascending order: all of them, or random ones until enough rows are among them."""
    if sum(rows) <= most:
        return list(range(len(rows)))
    shuffled = random.sample(range(len(rows)), len(rows))
    chosen, total = [], 0
    for number in shuffled:
        if total >= most:
            break
        chosen.append(number)
        total += rows[number]
    return sorted(chosen)


def chosen_keys(count: int, most: int, random: Random) -> list[int]:
    """Return the numbers of the keys to compare, in ascending order: all of them, or ``most`` at random."""
    return list(range(count)) if count <= most else sorted(random.sample(range(count), most))
