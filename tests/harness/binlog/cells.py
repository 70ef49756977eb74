"""Cells for the codecs, without a server."""

from __future__ import annotations

from typing import Any

import numpy as np

from cdc_lib.binlog.types.registry import codec_for
from cdc_lib.model.schema import SourceType
from cdc_lib.model.value_policy import ValuePolicy


def decode(source_type: SourceType, *cells: bytes | None, from_text: bool = False, **policy: Any) -> list[Any]:
    """Run a codec over cells, None for NULL; bytes of other cells follow them in the buffer."""
    data = np.frombuffer(b"".join(cell or b"" for cell in cells) + b"\xaa" * 8, np.uint8)
    length = np.array([-1 if cell is None else len(cell) for cell in cells], np.int64)
    pos = np.cumsum([0, *np.maximum(length, 0)])[:-1].astype(np.int64)
    codec = codec_for(source_type, ValuePolicy(**policy), from_text=from_text)
    codec.append(data, pos, length, len(cells))
    array = codec.finish()
    array.validate(full=True)
    return array.to_pylist()
