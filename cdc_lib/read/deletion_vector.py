"""The deletion vector of a data file: one blob of a Puffin file, of type ``deletion-vector-v1``.

The blob: length of magic and bitmap (4 bytes, big-endian), magic, 64-bit Roaring bitmap of the deleted rows' positions, CRC32 of
magic and bitmap (4 bytes, big-endian).
"""

from __future__ import annotations

import zlib

from cdc_lib.read.bitmap import Bitmap64, parse_bitmap

_MAGIC = bytes.fromhex("d1d33964")


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
        raise ValueError(f"the deletion vector has {len(found)} rows, and the manifest says {rows}")
    return found
