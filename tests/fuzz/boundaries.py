"""Walks for boundaries over broken streams, and broken heads of files."""

from __future__ import annotations

import random
import struct
import zlib
from contextlib import suppress
from datetime import UTC, datetime

import numpy as np

from cdc_lib.binlog.framing.boundary_scan import BoundaryScan, SearchTarget
from cdc_lib.binlog.framing.file_header import read_file_header
from cdc_lib.errors import DecodeError, SourceError
from cdc_lib.model.commit import Commit
from cdc_lib.model.gtid import GtidSet
from cdc_lib.model.position import FIRST_EVENT_OFFSET, Position
from tests.fuzz.mutation import Samples
from tests.fuzz.readers import Portions, _change
from tests.harness.binlog.recorded import Recorded, recorded


def boundaries(seed: int, first: int, cases: int, done: np.ndarray) -> None:
    """Run cases of every kind of search."""
    streams = [one for whole in recorded().values() for one in (whole, whole.without_checksums())]
    wires = Samples.of([stream.wire for stream in streams])
    for case in range(first, first + cases):
        done[0] = case
        chosen = random.Random(seed << 40 | case)
        stream = streams[chosen.randrange(len(streams))]
        wire = bytearray(stream.wire)
        _change(wire, chosen, np.asarray(wires.data))
        window, checksum = stream.window, stream.facts.checksum
        scan = BoundaryScan("shop", stream.flavor, "a.000001", window.stop, _wanted(stream, chosen), checksum=checksum)
        whole = Portions(_entry(stream, checksum=checksum) + bytes(wire), chosen, chosen.choice([7, 100, 1 << 20]))
        with suppress(DecodeError, SourceError):
            scan.run(whole)
        with suppress(DecodeError, SourceError):
            read_file_header(Portions(bytes(wire), chosen, 1 << 20), stream.flavor, window.start.file)


def _wanted(stream: Recorded, chosen: random.Random) -> SearchTarget:
    window = stream.window
    match chosen.randrange(4):
        case 0:
            return datetime.fromtimestamp(chosen.choice([0, 2**31, 2**32 - 1]), UTC)
        case 1:
            few = "0-1-3" if stream.flavor == "mariadb" else "3e11fa47-71ca-11e1-9e33-c80aa9429562:1-9"
            return GtidSet.parse(stream.flavor, chosen.choice(["", few]))
        case 2:
            return Commit(
                chosen.choice([0, 1, 2**32 - 1]), datetime.fromtimestamp(chosen.choice([0, 2**31, 2**32 - 1]), UTC)
            )
        case _:
            last = max(window.stop.offset, FIRST_EVENT_OFFSET + 1)
            return Position(window.start.file, chosen.randint(FIRST_EVENT_OFFSET, last))


def _entry(stream: Recorded, *, checksum: bool) -> bytes:
    """Return the ROTATE that the server makes up at the beginning: recordings begin somewhere in a file."""
    body = struct.pack("<Q", stream.window.start.offset) + stream.window.start.file.encode()
    size = 19 + len(body) + 4 * checksum
    event = struct.pack("<IBIIIH", 0, 4, 1, size, 0, 0x20) + body
    if checksum:
        event += struct.pack("<I", zlib.crc32(event))
    return struct.pack("<I", size + 1)[:3] + b"\0\0" + event
