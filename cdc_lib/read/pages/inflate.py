"""Pages without their compression: those of one read at once."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from cdc_lib.read.pages.runs import unsigned_at

_NONE, _SNAPPY, _ZSTD = 0, 1, 6
"""Numbers of compressions in Parquet."""


class UnknownCodec(Exception):
    """Pages are compressed in a way that is not read here; Arrow knows more."""


def inflate(codec: int, bodies: Sequence[memoryview], sizes: Sequence[int]) -> memoryview:
    """Return pages without compression, one after the other.

    Args:
        codec: number of the compression in Parquet.
        bodies: the compressed pages.
        sizes: how many bytes each has without compression.

    Raises:
        UnknownCodec: see there.
        ValueError: a page is damaged.
    """
    if codec == _ZSTD:
        return _of_zstd(bodies, sizes)
    if codec not in (_NONE, _SNAPPY):
        raise UnknownCodec
    stored = [len(body) if codec == _NONE else unsigned_at(body, 0)[0] for body in bodies]
    if stored != list(sizes):
        raise ValueError("page of another size than its header says")
    pages = map(_of_snappy, bodies, sizes) if codec == _SNAPPY else bodies
    return memoryview(b"".join(pages))


def _of_zstd(bodies: Sequence[memoryview], sizes: Sequence[int]) -> memoryview:
    """Decompress pages in one call, because each call prepares tables, which takes longer than a page.

    Arrow refuses data that have more or fewer bytes than all pages together.
    """
    try:
        return memoryview(pa.Codec("zstd").decompress(b"".join(bodies), sum(sizes), asbytes=True))
    except OSError as error:
        raise ValueError(f"page that cannot be decompressed: {error}") from None


def _of_snappy(body: memoryview, size: int) -> bytes:
    try:
        return bytes(pa.Codec("snappy").decompress(bytes(body), size, asbytes=True))
    except OSError as error:
        raise ValueError(f"page that cannot be decompressed: {error}") from None
