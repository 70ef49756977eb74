"""Which columns of a table can be compared with its lake table, and why the others cannot: decided before the read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

from cdc_lib.model.lake_table import MODE_COLUMNS, LakeName, LakeTable
from cdc_lib.model.lexer import quoted
from cdc_lib.model.position import Point
from cdc_lib.model.projection import Projection
from cdc_lib.model.route import Target
from cdc_lib.model.schema import Column, TableSchema
from cdc_lib.model.table_mode import IS_CURRENT, IS_DELETED, Mode
from cdc_lib.model.value_policy import ValuePolicy
from cdc_lib.model.verify import UncomparedColumn
from cdc_lib.verify.canonical_text import Cell, cell_of, lake_hash, lake_row_text, source_hash, source_row_text

How = Literal["ranges", "hashes", "copies"]
"""``ranges`` of the key's first column, if an integer; ``hashes`` of other keys; ``copies`` of rows without a key."""

CURRENT_ROWS: dict[Mode, str] = {"soft_delete": f"{quoted(IS_DELETED)} IS NOT TRUE", "scd2": quoted(IS_CURRENT)}
"""By mode, the condition of rows that exist at the source: all rows of a mirror; an append table is folded."""

Key = tuple[str, ...]
"""Canonical texts of the key columns of a row."""

BUCKETS = {"ranges": 64, "hashes": 4096, "copies": 4096}
"""Number of hash buckets into which an unequal range is split."""


@dataclass(frozen=True, slots=True)
class Subject:
    """A source table and the lake table that it is compared with.

    Args:
        schema: the source's columns that are compared, and the key.
        lake: the lake table.
        cells: of the compared columns, in their order.
        how: how rows are identified and ranges are cut.
        constants: columns of the lake table that identify this source table's rows, and their values.
        uncompared: columns that are not compared.
        values: the source file's policy for values that the lake cannot hold.
        current_rows: SQL condition of the lake's rows that must exist at the source; empty for all.
        folded: whether the lake table is in append mode, so its changes add up to the rows at the source.
        kept_before: the lake's rows from before this point are kept although the source removed them: they are not compared.
    """

    schema: TableSchema
    lake: LakeName
    cells: tuple[Cell, ...]
    how: How
    constants: Mapping[str, str]
    uncompared: tuple[UncomparedColumn, ...]
    values: ValuePolicy
    current_rows: str = ""
    folded: bool = False
    kept_before: Point | None = None

    def as_in(self, state: LakeTable | None) -> Subject:
        """Return the same tables, without the rows that a state of the lake table keeps although the source removed them."""
        return replace(self, kept_before=state.marker.kept_before if state is not None else None)

    @property
    def keys(self) -> tuple[Cell, ...]:
        """The cells of the key, in its order; all cells if the table has no key."""
        by_name = {cell.column.name: cell for cell in self.cells}
        return tuple(by_name[name] for name in self.schema.primary_key) or self.cells

    @property
    def first(self) -> str:
        """Name of the key's first column, by which ranges are cut."""
        return self.schema.primary_key[0]

    @property
    def source_hash(self) -> str:
        """SQL of a row's hash."""
        return source_hash(source_row_text(self.cells))

    @property
    def lake_hash(self) -> str:
        """Spark SQL of a row's hash."""
        return lake_hash(lake_row_text(self.cells))

    @property
    def source_name(self) -> str:
        """SQL of a row's identifying name: the text of its key, or its hash."""
        return self.source_hash if self.how == "copies" else source_row_text(self.keys)

    @property
    def lake_name(self) -> str:
        """The same in Spark SQL, as text."""
        return f"CAST({self.lake_hash} AS STRING)" if self.how == "copies" else lake_row_text(self.keys)

    @property
    def source_bucket(self) -> str:
        """SQL of a row's bucket in its range."""
        hashed = self.source_hash if self.how == "copies" else f"CRC32({self.source_name})"
        return f"({hashed} % {BUCKETS[self.how]})"

    @property
    def lake_bucket(self) -> str:
        """The same in Spark SQL, over the columns ``hash`` and ``name`` of the row."""
        return f"({'hash' if self.how == 'copies' else 'crc32(name)'} % {BUCKETS[self.how]})"


def subject_of(
    whole: TableSchema,
    projection: Projection,
    target: Target,
    lake: LakeName,
    state: LakeTable | None,
    constants: Mapping[str, str],
    values: ValuePolicy,
    *,
    ignores_added: bool = False,
) -> Subject | str:
    """Return what is compared, or why the table cannot be compared.

    Args:
        whole: all columns of the source.
        projection: the stored columns, and their masks.
        target: the lake table's route.
        lake: its name.
        state: the lake table now; None if it is missing, which equals an empty one.
        constants: columns that identify the source table of a row, and their values.
        values: the source file's policy for values that the lake cannot hold.
        ignores_added: whether the lake ignores columns that the source adds.
    """
    if target.where:
        return "a filter says which rows the lake keeps, and the source cannot evaluate Spark SQL"
    if projection.masked_keys:
        return f"column {projection.masked_keys[0]} of its key has a mask, so that rows cannot be distinguished"
    key = (*constants, *whole.primary_key) if whole.primary_key else ()
    if state is not None and tuple(map(str.lower, state.primary_key)) != tuple(map(str.lower, key)):
        names = ", ".join(state.primary_key) or "none"
        return f"its key at the source is {', '.join(key) or 'none'}, and that of the lake table {names}"
    types = None if state is None else state.types
    left_out, columns = _columns(whole, projection, target, types, ignores_added=ignores_added)
    left_out += _kept_columns(whole, target, state)
    compared = TableSchema(whole.database, whole.table, tuple(columns), whole.primary_key)
    if not columns or set(whole.primary_key) - {column.name for column in columns}:
        return "no column of it can be compared, or only a part of its key"
    lake_types = {c.name: c.type.lake_type if types is None else types[c.name.lower()] for c in columns}
    cells = tuple(cell_of(column, lake_types[column.name], values.of(compared, column)) for column in columns)
    current = CURRENT_ROWS.get(state.mode, "") if state is not None else ""
    folded = state is not None and state.mode == "append"
    return Subject(compared, lake, cells, _how(compared), dict(constants), tuple(left_out), values, current, folded)


def _columns(
    whole: TableSchema,
    projection: Projection,
    target: Target,
    types: Mapping[str, str] | None,
    *,
    ignores_added: bool,
) -> tuple[list[UncomparedColumn], list[Column]]:
    kept = {column.name: column for column in projection.source.columns}
    left_out, columns = [], []
    for column in whole.columns:
        if column.name not in kept:
            left_out.append(UncomparedColumn(column.name, "the source file leaves it out (columns)"))
        elif column.name in projection.masked:
            left_out.append(UncomparedColumn(column.name, "it is masked in the lake"))
        elif not target.keeps(column.name):
            left_out.append(UncomparedColumn(column.name, "the route leaves it out"))
        elif types is not None and column.name.lower() not in types:
            left_out.append(
                UncomparedColumn(
                    column.name,
                    "the lake table does not have it: the source file ignores added columns (schema_changes.add_column)"
                    if ignores_added
                    else "the lake table does not have it: no row with it was merged yet",
                )
            )
        elif not column.type.is_supported:
            left_out.append(UncomparedColumn(column.name, f"the type {column.type.text} is not read"))
        else:
            columns.append(kept[column.name])  # with the lake's type of it
    return left_out, columns


def _kept_columns(whole: TableSchema, target: Target, state: LakeTable | None) -> list[UncomparedColumn]:
    """Return the lake's columns that the source does not have; tables that share a lake table may have them."""
    if state is None or target.routed:
        return []
    known = {column.name.lower() for column in whole.columns} | set(MODE_COLUMNS[state.mode])
    why, computed = "the source does not have it, and the lake keeps it", {name.lower() for name in state.computed}
    return [
        UncomparedColumn(column.name, "the merge computes it (computed)" if column.name.lower() in computed else why)
        for column in state.columns
        if column.name.lower() not in known
    ]


def _how(schema: TableSchema) -> How:
    if not schema.primary_key:
        return "copies"
    types = {column.name: column.type for column in schema.columns}
    return "ranges" if types[schema.primary_key[0]].family.is_integer else "hashes"


def lake_range(subject: Subject, cuts: int) -> tuple[str, ...]:
    """Return the Spark SQL of a row's range number: how many of ``cuts`` are less than the key's first column.

    A binary search: each step is a new value of the column ``__range`` from the previous one, which begins as 0. Spark
    compiles consecutive columns, but would interpret a lambda for every row.

    Args:
        subject: the tables.
        cuts: length of the array ``__cuts``, a column of the row; see :func:`lake_cuts`. The key is in ``__first``.
    """
    if subject.how != "ranges" or not cuts:
        return ()
    key = f"CAST(__first AS {_cut_type(subject)})"
    steps = (1 << bit for bit in reversed(range(cuts.bit_length())))
    return tuple(f"__range + IF(get(__cuts, __range + {step - 1}) < {key}, {step}, 0)" for step in steps)


def lake_cuts(subject: Subject, cuts: tuple[int, ...]) -> str:
    """Return the Spark SQL of the array of cuts, padded for a binary search with values that no key exceeds."""
    kind = _cut_type(subject)
    beyond = 10**20 - 1 if _is_long(subject) else 2**63 - 1
    filled = (*cuts, *[beyond] * ((1 << len(cuts).bit_length()) - 1 - len(cuts)))
    return f"array({', '.join(f'CAST({cut} AS {kind})' for cut in filled)})"


def _cut_type(subject: Subject) -> str:
    return "DECIMAL(20,0)" if _is_long(subject) else "BIGINT"


def _is_long(subject: Subject) -> bool:
    return subject.keys[0].column.type.lake_type == "decimal(20,0)"
