"""The rows of a lake table that changes replace and that statements or snapshots remove, found in its data files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from cdc_lib.apply.complete import needing
from cdc_lib.apply.data_files import named, positions_of, rows_at
from cdc_lib.apply.fills import Fill, is_filled, needed_to_fill
from cdc_lib.apply.key_rows import AskedKeys, KeyRows, Rows
from cdc_lib.apply.removals import closed, erased_by, needed_columns, needed_to_erase, removed_by, with_marks
from cdc_lib.apply.rows import Order, less, order_of
from cdc_lib.model.lake_table import ORDER
from cdc_lib.model.table_commit import Erased, Superseded
from cdc_lib.model.table_mode import IS_CURRENT, Mode

ROWS_AT_ONCE = 131_072
"""Rows of a file that are looked at together."""


@dataclass(frozen=True, slots=True)
class StoredRows:
    """A data file of a lake table.

    Args:
        file: the open file.
        fields: all columns of the table.
        dead: positions of rows that are deleted, ascending.
        rows: how many rows it has, with deleted ones.
    """

    file: pa.NativeFile
    fields: tuple[pa.Field, ...]
    dead: Rows
    rows: int

    def at(self, positions: Rows, names: Sequence[str] | None = None) -> pa.Table:
        """Return rows with some columns, all by default; see :func:`cdc_lib.apply.data_files.rows_at`."""
        fields = self.fields if names is None else named(self.fields, names)
        return rows_at(self.file, fields, positions)

    def others(self, positions: Rows) -> Iterator[Rows]:
        """Yield the live rows but those at some positions, so many at once as fit into memory."""
        found = np.setdiff1d(np.arange(self.rows), np.union1d(self.dead, positions))
        yield from (found[start : start + ROWS_AT_ONCE] for start in range(0, len(found), ROWS_AT_ONCE))

    def to_fill(self, positions: Rows, fills: Sequence[Fill], mode: Mode) -> tuple[Rows, pa.Table]:
        """Return those of the positions whose rows get other values, and these rows as they are."""
        chosen = positions[is_filled(self.at(positions, needed_to_fill(fills, mode)), fills, mode)]
        return chosen, self.at(chosen)

    def erased(self, positions: Rows, rules: Sequence[Erased]) -> Rows:
        """Return those of the positions whose rows are erased."""
        return positions[erased_by(rules, self.at(positions, needed_to_erase(rules)))]

    def removed(self, positions: Rows, rules: Sequence[Superseded], mode: Mode) -> tuple[Rows, pa.Table | None]:
        """Return those of the positions whose rows a rule removes, and what stays of them: the rows with the marks of the mode."""
        shown = self.at(positions, needed_columns(rules, mode))
        rule = removed_by(rules, shown, mode)
        if mode == "scd2":
            rule[~pc.fill_null(shown.column(IS_CURRENT), False).to_numpy()] = -1
        positions, rule = positions[rule >= 0], rule[rule >= 0]
        if mode in ("mirror", "append") or not len(positions):
            return positions, None
        return positions, (with_marks if mode == "soft_delete" else closed)(self.at(positions), rule, rules)


@dataclass(frozen=True, slots=True)
class KeysOfChanges:
    """The keys of changes, and what is found of them in the table.

    Args:
        key: fields of the key's columns.
        keys: of the last changes, which are numbered in this order; None without changes.
        order: of these changes; None if no row of the table is newer.
        lacking: whether a change of the key may take cells of the table's row.
        newer: how many newer rows the table has of the key.
        old: the table's rows of the keys that lack cells.
    """

    key: tuple[pa.Field, ...]
    keys: AskedKeys | None
    order: Order | None
    lacking: NDArray[np.bool_]
    newer: NDArray[np.int64]
    old: list[pa.Table] = field(default_factory=list)

    @classmethod
    def of(
        cls, key: tuple[pa.Field, ...], keys: pa.Table, changes: pa.Table, order: Order | None, *, keeps_deleted: bool
    ) -> KeysOfChanges:
        """Number keys.

        Args:
            key: fields of the key's columns.
            keys: of the last changes, none twice.
            changes: all, with ``_absent``.
            order: of the last changes; None if no row of the table is newer.
            keeps_deleted: whether deleted rows stay, with their cells.
        """
        asked = AskedKeys([one.combine_chunks() for one in keys.columns]) if keys.num_rows else None
        lacking, newer = np.zeros(keys.num_rows, np.bool_), np.zeros(keys.num_rows, np.int64)
        partial = changes.select(keys.column_names).filter(pa.array(needing(changes, keeps_deleted=keeps_deleted)))
        if partial.num_rows and asked is not None:
            _, numbers = asked.find(KeyRows.of(partial.columns, None))
            lacking[numbers] = True
        return cls(key, asked, order, lacking, newer)

    def positions(self, file: pa.NativeFile) -> tuple[Rows, Rows]:
        """Return the positions of their rows in a data file, ascending, and the number of the key of each."""
        none = np.zeros(0, np.int64)
        return positions_of(file, self.key, self.keys) if self.keys is not None else (none, none)

    def replaced(self, stored: StoredRows, positions: Rows, numbers: Rows) -> Rows:
        """Return those of the positions whose rows are live and not newer than their changes; notes what is found.

        Args:
            stored: the data file.
            positions: of rows of the keys, ascending.
            numbers: of their keys.
        """
        is_live = ~np.isin(positions, stored.dead, assume_unique=True)
        positions, numbers = positions[is_live], numbers[is_live]
        if (needed := self.lacking[numbers]).any():
            self.old.append(stored.at(positions[needed]))
        if self.order is None or not len(positions):
            return positions
        theirs = order_of(stored.at(positions, ORDER))
        is_newer = less(tuple(part[numbers] for part in self.order), theirs, or_equal=False)
        np.add.at(self.newer, numbers[is_newer], 1)
        return positions[~is_newer]
