"""Many changes in parts that fit into memory: all changes of a key are in one part, and most parts hold a range of keys.

Changes come in the order in which they were drained. They go to a temporary file first, since only then it is known how their
keys are spread; from there they are split. Few changes are one part, and go nowhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import chain
from tempfile import TemporaryFile
from typing import IO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cdc_lib.apply.key_rows import AskedKeys, KeyRows, Rows

PART_BYTES = 32 << 20
"""Bytes of the changes of a part in memory; to apply it takes some five times as much."""

MOST_PARTS = 500
"""Each part is an open file while changes are split."""

_STRIDE = 251
"""Of so many rows, the key of one is looked at; a prime, because rows often come in round numbers."""

ReadPart = Callable[[], pa.Table]
"""Returns the changes of a part; called once."""


_TOGETHER = -1
"""Number of the part of the keys that have to be together."""


@contextmanager
def parts_of(
    tables: Iterable[pa.Table],
    key: Sequence[str],
    folder: str | None = None,
    together: Callable[[pa.Table], pa.Table] | None = None,
) -> Iterator[list[ReadPart]]:
    """Yield the parts of changes, at least one; their files are removed after the block.

    Args:
        tables: changes with the same columns, at least one table.
        key: columns of the key; without one, a part holds any changes.
        folder: for temporary files; that of the system by default.
        together: returns those of the keys of a table that have to be in one part with others; gets all tables in order.
    """
    rest, few, size = iter(tables), list[pa.Table](), 0
    for table in rest:
        few.append(table)
        size += table.nbytes
        if size > PART_BYTES:
            break
    else:
        yield [partial(pa.concat_tables, few)]
        return
    with _SpillFiles(folder) as drained, _SpillFiles(folder) as ranges:
        sample, size = list[pa.Table](), 0
        joined = list[pa.Table]()
        for table in chain(_emptied(few), rest):
            drained.write(0 if key else size // PART_BYTES, table)
            size += table.nbytes
            sample.append(sample_of(table, key))
            joined += [together(table)] if together is not None else []
        if not key:
            yield drained.parts()
            return
        cuts = PartCuts.of(pa.concat_tables(sample), min(-(-size // PART_BYTES), MOST_PARTS))
        asked = _distinct(joined)
        for table in drained.tables():
            is_joined = np.zeros(table.num_rows, np.bool_)
            if asked is not None:
                is_joined[asked.find(KeyRows.of(table.select(key).columns, None))[0]] = True
                ranges.write(_TOGETHER, table.filter(pa.array(is_joined)))
            for number, rows in split(table.filter(pa.array(~is_joined)), cuts):
                ranges.write(number, rows)
        yield ranges.parts()


def _distinct(keys: Sequence[pa.Table]) -> AskedKeys | None:
    found = pa.concat_tables(keys).group_by(keys[0].column_names).aggregate([]) if keys else None
    return AskedKeys([one.combine_chunks() for one in found.columns]) if found else None


def _emptied(tables: list[pa.Table]) -> Iterator[pa.Table]:
    while tables:
        yield tables.pop(0)


class _SpillFiles(ExitStack):
    """Temporary files of rows; they have no names, so that those of a killed process take no room.

    Args:
        folder: of the files.
    """

    def __init__(self, folder: str | None) -> None:
        super().__init__()
        self._folder = folder
        self._files: dict[int, tuple[IO[bytes], pa.RecordBatchStreamWriter]] = {}

    def write(self, number: int, rows: pa.Table) -> None:
        """Add rows to a file."""
        if number not in self._files:
            file = self.enter_context(TemporaryFile(dir=self._folder))  # noqa: SIM115 - the stack closes it
            self._files[number] = file, pa.ipc.new_stream(pa.PythonFile(file, "w"), rows.schema)
        self._files[number][1].write_table(rows)

    def tables(self) -> Iterator[pa.Table]:
        """Yield the rows of all files as they were written, and close them."""
        for file in self._written():
            with file, pa.ipc.open_stream(pa.PythonFile(file, "r")) as stream:
                yield from (pa.Table.from_batches([batch]) for batch in stream)

    def parts(self) -> list[ReadPart]:
        """Return what reads and closes each file, in the order of their numbers."""
        return [partial(_read, file) for file in self._written()]

    def _written(self) -> list[IO[bytes]]:
        files = []
        for _, (file, writer) in sorted(self._files.items()):
            writer.close()
            file.seek(0)
            files.append(file)
        return files


def _read(file: IO[bytes]) -> pa.Table:
    with file, pa.ipc.open_stream(pa.PythonFile(file, "r")) as stream:
        return stream.read_all().combine_chunks()


def sample_of(changes: pa.Table, key: Sequence[str]) -> pa.Table:
    """Return the keys of some changes."""
    return changes.select(key).take(pa.array(np.arange(0, changes.num_rows, _STRIDE)))


@dataclass(frozen=True, slots=True)
class PartCuts:
    """Where parts begin and end.

    Args:
        column: of the key.
        values: at each of them a part ends and the next one begins; ascending.
    """

    column: str
    values: pa.Array

    @classmethod
    def of(cls, sample: pa.Table, parts: int) -> PartCuts:
        """Cut by the column of the key that splits best: one that begins with a tenant may have few values there.

        Args:
            sample: key columns of some changes.
            parts: how many are wanted.
        """
        best, least = None, sample.num_rows + 1
        for name in sample.column_names:
            column = sample.column(name).combine_chunks()
            by = pc.array_sort_indices(column)
            ordered = column.take(by).slice(0, len(column) - column.null_count)
            places = pa.array(np.arange(1, parts) * len(ordered) // parts)
            values = ordered.take(places).unique() if len(ordered) else ordered
            largest = int(np.bincount(part_numbers(column, values), minlength=1).max(initial=0))
            if largest < least:
                best, least = cls(name, values), largest
        assert best is not None  # a key has columns
        return best


def part_numbers(column: pa.Array | pa.ChunkedArray, cuts: pa.Array) -> Rows:
    """Return for each value how many of the cuts are not greater than it; none for null.

    Args:
        column: values.
        cuts: ascending, of the same type.
    """
    found: Rows = np.zeros(len(column), np.int64)
    step = 1 << len(cuts).bit_length() >> 1
    while step:
        at = found + (step - 1)
        is_cut = at < len(cuts)
        values = cuts.take(pa.array(np.minimum(at, len(cuts) - 1)))
        reached = pc.fill_null(pc.greater_equal(column, values), False).to_numpy(zero_copy_only=False)
        found = np.where(is_cut & reached, found + step, found)
        step >>= 1
    return found


def split(rows: pa.Table, cuts: PartCuts) -> Iterator[tuple[int, pa.Table]]:
    """Yield the number of each part that rows belong to, and these rows in their order."""
    if not rows.num_rows:
        return
    numbers = part_numbers(rows.column(cuts.column).combine_chunks(), cuts.values)
    by = np.argsort(numbers, kind="stable")
    rows, numbers = rows.take(pa.array(by)), numbers[by]
    starts = np.flatnonzero(np.diff(numbers, prepend=-1))
    for start, stop in zip(starts, [*starts[1:], len(numbers)], strict=True):
        yield int(numbers[start]), rows.slice(start, stop - start)
