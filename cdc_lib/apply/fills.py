"""Values of added columns in rows that are older than the column."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from cdc_lib.apply.removals import is_chosen
from cdc_lib.apply.rows import order_of, with_column
from cdc_lib.model.lake_table import ORDER
from cdc_lib.model.manifest import OP
from cdc_lib.model.table_commit import Filled
from cdc_lib.model.table_mode import RESET, Mode


@dataclass(frozen=True, slots=True)
class Fill:
    """The value of a column of a lake table in some rows."""

    rule: Filled
    name: str
    value: pa.Scalar

    def changes(self, rows: pa.Table) -> NDArray[np.bool_]:
        """Return which rows get another value; rows that have the value may be among them."""
        chosen = is_chosen(self.rule, rows, order_of(rows))
        return chosen if self.value.is_valid else chosen & pc.is_valid(rows.column(self.name)).to_numpy()


def filled(rows: pa.Table, fills: Sequence[Fill]) -> pa.Table:
    """Return rows with the values of fills, of which the last one counts."""
    for fill in fills:
        if (chosen := fill.changes(rows)).any():
            rows = with_column(rows, fill.name, pc.if_else(pa.array(chosen), fill.value, rows.column(fill.name)))
    return rows


def needed_to_fill(fills: Sequence[Fill], mode: Mode) -> list[str]:
    """Return the columns of a lake table that show which of its rows are filled."""
    of_mode = (OP,) if mode == "append" else ()
    return sorted(
        {*ORDER, *of_mode, *(fill.name for fill in fills), *(name for fill in fills for name in fill.rule.columns)}
    )


def is_filled(rows: pa.Table, fills: Sequence[Fill], mode: Mode) -> NDArray[np.bool_]:
    """Return which rows of a lake table get another value.

    Args:
        rows: with the columns of :func:`needed_to_fill`.
        fills: in order.
        mode: of the lake table.
    """
    found: NDArray[np.bool_] = np.zeros(rows.num_rows, np.bool_)
    for fill in fills:
        found |= fill.changes(rows)
    if mode == "append":  # an entry that says that all rows were removed is no row
        found &= pc.not_equal(rows.column(OP), RESET).to_numpy()
    return found
