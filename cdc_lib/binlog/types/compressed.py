"""Compressed columns of MariaDB: VARCHAR, VARBINARY, TEXT and BLOB with COMPRESSED.

Row image (MariaDB ``sql/field_comp.cc``): nothing for the empty text; else a byte and what follows. The byte 0: the bytes as they
are. Its upper half 8: zlib; bit 3: without the zlib header; lower three bits: bytes of the uncompressed length, which follows
big-endian; then the stream. Such columns go through Python cell by cell.
"""

from __future__ import annotations

import zlib

import numpy as np
import pyarrow as pa

from cdc_lib.binlog.types.builders import MAX_TEXT_BYTES
from cdc_lib.binlog.types.codec import Bytes, Cells, Codec, ValueFault

_ZLIB = 8
_RAW = 8


class CompressedCodec:
    """Unpacks cells and hands them to the codec of the type that is inside.

    Args:
        inner: of text or bytes.
    """

    def __init__(self, inner: Codec) -> None:
        """Start empty."""
        self.arrow_type = inner.arrow_type
        self._inner = inner

    def append(self, data: Bytes, pos: Cells, length: Cells, rows: int) -> None:
        """Append cells."""
        raw = data.data
        found: list[bytes] = []
        for row in range(rows):
            start, size = int(pos[row]), int(length[row])
            try:
                found.append(unpacked(bytes(raw[start : start + size])) if size > 0 else b"")
            except (ValueError, zlib.error) as error:
                raise ValueFault(row, f"a compressed value that cannot be unpacked: {error}") from None
        sizes = np.array([len(cell) for cell in found], np.int64)
        starts = np.cumsum([0, *sizes])[:-1].astype(np.int64)
        whole = np.frombuffer(b"".join(found) + b"\0", np.uint8)
        self._inner.append(whole, starts, np.where(length[:rows] < 0, -1, sizes), rows)

    def finish(self) -> pa.Array:
        """Return the column."""
        return self._inner.finish()


def unpacked(cell: bytes) -> bytes:
    """Return what a compressed value holds.

    Raises:
        ValueError: its header or its length is wrong.
        zlib.error: the stream is.
    """
    header = cell[0]
    if header == 0:
        return cell[1:]
    count = header & 7
    if header >> 4 != _ZLIB or not 1 <= count <= 4 or len(cell) < 1 + count:
        msg = f"its first byte is {header:#04x}"
        raise ValueError(msg)
    size = int.from_bytes(cell[1 : 1 + count], "big")
    if size > MAX_TEXT_BYTES:
        msg = f"it says that it holds {size} bytes, which no column of the lake can"
        raise ValueError(msg)
    stream = zlib.decompressobj(-zlib.MAX_WBITS if header & _RAW else zlib.MAX_WBITS)
    # One byte more than declared is asked for, so that a wrong length is seen and costs no memory.
    text = stream.decompress(cell[1 + count :], size + 1)
    if len(text) != size or not stream.eof or stream.unused_data:
        msg = f"it says that it holds {size} bytes, and does not"
        raise ValueError(msg)
    return text
