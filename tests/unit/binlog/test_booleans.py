"""Numbers of one byte that become booleans."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdc_lib.binlog.types.codec import ValueFault
from cdc_lib.binlog.types.registry import codec_for
from cdc_lib.model.schema import SourceType
from cdc_lib.model.value_policy import ValuePolicy

VALUES = st.lists(st.none() | st.integers(-128, 127) | st.sampled_from((0, 1)), min_size=1, max_size=40)


def decoded(values, other_values, *, from_text):
    """Return what the codec makes of numbers, appended in two calls."""
    codec = codec_for(SourceType("int", width=1, as_boolean=other_values), ValuePolicy(), from_text=from_text)
    half = len(values) // 2
    for part in (values[:half], values[half:]):
        cells = [
            b"" if one is None else str(one).encode() if from_text else one.to_bytes(1, signed=True) for one in part
        ]
        length = np.array([-1 if one is None else len(cell) for one, cell in zip(part, cells, strict=True)], np.int64)
        pos = np.cumsum([0, *map(len, cells)])[:-1].astype(np.int64)
        codec.append(np.frombuffer(b"".join(cells) + bytes(8), np.uint8), pos, length, len(part))
    return codec.finish().to_pylist()


@given(VALUES, st.booleans())
def test_every_number_but_zero_is_true_and_null_stays(values, from_text):
    expected = [None if one is None else one != 0 for one in values]
    assert decoded(values, "as_true", from_text=from_text) == expected


@given(VALUES, st.booleans())
def test_by_default_another_number_is_refused_and_the_error_names_the_first(values, from_text):
    others = [one for one in values[: len(values) // 2] if one not in (None, 0, 1)]
    others = others or [one for one in values if one not in (None, 0, 1)]
    if not others:
        assert decoded(values, "error", from_text=from_text) == [None if one is None else bool(one) for one in values]
        return
    with pytest.raises(ValueFault, match=f"^{others[0]} is neither 0 nor 1") as fault:
        decoded(values, "error", from_text=from_text)
    part = values[: len(values) // 2] if others[0] in values[: len(values) // 2] else values[len(values) // 2 :]
    assert part[fault.value.row] == others[0]
