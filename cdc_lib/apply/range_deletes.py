"""Deletes of lake rows in a key range that the source no longer has, merged together with the rows of a snapshot.

Numbers, dates and bytes compare here as at the source. Texts and times do not: the source decides which of these keys lie in the
range, for the keys that are in no chunk.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from decimal import ROUND_FLOOR, Context, Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from cdc_lib.apply.key_rows import AskedKeys, KeyRows
from cdc_lib.apply.rows import LakeShape, is_before, order_of
from cdc_lib.lake.arrow_types import is_exact_number, kind_of
from cdc_lib.merge.collapse import DELETE, READ
from cdc_lib.merge.key_ranges import ReadRange
from cdc_lib.model.lake_table import MODE_COLUMNS, ORDER
from cdc_lib.model.manifest import ABSENT, BINLOG, CELL_ABSENT, CELL_HERE, EPOCH, GTID, OFFSET, OP, ROW, TS
from cdc_lib.model.position import SNAPSHOT_ROW, Point
from cdc_lib.model.schema import SourceType
from cdc_lib.model.table_mode import IS_DELETED, VALID_FROM, Mode
from cdc_lib.ports import LakeRows

_WIDE = 76
"""Most digits that Arrow compares."""

InRange = Callable[[ReadRange, pa.Table], pa.Table]
"""Returns which keys, by the lake's names, lie in a range by the source's order; raises an error where that cannot be known."""


@dataclass(frozen=True, slots=True)
class RangeDeletes:
    """Finds the rows of a range that was read completely which are in no chunk.

    Args:
        read_range: the range.
        kept: the lake keeps rows from before this point; None for no such point.
        shape: of the source table's rows.
        key: names of the lake's columns that the source's key has, in its order.
        lake: the rows of the lake table.
        in_range: asks the source.
        mode: of the lake table.
    """

    read_range: ReadRange
    kept: Point | None
    shape: LakeShape
    key: tuple[str, ...]
    lake: LakeRows
    in_range: InRange
    mode: Mode

    def among(self, changes: Iterable[pa.Table]) -> Iterator[pa.Table]:
        """Yield changes of the table, including its chunks' rows, and then the deletes.

        Raises:
            MergeError: the source is needed, and there are too many keys or no access to it.
            SourceError: the source does not answer.
        """
        if self._is_exact and self.mode != "scd2":
            # Of a delete and a read row with one order key the row counts, and of two rows the later one.
            yield from changes
            yield from map(self._deletes, self._keys())
            return
        keys = pa.concat_tables([pa.schema(self._fields).empty_table(), *self._keys()])
        keys = keys.group_by(list(self.key)).aggregate([]).select(self.key).combine_chunks()
        asked = AskedKeys([one.combine_chunks() for one in keys.columns]) if keys.num_rows else None
        is_read: NDArray[np.bool_] = np.zeros(keys.num_rows, np.bool_)
        for rows in changes:
            read = rows.filter(pc.equal(rows.column(OP), READ))
            if asked is not None and read.num_rows:
                _, numbers = asked.find(KeyRows.of(read.select(self.key).columns, None))
                is_read[numbers] = True
            yield rows
        keys = keys.filter(pa.array(~is_read))
        if keys.num_rows and not self._is_exact:
            keys = self.in_range(self.read_range, keys).select(self.key).cast(pa.schema(self._fields))
        if keys.num_rows:
            yield self._deletes(keys)

    @property
    def _fields(self) -> list[pa.Field]:
        by_name = {field.name: field for field in self.shape.fields}
        return [pa.field(name, by_name[name].type) for name in self.key]

    @property
    def _types(self) -> list[SourceType]:
        schema = self.read_range.schema
        by_name = {column.name: column.type for column in schema.columns}
        return [by_name[name] for name in schema.primary_key]

    @property
    def _ends(self) -> list[tuple[tuple[str, ...], Callable[..., Any], Callable[..., Any]]]:
        """Each end of the range, with the comparison of its first columns and that of its last one."""
        selection = self.read_range.selection
        low = [(selection.lower, pc.greater, pc.greater_equal)] if selection.lower is not None else []
        return [*low, *([(selection.upper, pc.less, pc.less_equal)] if selection.upper is not None else [])]

    @property
    def _same(self) -> int:
        """How many of the first columns of the key the lake orders as the source does."""
        types = self._types
        return next((number for number, one in enumerate(types) if not one.orders_alike), len(types))

    @property
    def _is_exact(self) -> bool:
        return all(len(end) <= self._same for end, _, _ in self._ends)

    def _keys(self) -> Iterator[pa.Table]:
        """Yield the keys of the rows in the range; more of them where the lake does not order all columns as the source."""
        selection, least, most = self.read_range.selection, None, None
        if self._same and is_exact_number(self._fields[0].type):
            least, most = (_whole(end[0]) if end is not None else None for end in (selection.lower, selection.upper))
        marks = (IS_DELETED,) if self.mode == "soft_delete" else ()
        for rows in self.lake.live((*self.key, *ORDER, *self.shape.constants, *marks), self.key[0], least, most):
            order = order_of(rows)
            chosen = is_before(order, self.read_range.point)
            for name in marks:
                chosen &= ~pc.fill_null(rows.column(name), False).to_numpy()
            if self.kept is not None:
                chosen &= ~is_before(order, self.kept)
            for name, value in self.shape.constants.items():
                chosen &= pc.fill_null(pc.equal(rows.column(name), value), False).to_numpy()
            found = rows.select(self.key).filter(pa.array(chosen)).cast(pa.schema(self._fields)).drop_null()
            yield found.filter(self._is_within(found))

    def _is_within(self, keys: pa.Table) -> pa.ChunkedArray | pa.Array:
        """Compare column by column, as ``cdc_lib/snapshot/chunks.py`` does at the source.

        A condition on the first columns alone selects more keys, including all in the range.
        """
        found = pa.repeat(True, keys.num_rows)
        for end, strict, last in self._ends:
            if not (texts := end[: self._same]):
                continue
            same, within = pa.repeat(True, keys.num_rows), pa.repeat(False, keys.num_rows)
            for number, (name, text) in enumerate(zip(self.key, texts, strict=False), 1):
                column, value = _comparable(keys.column(name), text)
                compare = last if number == len(texts) else strict
                within = pc.or_(within, pc.and_(same, compare(column, value)))
                same = pc.and_(same, pc.equal(column, value))
            found = pc.and_(found, within)
        return found

    def _deletes(self, keys: pa.Table) -> pa.Table:
        """Return deletes of keys, with ``_absent``: a row that stays with a mark keeps its cells."""
        of = self.read_range
        values = {OP: DELETE, EPOCH: of.epoch, BINLOG: of.low.file_number, OFFSET: of.low.offset, ROW: SNAPSHOT_ROW}
        values |= {TS: of.at, GTID: None, **self.shape.constants}
        if self.mode == "scd2":
            values[VALID_FROM] = of.at
        schema = self.shape.schema.append(pa.field(ABSENT, pa.string()))
        known = {*self.key, *values, *MODE_COLUMNS[self.mode]}
        cells = [CELL_HERE if field.name in known else CELL_ABSENT for field in self.shape.schema if field.name != OP]
        values[ABSENT] = "".join(cells) if self.mode == "soft_delete" else None
        arrays = [
            keys.column(field.name)
            if field.name in self.key
            else pa.repeat(pa.scalar(values.get(field.name), field.type), keys.num_rows)
            for field in schema
        ]
        return pa.Table.from_arrays(arrays, schema=schema)


def with_range_deletes(changes: Iterable[pa.Table], ranges: Sequence[RangeDeletes]) -> Iterator[pa.Table]:
    """Yield changes of a table, and the deletes of rows that ranges of a snapshot do not have."""
    for one in ranges:
        changes = one.among(changes)
    yield from changes


def _comparable(column: pa.ChunkedArray, text: str) -> tuple[pa.ChunkedArray, pa.Scalar]:
    """Return a key column and a value of it in a type in which they compare."""
    if is_exact_number(column.type):
        scale = column.type.scale if pa.types.is_decimal(column.type) else 0
        common = pa.decimal256(_WIDE, scale + 1)
        return column.cast(common), pa.scalar(_at_scale(text, scale), common)
    return column, pa.scalar(kind_of(column.type).parse(text), column.type)


def _whole(text: str) -> int:
    """Return a number without what follows the point, as one of 64 bits."""
    return max(min(int(Decimal(text)), (1 << 63) - 1), -(1 << 63))


def _at_scale(text: str, scale: int) -> Decimal:
    """Return a number that compares as this one does with numbers of so many digits after the point, and has one digit more."""
    exact = Context(prec=10 * _WIDE)
    number = max(min(Decimal(text), Decimal(10) ** (_WIDE // 2)), -(Decimal(10) ** (_WIDE // 2)))
    step = Decimal(1).scaleb(-scale)
    below = number.quantize(step, ROUND_FLOOR, exact)
    return below if below == number else exact.add(below, step / 2)
