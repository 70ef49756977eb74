"""The interface of every type family: a codec that appends located cells to a column."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Bytes = npt.NDArray[np.uint8]
Cells = npt.NDArray[np.int64]
Kernel = Any
"""A compiled numba function; numba has no type for it that mypy could check."""


class ValueFault(Exception):  # not an error of the tree: the reader turns it into a DecodeError with a place
    """A cell that has no exact place in the lake.

    Args:
        row: index of the cell among those given to ``append``.
        what: what is wrong with it.
        hint: what to do about it.
        in_date_key: whether the dates of the table's key could be held as text.
    """

    def __init__(
        self, row: int, what: str, hint: str = "Exclude the table in the source file.", *, in_date_key: bool = False
    ) -> None:
        super().__init__(what)
        self.in_date_key = in_date_key
        self.row = row
        self.what = what
        self.hint = hint

    def of_column(self, name: str) -> ValueFault:
        """Return the same fault with the column's name in its text."""
        return ValueFault(self.row, f"column {name}: {self.what}", self.hint, in_date_key=self.in_date_key)


class Codec(Protocol):
    """One column: cells in, Arrow array out."""

    arrow_type: pa.DataType

    def append(self, data: Bytes, pos: Cells, length: Cells, rows: int) -> None:
        """Append ``rows`` cells, cell ``i`` being ``data[pos[i]:pos[i] + length[i]]``, NULL where the length is -1.

        Raises:
            ValueFault: a cell cannot be held exactly.
        """
        ...

    def finish(self) -> pa.Array:
        """Return everything appended since the last time, and start over."""
        ...
