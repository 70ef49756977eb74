"""Where the values of few rows of a data file come from: its pages, the keys in memory, or defaults."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import pyarrow as pa

from cdc_lib.read.cache import RecentlyUsed
from cdc_lib.read.columns import ReadColumn, default_array
from cdc_lib.read.pages.few import MOST_KEPT, FewRows
from cdc_lib.read.pages.index import PageIndex
from cdc_lib.read.pages.page import BYTE_ARRAY, TYPES, Kind, Value
from cdc_lib.read.parquet import ParquetFile, ParquetFiles
from cdc_lib.read.stored_values import ValueConversion, conversion
from cdc_lib.read.values import python_value

_conversion = lru_cache(maxsize=1_000)(conversion)


@dataclass(frozen=True, slots=True)
class GroupRows:
    """Rows of a row group.

    Args:
        opened: its file.
        number: of the row group.
        rows: numbers of the rows within it, ascending.
        keys: returns the key columns of the row group, which are in memory.
    """

    opened: ParquetFile
    number: int
    rows: list[int]
    keys: Callable[[], Sequence[pa.Array]]


@dataclass(frozen=True, slots=True)
class FewRowsPlan:
    """How columns of few rows of a file are read.

    Args:
        columns: all of them, in order.
        index: of the file's pages.
        stored: number and kind of each column that is read from pages.
        conversions: the same columns by name, and how their values are converted.
        keys: columns that are in memory, because the key was looked up in them; by name, which part of the key each is.
        defaults: columns that the file lacks, and their value.
    """

    columns: tuple[ReadColumn, ...]
    index: PageIndex
    stored: tuple[tuple[int, Kind], ...]
    conversions: tuple[tuple[str, ValueConversion], ...]
    keys: Mapping[str, int]
    defaults: Mapping[str, Any]

    @property
    def texts(self) -> list[tuple[str, int]]:
        """Name and number of each stored column whose values have different lengths."""
        named = zip(self.conversions, self.stored, strict=True)
        return [(name, number) for (name, _), (number, kind) in named if kind.physical == BYTE_ARRAY]

    def row(self, values: Iterable[Sequence[Value]], keys: Sequence[pa.Array], number: int) -> dict[str, Any]:
        """Return a row.

        Args:
            values: of the stored columns, one each.
            keys: the key columns of the row group.
            number: of the row in the row group.
        """
        found = dict(self.defaults)
        for (name, one), (value,) in zip(self.conversions, values, strict=True):
            found[name] = None if value is None else one.value(value)
        for name, part in self.keys.items():
            found[name] = python_value(keys[part][number])
        return {column.name: found[column.name] for column in self.columns}

    def table(self, values: Iterable[Sequence[Value]], keys: Sequence[pa.ChunkedArray], count: int) -> pa.Table:
        """Return rows.

        Args:
            values: of the stored columns.
            keys: the key columns of the rows.
            count: of the rows.
        """
        found = {name: one.array(some) for (name, one), some in zip(self.conversions, values, strict=True)}
        found |= {name: keys[part] for name, part in self.keys.items()}
        arrays = [default_array(one, count) if one.name in self.defaults else found[one.name] for one in self.columns]
        return pa.Table.from_arrays(arrays, schema=pa.schema([one.field for one in self.columns]))


def plan_few_rows(
    file: ParquetFile, index: PageIndex, columns: tuple[ReadColumn, ...], key: Sequence[ReadColumn]
) -> FewRowsPlan | None:
    """Return how columns of few rows are read; None if Arrow has to read them.

    Args:
        file: the file.
        index: of its pages.
        columns: to read.
        key: the columns of the key, which are in memory.
    """
    stored, conversions, defaults = [], [], {}
    # A minus zero of the file is a zero in the keys.
    keys = {one.name: part for part, one in enumerate(key) if one in columns and not pa.types.is_floating(one.type)}
    for column in columns:
        if column.name in keys:
            continue
        if column.field_id not in file.leaves:
            defaults[column.name] = python_value(default_array(column, 1)[0])
            continue
        number, of = file.leaves[column.field_id]
        element = index.elements[number]
        converted = _conversion(element.physical, of, column.type)
        if converted is None or element.physical not in TYPES or element.repetition > 1:
            return None
        stored.append((number, Kind(element.physical, element.length, element.repetition == 1)))
        conversions.append((column.name, converted))
    return FewRowsPlan(columns, index, tuple(stored), tuple(conversions), keys, defaults)


class FewRowsOfSnapshot:
    """Reads few rows of the files of a snapshot; a plan is made once for each file and choice of columns.

    Args:
        files: opens files.
        pages: keeps pages.
        key: the columns of the key.
    """

    def __init__(self, files: ParquetFiles, pages: RecentlyUsed, key: tuple[ReadColumn, ...]) -> None:
        self._files = files
        self._pages = pages
        self._key = key
        self._plans: dict[tuple[str, tuple[ReadColumn, ...]], FewRowsPlan | None] = {}

    def split(
        self, groups: Sequence[GroupRows], columns: Sequence[ReadColumn]
    ) -> tuple[tuple[ReadColumn, ...], tuple[ReadColumn, ...]]:
        """Return the columns whose values are read here, and those that Arrow reads sooner for many rows.

        To find a text without a dictionary, the lengths of those before it are read in Python, which one thread does at a time. Threads
        of a read of many keys wait for it, but Arrow decodes the pages of texts in several threads.
        """
        few = sum(len(group.rows) for group in groups) <= MOST_KEPT
        read = None if few else self._plan(groups[0].opened, tuple(columns))
        if read is None:
            return tuple(columns), ()
        texts = {name for name, number in read.texts if not read.index.has_dictionary(groups[0].number, number)}
        return (
            tuple(column for column in columns if column.name not in texts),
            tuple(column for column in columns if column.name in texts),
        )

    def row(self, group: GroupRows, columns: tuple[ReadColumn, ...]) -> dict[str, Any] | None:
        """Return columns of one row as Python values; None if Arrow has to read it."""
        read = self._read([group], columns)
        if read is None:
            return None
        plan, values = read
        return plan.row(values, group.keys() if plan.keys else (), group.rows[0])

    def table(self, groups: Sequence[GroupRows], columns: tuple[ReadColumn, ...]) -> pa.Table | None:
        """Return columns of rows of row groups of one file; None if Arrow has to read them."""
        read = self._read(groups, columns)
        if read is None:
            return None
        plan, values = read
        keys = []
        for part, one in enumerate(self._key if plan.keys else ()):
            taken = [group.keys()[part].take(pa.array(group.rows, pa.int64())) for group in groups]
            keys.append(pa.chunked_array(taken, one.type))
        return plan.table(values, keys, sum(len(group.rows) for group in groups))

    def _read(
        self, groups: Sequence[GroupRows], columns: tuple[ReadColumn, ...]
    ) -> tuple[FewRowsPlan, list[list[Value]]] | None:
        opened = groups[0].opened
        if (plan := self._plan(opened, columns)) is None:
            return None
        wanted = [FewRows(group.number, group.rows) for group in groups]
        values = opened.read_few(plan.index, self._pages, wanted, plan.stored) if plan.stored else []
        return None if values is None else (plan, values)

    def _plan(self, opened: ParquetFile, columns: tuple[ReadColumn, ...]) -> FewRowsPlan | None:
        name = (opened.path, columns)
        if name not in self._plans:
            index = self._files.pages(opened)
            self._plans[name] = None if index is None else plan_few_rows(opened, index, columns, self._key)
        return self._plans[name]
