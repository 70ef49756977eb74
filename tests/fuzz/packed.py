"""The kernels of compressed transactions and events, each case in an array of its own size."""

from __future__ import annotations

import struct
import zlib

import numpy as np
import zstandard
from numba import njit

from cdc_lib.binlog.framing import event_types, packets, payload_events, transaction_payload
from cdc_lib.binlog.rows import inflate_buffer, locate, mariadb_compressed
from tests.fuzz.mutation import Samples, begin, below, broken
from tests.fuzz.samples import cut, table_slots
from tests.fuzz.walks import CELLS_OUTSIDE, inside, layouts
from tests.harness.binlog.recorded import recorded
from tests.harness.binlog.streams import packed_integer

_ROWS = 64
_RECORDS = 4
_MOST = 1 << 20


@njit(cache=True, nogil=True)
def drive_fronts(seed, first, cases, done, data, starts, room):
    """Fields before a payload, and the frames after them."""
    rng = np.zeros(1, np.uint64)
    buffer = np.empty(room, np.uint8)
    for case in range(first, first + cases):
        done[0] = case
        begin(rng, seed, case)
        size = broken(rng, data, starts, below(rng, starts.shape[0] - 1), buffer)
        b = buffer[:size]
        _, start, _ = transaction_payload._front(b, 0, size)
        if start > size:
            raise ValueError(CELLS_OUTSIDE)
        transaction_payload._is_whole(b, max(start, 0), size)
        transaction_payload._is_whole(b, below(rng, size + 1), size)


@njit(cache=True, nogil=True)
def drive_bare(seed, first, cases, done, data, starts, ids, slots, event_kinds, columns, prefix, width, room):
    """Events of a payload; what Python would look at is stepped over. The rows found are located."""
    rng = np.zeros(1, np.uint64)
    buffer = np.empty(room, np.uint8)
    state = np.zeros(packets.STATE_SIZE, np.int64)
    sids = np.zeros((packets.FIRST_SIDS, packets.SID_SIZE), np.uint8)
    scratch = np.zeros(packets.SID_SIZE, np.uint8)
    records = np.empty((32, packets.RECORD_SIZE), np.int64)
    pos, length = np.empty((prefix.shape[1], _ROWS), np.int32), np.empty((prefix.shape[1], _ROWS), np.int32)
    op, event, image = np.empty(_ROWS, np.uint8), np.empty(_ROWS, np.int64), np.empty(_ROWS, np.int64)
    keys, chosen = np.zeros(1, np.int64), np.zeros(1, np.int64)
    for case in range(first, first + cases):
        done[0] = case
        begin(rng, seed, case)
        size = broken(rng, data, starts, below(rng, starts.shape[0] - 1), buffer)
        b = buffer[:size]
        state[:] = 0
        state[packets.SID] = -1
        state[packets.IN_TRANSACTION] = below(rng, 16) > 0
        at = np.int64(0)
        while True:
            status, found, at, end = payload_events.scan_uncompressed(
                b, at, size, -at, state, ids, slots, event_kinds, sids, records, scratch
            )
            for i in range(found):
                slot = records[i, packets.SLOT]
                n = columns[slot]
                chosen[0] = i
                _, count, _, _ = locate.locate(
                    b, records, chosen, 0, prefix[slot, :n], width[slot, :n], keys[:0], 1 << 20, 1 << 30,
                    pos[:n], length[:n], op, event, image,
                )  # fmt: skip
                if not inside(pos, length, count, n, records[i, packets.BODY], records[i, packets.END]):
                    raise ValueError(CELLS_OUTSIDE)
            if status == packets.CONTROL_EVENT:
                if end <= at or end > size:
                    raise ValueError(CELLS_OUTSIDE)
                at = end
            elif status != packets.RECORDS_FULL:
                break


@njit(cache=True, nogil=True)
def drive_side(seed, first, cases, done, data, starts, kinds, room, target):
    """Some row events in one buffer, plain and compressed; they are placed into exactly the bytes that the plan gives them."""
    rng = np.zeros(1, np.uint64)
    buffer = np.empty(_RECORDS * room, np.uint8)
    records = np.zeros((_RECORDS, packets.RECORD_SIZE), np.int64)
    plan = np.empty((_RECORDS, 3), np.int64)
    for case in range(first, first + cases):
        done[0] = case
        begin(rng, seed, case)
        fill = np.int64(0)
        for i in range(_RECORDS):
            sample = below(rng, starts.shape[0] - 1)
            size = broken(rng, data, starts, sample, buffer[fill : fill + room])
            records[i, packets.BODY], records[i, packets.END] = fill, fill + size
            records[i, packets.TYPE] = kinds[sample] if below(rng, 8) else 23 + below(rng, 3) + 7 * below(rng, 2)
            records[i, packets.PACKED] = below(rng, 4) > 0
            fill += size
        b = buffer[:fill]
        count, wrong = inflate_buffer._plan(b, records, below(rng, 4096), below(rng, 2) == 1, plan)
        total = np.int64(0)
        for i in range(count):
            if records[i, packets.PACKED] and (
                plan[i, 1] > plan[i, 0] or not records[i, packets.BODY] <= plan[i, 2] <= records[i, packets.END]
            ):
                raise ValueError(CELLS_OUTSIDE)
            total += plan[i, 0]
        if wrong >= 0 and wrong != count:
            raise ValueError(CELLS_OUTSIDE)
        if total <= target.shape[0]:
            inflate_buffer._copy_rows(b, records, count, plan, target[:total], 0)
            if count > 0 and records[count - 1, packets.END] != total:
                raise ValueError(CELLS_OUTSIDE)


def fronts(seed: int, first: int, cases: int, done: np.ndarray) -> None:
    """Run cases of what is before a payload."""
    inner = b"".join(event.whole for event in recorded()["mysql_json"].without_checksums().events)
    pieces = []
    for size in (0, 30, len(inner)):
        frames = [
            zstandard.ZstdCompressor(write_checksum=checksum, write_content_size=with_size).compress(inner[:size])
            for checksum in (False, True)
            for with_size in (False, True)
        ]
        for whole in (*frames, frames[0] + frames[3], inner[:size]):
            fields = [b"\2\1\0", b"\3" + _field(size), b"\1" + _field(len(whole))]
            pieces.append(b"".join(fields) + b"\0" + whole)
    pieces.append(b"\2\3\xfc\xff\0" + b"\x4d" + _field(1 << 40) + b"\1" + _field(9) + b"\0" + bytes(9))
    samples = Samples.of(pieces)
    drive_fronts(seed, first, cases, done, samples.data, samples.starts, samples.room)


def _field(value: int) -> bytes:
    number = packed_integer(value)
    return bytes([len(number)]) + number


def events_inside(seed: int, first: int, cases: int, done: np.ndarray) -> None:
    """Run cases of the events in a payload."""
    parts = cut()
    pieces = []
    for stream in recorded().values():
        if stream.flavor == "mysql":
            whole = [event for event in stream.without_checksums().events if event.in_file]
            ends = [at for at, event in enumerate(whole) if event.kind == event_types.XID]
            starts = [max(i for i, e in enumerate(whole[:end]) if e.kind == event_types.GTID) + 1 for end in ends]
            pieces += [b"".join(e.whole for e in whole[at : end + 1]) for at, end in zip(starts, ends, strict=True)]
    samples = Samples.of(pieces)
    ids, slots = table_slots(parts)
    prefix, width, columns = layouts(parts)
    drive_bare(
        seed, first, cases, done, samples.data, samples.starts, ids, slots, event_types.actions_inside(), columns, prefix, width,
        samples.room,
    )  # fmt: skip


def moved_rows(seed: int, first: int, cases: int, done: np.ndarray) -> None:
    """Run cases of compressed row events on their way into the inflate buffer."""
    pieces, kinds = [], []
    for kind, _, body in cut().bodies:
        at = int(mariadb_compressed.end_of_bitmaps(np.frombuffer(body, np.uint8), 0, len(body), kind))
        if kind != event_types.PARTIAL_UPDATE_ROWS and at >= 0:
            head = struct.pack(">BH", 0x82, len(body) - at)
            pieces += [body, body[:at] + head + zlib.compress(body[at:])]
            kinds += [kind, kind]
    samples = Samples.of(pieces)
    target = np.empty(_MOST, np.uint8)
    drive_side(seed, first, cases, done, samples.data, samples.starts, np.array(kinds), samples.room, target)
