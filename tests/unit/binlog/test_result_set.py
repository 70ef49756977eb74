"""The answer to a SELECT, as columns."""

from __future__ import annotations

import numpy as np
import pytest

from cdc_lib.binlog import result_set
from cdc_lib.binlog.result_set import ResultSet
from cdc_lib.binlog.rows.masking import Masker
from cdc_lib.model.projection import whole
from cdc_lib.model.schema import Column, SourceType, TableSchema
from cdc_lib.model.value_policy import ValuePolicy

KINDS = {
    "id": (SourceType("int", width=4), b"7"),
    "day": (SourceType("date"), b"2026-11-28"),
    "at": (SourceType("datetime", scale=6), b"2026-11-28 17:00:00.5"),
    "price": (SourceType("decimal", precision=10, scale=2), b"12.50"),
    "item": (SourceType("string", width=20, charset="utf8mb4"), "Gl\u00fchwein".encode()),
}


class Answer:
    """The bytes of a server's answer."""

    def __init__(self, packets):
        self._wire = b"".join(len(one).to_bytes(3, "little") + b"\0" + one for one in packets)

    def read_into(self, view):
        size = min(len(view), len(self._wire))
        view[:size], self._wire = self._wire[:size], self._wire[size:]
        return size


@pytest.mark.parametrize("widest", [2**31 - 1, 0], ids=["usual", "as for a row of more than 1 GiB"])
def test_cells_are_found_in_a_buffer_of_any_length(monkeypatch, widest):
    """32 bits are enough for all but the longest rows, and the values are the same."""
    monkeypatch.setattr(result_set, "_WIDEST", widest)
    schema = TableSchema("shop", "orders", tuple(Column(name, kind) for name, (kind, _) in KINDS.items()), ("id",))
    row = b"".join(bytes([len(value)]) + value for _, value in KINDS.values())
    nulls = b"\1" + b"8" + b"\xfb" * (len(KINDS) - 1)
    end = b"\xfe\0\0\0\0"
    answer = Answer([bytes([len(KINDS)]), *(b"def" for _ in KINDS), end, row, nulls, end])
    result = ResultSet(whole(schema), answer, Masker(), ValuePolicy())
    (group,) = result.groups()
    first, second = group.to_pylist()
    assert (first["id"], str(first["day"]), str(first["price"]), first["item"]) == (
        7,
        "2026-11-28",
        "12.50",
        "Gl\u00fchwein",
    )
    assert str(first["at"]) == "2026-11-28 17:00:00.500000"
    assert second == {"id": 8} | dict.fromkeys([name for name in KINDS if name != "id"])
    assert result.last_key == (b"8",)
    assert result._pos.dtype == (np.int64 if widest == 0 else np.int32)
