"""Roaring bitmaps are read as another library writes them, and written so that it reads them."""

from __future__ import annotations

import json
import struct
import zlib

import numpy as np
import pytest
from pyroaring import BitMap, BitMap64

from cdc_lib.apply.bitmap import bitmap_bytes, parse_bitmap
from cdc_lib.apply.deletion_vector import parse_vector, puffin_of

SETS = {
    "none": [],
    "one": [0],
    "few": [1, 5, 65_535, 65_536, 1_000_000],
    "a full container": range(65_536),
    "bits": range(0, 60_000, 3),
    "runs": [*range(10, 500), *range(70_000, 70_003), 70_005, *range(3_000_000, 3_200_000)],
    "beyond 32 bits": [7, 2**32 - 1, 2**32, 2**33 + 5],
    "arrays, bits and runs": [*range(0, 200_000, 17), *range(200_000, 300_000), *range(300_000, 400_000, 2)],
}


def serialized(numbers, *, runs):
    """As Iceberg's writer: containers become runs where these are smaller."""
    written = BitMap64(numbers)
    if runs:
        parts = {}
        for number in numbers:
            parts.setdefault(number >> 32, []).append(number & 0xFFFF_FFFF)
        body = len(parts).to_bytes(8, "little")
        for upper, lower in sorted(parts.items()):
            part = BitMap(lower)
            part.run_optimize()
            body += upper.to_bytes(4, "little") + part.serialize()
        return body
    return written.serialize()


@pytest.mark.parametrize("runs", [True, False], ids=["with runs", "without runs"])
@pytest.mark.parametrize("name", SETS)
def test_numbers_are_found_one_by_one_and_in_ranges(name, runs):
    """Each container kind, at the edges of containers."""
    numbers = set(SETS[name])
    found = parse_bitmap(serialized(sorted(numbers), runs=runs))
    assert len(found) == len(numbers)
    asked = {*numbers, *(n + 1 for n in numbers), *(max(0, n - 1) for n in numbers)}
    assert {n for n in asked if n in found} == numbers
    for start in (0, 3, 65_530, 131_072, 2_999_990):
        for count in (0, 1, 20, 70_000):
            expected = [n - start for n in sorted(numbers) if start <= n < start + count]
            assert np.flatnonzero(found.mask(start, count)).tolist() == expected


def vector(body):
    body = bytes.fromhex("d1d33964") + body
    return len(body).to_bytes(4, "big") + body + zlib.crc32(body).to_bytes(4, "big")


def test_a_vector_is_checked_against_its_crc_its_length_and_the_manifest():
    """A damaged vector would show deleted rows, or hide others."""
    blob = vector(serialized([1, 2, 9], runs=False))
    assert 9 in parse_vector(blob, 3)
    wrong = bytearray(blob)
    wrong[20] ^= 1
    with pytest.raises(ValueError, match="CRC32"):
        parse_vector(bytes(wrong), 3)
    with pytest.raises(ValueError, match="the manifest says 4"):
        parse_vector(blob, 4)
    with pytest.raises(ValueError, match="its length is"):
        parse_vector(blob[:-1], 3)
    with pytest.raises(ValueError, match="magic"):
        parse_vector(blob[:4] + bytes(4) + blob[8:], 3)
    with pytest.raises(ValueError, match="its length is"):
        parse_vector(b"", 0)


def test_a_bitmap_that_ends_early_or_late_or_is_none_is_refused():
    """The CRC32 is right, so the writer was wrong."""
    for numbers in ([1, 2, 9], range(60_000), range(0, 60_000, 2)):
        whole = serialized(numbers, runs=False)
        for cut in (4, 10, len(whole) - 1):
            with pytest.raises(ValueError, match="ends early"):
                parse_bitmap(whole[:cut])
        with pytest.raises(ValueError, match="are used"):
            parse_bitmap(whole + b"x")
    with pytest.raises(ValueError, match="begins with 0"):
        parse_bitmap((1).to_bytes(8, "little") + bytes(12))


@pytest.mark.parametrize("name", SETS)
def test_another_library_reads_the_numbers_that_are_written(name):
    numbers = np.array(sorted(SETS[name]), np.int64)
    written = bitmap_bytes(numbers)
    assert list(BitMap64.deserialize(written)) == numbers.tolist()
    assert parse_bitmap(written).numbers().tolist() == numbers.tolist()


def test_the_vectors_of_a_puffin_file_are_where_its_footer_says():
    """Iceberg finds them by the manifests; other readers by the footer."""
    vectors = {"s3://lake/a.parquet": np.array([1, 5, 70_000]), "s3://lake/b.parquet": np.arange(60_000)}
    data, blobs = puffin_of(vectors, "test")
    size, flags = struct.unpack_from("<II", data, len(data) - 12)
    assert (data[:4], data[-4:], data[-16 - size : -12 - size], flags) == (b"PFA1", b"PFA1", b"PFA1", 0)
    footer = json.loads(data[-12 - size : -12])
    assert len(footer["blobs"]) == len(vectors)
    for described in footer["blobs"]:
        location = described["properties"]["referenced-data-file"]
        assert (described["offset"], described["length"]) == (blobs[location].offset, blobs[location].size)
        blob = data[described["offset"] :][: described["length"]]
        assert parse_vector(blob, blobs[location].rows).numbers().tolist() == vectors[location].tolist()
        assert described["properties"]["cardinality"] == str(len(vectors[location]))
