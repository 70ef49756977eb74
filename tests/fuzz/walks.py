"""Walks over packets, row images and rows of a result, a case at a time, each in an array of its own size."""

from __future__ import annotations

import struct

import numpy as np
from numba import njit

from cdc_lib.binlog.bytes.crc32 import TABLES
from cdc_lib.binlog.framing import event_types, packets
from cdc_lib.binlog.result_set import locate_text
from cdc_lib.binlog.rows import locate as row_walk
from cdc_lib.binlog.rows import partial_images
from tests.fuzz.mutation import Samples, begin, below, broken
from tests.fuzz.samples import Cut, cut, table_slots

_ROWS = 64
CELLS_OUTSIDE = "a cell is outside of its event"


@njit(cache=True, nogil=True)
def inside(pos, length, rows_, columns, start, end):
    """Whether every cell lies in its event."""
    for r in range(rows_):
        for c in range(columns):
            if length[c, r] >= 0 and (pos[c, r] < start or pos[c, r] + length[c, r] > end):
                return False
    return True


@njit(cache=True, nogil=True)
def drive_locate(seed, first, cases, done, data, starts, kinds, tables, prefix, width, columns, keys, key_counts, room):
    """Row events: all of a case's bytes are one event's."""
    rng = np.zeros(1, np.uint64)
    buffer = np.empty(room, np.uint8)
    pos = np.empty((prefix.shape[1], _ROWS), np.int32)
    length = np.empty((prefix.shape[1], _ROWS), np.int32)
    op, event, image = np.empty(_ROWS, np.uint8), np.empty(_ROWS, np.int64), np.empty(_ROWS, np.int64)
    records = np.zeros((1, packets.RECORD_SIZE), np.int64)
    chosen = np.zeros(1, np.int64)
    for case in range(first, first + cases):
        done[0] = case
        begin(rng, seed, case)
        sample = below(rng, starts.shape[0] - 1)
        size = broken(rng, data, starts, sample, buffer)
        table = tables[sample] if below(rng, 16) else below(rng, columns.shape[0])
        n = columns[table]
        records[0, 1] = size
        records[0, 2] = kinds[sample] if below(rng, 16) else 23 + below(rng, 3) + 7 * below(rng, 2)
        _, found, _, _ = row_walk.locate(
            buffer[:size], records, chosen, 0, prefix[table, :n], width[table, :n], keys[table, : key_counts[table]],
            1 << 20, 1 << 30, pos[:n], length[:n], op, event, image,
        )  # fmt: skip
        if not inside(pos, length, found, n, 0, size):
            raise ValueError(CELLS_OUTSIDE)


@njit(cache=True, nogil=True)
def drive_images(seed, first, cases, done, data, starts, kinds, tables, prefix, width, columns, keys, key_counts, room):
    """Row events whose images need not have all columns; any column may be JSON, have a default, or be left out."""
    rng = np.zeros(1, np.uint64)
    buffer = np.empty(room, np.uint8)
    most = prefix.shape[1]
    pos, length = np.empty((most, _ROWS), np.int32), np.empty((most, _ROWS), np.int32)
    op, event, image = np.empty(_ROWS, np.uint8), np.empty(_ROWS, np.int64), np.empty(_ROWS, np.int64)
    records, chosen, flags = np.zeros((1, packets.RECORD_SIZE), np.int64), np.zeros(1, np.int64), np.zeros(1, np.bool_)
    traits, sizes = np.zeros(most, np.int64), np.zeros(most, np.int64)
    patches = np.empty((most * _ROWS, partial_images.PATCH_SIZE), np.int64)
    for case in range(first, first + cases):
        done[0] = case
        begin(rng, seed, case)
        sample = below(rng, starts.shape[0] - 1)
        size = broken(rng, data, starts, sample, buffer)
        table = tables[sample] if below(rng, 16) else below(rng, columns.shape[0])
        n = columns[table]
        json = 0
        for c in range(n):
            traits[c] = below(rng, 16)
            json += (traits[c] & partial_images.JSON) >> 1
        records[0, 1] = size
        records[0, 2] = kinds[sample] if below(rng, 8) else 39
        records[0, packets.HIDES] = below(rng, 2)
        b = buffer[:size]
        partial_images.is_partial(b, records, chosen, n, flags)
        _, found, _, _, patched = partial_images.locate_images(
            b, records, chosen, 0, prefix[table, :n], width[table, :n], traits[:n], keys[table, : key_counts[table]],
            1 << 20, 1 << 30, pos[:n], length[:n], op, event, image, patches[: json * _ROWS], sizes[:n],
        )  # fmt: skip
        if not inside(pos, length, found, n, 0, size):
            raise ValueError(CELLS_OUTSIDE)
        for k in range(patched):
            for start in (partial_images.DOCUMENT, partial_images.DIFFS):
                if patches[k, start] < 0 or patches[k, start] + patches[k, start + 1] > size:
                    raise ValueError(CELLS_OUTSIDE)


@njit(cache=True, nogil=True)
def drive_scan(
    seed,
    first,
    cases,
    done,
    data,
    starts,
    offsets,
    checksums,
    ids,
    slots,
    event_kinds,
    columns,
    prefix,
    width,
    tables,
    room,
):
    """Packets of a transaction; what Python would look at is stepped over. The rows found are located."""
    rng = np.zeros(1, np.uint64)
    buffer = np.empty(room, np.uint8)
    state = np.zeros(packets.STATE_SIZE, np.int64)
    sids = np.zeros((packets.FIRST_SIDS, packets.SID_SIZE), np.uint8)
    scratch = np.zeros(packets.SID_SIZE, np.uint8)
    records = np.empty((32, packets.RECORD_SIZE), np.int64)
    pos = np.empty((prefix.shape[1], _ROWS), np.int32)
    length = np.empty((prefix.shape[1], _ROWS), np.int32)
    op, event, image = np.empty(_ROWS, np.uint8), np.empty(_ROWS, np.int64), np.empty(_ROWS, np.int64)
    keys = np.zeros(1, np.int64)
    chosen = np.zeros(1, np.int64)
    for case in range(first, first + cases):
        done[0] = case
        begin(rng, seed, case)
        sample = below(rng, starts.shape[0] - 1)
        size = broken(rng, data, starts, sample, buffer)
        state[:] = 0
        state[packets.SID] = -1
        state[packets.OFFSET] = offsets[sample]
        state[packets.STOP_OFFSET] = -1
        state[packets.CHECKSUM_BYTES] = checksums[sample]
        b = buffer[:size]
        at = np.int64(0)
        while True:
            status, found, at, start, end, after = packets.scan(
                b, at, size, state, ids, slots, event_kinds, sids, records, tables, scratch
            )
            for i in range(found):
                slot = records[i, packets.SLOT]
                n = columns[slot]
                chosen[0] = i
                _, count, _, _ = row_walk.locate(
                    b, records, chosen, 0, prefix[slot, :n], width[slot, :n], keys[:0], 1 << 20, 1 << 30,
                    pos[:n], length[:n], op, event, image,
                )  # fmt: skip
                if not inside(pos, length, count, n, records[i, packets.BODY], records[i, packets.END]):
                    raise ValueError(CELLS_OUTSIDE)
            if status == packets.CONTROL_EVENT:
                if after <= at or end < start or end > size:
                    raise ValueError(CELLS_OUTSIDE)
                state[packets.OFFSET] += end - start
                at = after
            elif status != packets.RECORDS_FULL:
                break


@njit(cache=True, nogil=True)
def drive_text_rows(seed, first, cases, done, data, starts, room):
    """Packets of a result."""
    rng = np.zeros(1, np.uint64)
    buffer = np.empty(room, np.uint8)
    pos, length = np.empty((3, 8), np.int64), np.empty((3, 8), np.int64)
    for case in range(first, first + cases):
        done[0] = case
        begin(rng, seed, case)
        size = broken(rng, data, starts, below(rng, starts.shape[0] - 1), buffer)
        _, found, at, _ = locate_text(buffer[:size], 0, size, 3, pos, length)
        if not inside(pos, length, found, 3, 0, size) or at > size:
            raise ValueError(CELLS_OUTSIDE)


def layouts(parts: Cut) -> tuple[np.ndarray, ...]:
    """Return prefixes and widths of all layouts, padded to the widest, and how many columns each has."""
    most = max(layout.prefix.shape[0] for layout in parts.layouts)
    prefix, width = np.zeros((2, len(parts.layouts), most), np.int64)
    for i, layout in enumerate(parts.layouts):
        prefix[i, : layout.prefix.shape[0]] = layout.prefix
        width[i, : layout.width.shape[0]] = layout.width
    return prefix, width, np.array([layout.prefix.shape[0] for layout in parts.layouts])


def locate(seed: int, first: int, cases: int, done: np.ndarray) -> None:
    """Run cases of row events."""
    _rows(drive_locate, seed, first, cases, done)


def partial(seed: int, first: int, cases: int, done: np.ndarray) -> None:
    """Run cases of row events without all columns."""
    _rows(drive_images, seed, first, cases, done)


def _rows(drive, seed: int, first: int, cases: int, done: np.ndarray) -> None:
    parts = cut()
    samples = Samples.of([body for _, _, body in parts.bodies])
    kinds, tables = (np.array([body[i] for body in parts.bodies]) for i in (0, 1))
    counts = np.array([layout.keys.shape[0] for layout in parts.layouts])
    keys = np.zeros((len(parts.layouts), counts.max()), np.int64)
    for i, layout in enumerate(parts.layouts):
        keys[i, : counts[i]] = layout.keys
    prefix, width, columns = layouts(parts)
    drive(
        seed, first, cases, done, samples.data, samples.starts, kinds, tables, prefix, width, columns, keys, counts, samples.room
    )  # fmt: skip


def scan(seed: int, first: int, cases: int, done: np.ndarray) -> None:
    """Run cases of whole transactions."""
    parts = cut()
    samples = Samples.of(parts.transactions)
    ids, slots = table_slots(parts)
    prefix, width, columns = layouts(parts)
    drive_scan(
        seed, first, cases, done, samples.data, samples.starts, np.array(parts.offsets), np.array(parts.checksums), ids, slots,
        event_types.actions(), columns, prefix, width, TABLES, samples.room,
    )  # fmt: skip


def text_rows(seed: int, first: int, cases: int, done: np.ndarray) -> None:
    """Run cases of a result's rows."""

    def packet(payload: bytes) -> bytes:
        return struct.pack("<I", len(payload))[:3] + b"\0" + payload

    row = packet(b"\x01a\xfb\xfc\x2c\x01" + b"x" * 300) + packet(b"\xfd\x05\0\0hello\xfe\x01\0\0\0\0\0\0\0z\0")
    end = packet(b"\xfe\0\0\2\0")
    samples = Samples.of([row * 2 + end, row, packet(b"\xff\x10\x04#HY000no"), packet(b"\xfb\xfb\xfb") * 9, end])
    drive_text_rows(seed, first, cases, done, samples.data, samples.starts, samples.room)
