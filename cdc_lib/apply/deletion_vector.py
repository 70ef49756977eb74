"""The deletion vector of a data file: one blob of a Puffin file, of type ``deletion-vector-v1``, read and written.

The blob: length of magic and bitmap (4 bytes, big-endian), magic, 64-bit Roaring bitmap of the deleted rows' positions, CRC32 of
magic and bitmap (4 bytes, big-endian).
"""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cdc_lib.apply.bitmap import Bitmap64, bitmap_bytes, parse_bitmap
from cdc_lib.model.pace import counted

_MAGIC = bytes.fromhex("d1d33964")
_PUFFIN = b"PFA1"
_ROW_POSITION = 2147483645
"""Iceberg's field id of a row's position in its file."""


@dataclass(frozen=True, slots=True)
class Blob:
    """Where the deletion vector of a data file is in a Puffin file; offset and size in bytes."""

    offset: int
    size: int
    rows: int


def puffin_of(vectors: Mapping[str, NDArray[np.int64]], writer: str) -> tuple[bytes, dict[str, Blob]]:
    """Return a Puffin file with deletion vectors, and where each is.

    Args:
        vectors: positions of all deleted rows of each data file, in ascending order, by its location.
        writer: name and version of the program.
    """
    data, blobs, described = bytearray(_PUFFIN), dict[str, Blob](), []
    for location, positions in vectors.items():
        blob = vector_bytes(positions)
        blobs[location] = Blob(len(data), len(blob), len(positions))
        described.append(
            {
                "type": "deletion-vector-v1",
                "fields": [_ROW_POSITION],
                "snapshot-id": -1,  # of the commit that is to come
                "sequence-number": -1,
                "offset": len(data),
                "length": len(blob),
                "properties": {"referenced-data-file": location, "cardinality": str(len(positions))},
            }
        )
        data += blob
    footer = json.dumps({"blobs": described, "properties": {"created-by": writer}}).encode()
    data += _PUFFIN + footer + struct.pack("<II", len(footer), 0) + _PUFFIN
    return bytes(data), blobs


def vector_bytes(positions: NDArray[np.int64]) -> bytes:
    """Return the blob of positions, which are in ascending order."""
    body = _MAGIC + bitmap_bytes(positions)
    return len(body).to_bytes(4, "big") + body + zlib.crc32(body).to_bytes(4, "big")


def parse_vector(blob: bytes, rows: int) -> Bitmap64:
    """Return the positions of the deleted rows.

    Args:
        blob: the bytes that the manifest's offset and size name.
        rows: number of deleted rows, as in the manifest.

    Raises:
        ValueError: the blob is damaged, or has another number of rows.
    """
    length = int.from_bytes(blob[:4], "big")
    if length != len(blob) - 8 or length < len(_MAGIC):
        raise ValueError(f"the deletion vector has {len(blob)} bytes, and its length is {length}")
    body = memoryview(blob)[4:-4]
    if body[:4] != _MAGIC:
        raise ValueError("the deletion vector does not begin with its magic number")
    if zlib.crc32(body) != int.from_bytes(blob[-4:], "big"):
        raise ValueError("the CRC32 of the deletion vector is wrong")
    found = parse_bitmap(bytes(body[4:]))
    if len(found) != rows:
        raise ValueError(f"the deletion vector has {counted(len(found), 'row')}, and the manifest says {rows}")
    return found
