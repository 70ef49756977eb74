"""Values of every encoding, each cell in an array of its own size and written into exactly the room its codec makes."""

from __future__ import annotations

import numpy as np
from numba import njit

from cdc_lib.binlog.bytes import copy
from cdc_lib.binlog.charsets import registry
from cdc_lib.binlog.types import date_text, decimal, enumset, floating, integer, jsonb, long_decimal, temporal, time
from tests.fuzz.mutation import Samples, begin, below, broken, fill
from tests.fuzz.samples import cut

_NOT_ENOUGH = "a document needs more room than it is given"


@njit(cache=True, nogil=True)
def drive_json(seed, first, cases, done, data, starts, room, hexes):
    """Binary documents, with enough room or with less, and at most that much."""
    rng = np.zeros(1, np.uint64)
    buffer, out = np.empty(room, np.uint8), np.empty(12 * room + jsonb.ROOM, np.uint8)
    pos, length, offsets, valid = (
        np.zeros(1, np.int64),
        np.zeros(1, np.int64),
        np.zeros(2, np.int32),
        np.zeros(1, np.uint8),
    )
    gap_at, gap_value = np.empty(room, np.int64), np.empty(room, np.float64)
    stack = np.empty((128, 6), np.int64)
    for case in range(first, first + cases):
        done[0] = case
        begin(rng, seed, case)
        size = broken(rng, data, starts, below(rng, starts.shape[0] - 1), buffer)
        length[0] = size
        enough = 12 * size + jsonb.ROOM
        most = below(rng, enough) if below(rng, 4) == 0 else enough
        status, _, _ = jsonb.documents(
            buffer[:size], pos, length, 1, 0, offsets, out[:most], valid, 0, gap_at, gap_value, stack, hexes, most
        )
        if status == jsonb.NO_SPACE and most == enough:
            raise ValueError(_NOT_ENOUGH)


@njit(cache=True, nogil=True)
def drive_members(seed, first, cases, done, labels, label_starts, longest):
    """ENUM and SET numbers of any width."""
    rng = np.zeros(1, np.uint64)
    buffer, out = np.empty(8, np.uint8), np.empty(longest, np.uint8)
    pos, length, offsets, valid = (
        np.zeros(1, np.int64),
        np.zeros(1, np.int64),
        np.zeros(2, np.int32),
        np.zeros(1, np.uint8),
    )
    for case in range(first, first + cases):
        done[0] = case
        begin(rng, seed, case)
        size = fill(rng, buffer, 1 + below(rng, 8))
        if below(rng, 2):
            buffer[1:] = 0
            buffer[0] &= np.uint8(7)
        length[0] = size
        enumset.enum(buffer[:size], pos, length, 1, offsets, out, valid, 0, labels, label_starts)
        enumset.set_(buffer[:size], pos, length, 1, offsets, out, valid, 0, labels, label_starts)


@njit(cache=True, nogil=True)
def drive_numbers(seed, first, cases, done):
    """Integers, bits, years and floats of any width that a table map may declare."""
    rng = np.zeros(1, np.uint64)
    buffer, values, valid = np.empty(8, np.uint8), np.empty(2, np.int64), np.zeros(1, np.uint8)
    pos, length = np.zeros(1, np.int32), np.zeros(1, np.int32)
    for case in range(first, first + cases):
        done[0] = case
        begin(rng, seed, case)
        size = fill(rng, buffer, 1 + below(rng, 8))
        b = buffer[:size]
        length[0] = size
        integer.signed(b, pos, length, 1, values[:1], valid, 0)
        integer.unsigned(b, pos, length, 1, values[:1], valid, 0)
        integer.bits(b, pos, length, 1, values[:1], valid, 0)
        integer.year(b, pos, length, 1, values[:1], valid, 0)
        floating.image(b, pos, length, 1, values[:1], valid, 0)


@njit(cache=True, nogil=True)
def _image_size(form, digits):
    """Bytes of DATE, DATETIME and TIMESTAMP, and of the last two before 5.6."""
    if form == 0:
        return 3
    if form >= 5:
        return 8 if form == 5 else 4
    return (5 if form == 1 else 4) + (digits + 1) // 2


@njit(cache=True, nogil=True)
def drive_temporal(seed, first, cases, done, data, starts, room, longest_time, longest_date, texts_of):
    """Dates and times of every precision, and their texts of any length."""
    rng = np.zeros(1, np.uint64)
    buffer, values, valid = np.empty(room, np.uint8), np.empty(1, np.int64), np.zeros(1, np.uint8)
    pos, length, offsets, out = (
        np.zeros(1, np.int64),
        np.zeros(1, np.int64),
        np.zeros(2, np.int32),
        np.empty(32, np.uint8),
    )
    for case in range(first, first + cases):
        done[0] = case
        begin(rng, seed, case)
        digits = below(rng, 7)
        for form in (0, 1, 2, 5, 6):
            length[0] = fill(rng, buffer, _image_size(form, digits))
            b = buffer[: length[0]]
            temporal.convert(b, pos, length, 1, values, valid, 0, form, digits, True)
            date_text.write(b, pos, length, 1, offsets, out[:longest_date], valid, 0, texts_of[form], digits)
        length[0] = fill(rng, buffer, 3 + (digits + 1) // 2)
        time.time_image(buffer[: length[0]], pos, length, 1, offsets, out[:longest_time], valid, 0, digits, False)
        length[0] = fill(rng, buffer, 3)
        time.time_image(buffer[:3], pos, length, 1, offsets, out[:longest_time], valid, 0, 0, True)
        length[0] = broken(rng, data, starts, below(rng, starts.shape[0] - 1), buffer)
        temporal.convert(buffer[: length[0]], pos, length, 1, values, valid, 0, 3 + below(rng, 2), digits, True)


@njit(cache=True, nogil=True)
def drive_decimals(
    seed, first, cases, done, widths, powers, groups, sizes, precisions, scales, longest, data, starts, room
):
    """Packed decimals of every precision and scale, and their texts."""
    digits, offsets, out, text_buffer = (
        np.zeros((1, 66), np.uint8),
        np.zeros(2, np.int32),
        np.empty(longest, np.uint8),
        np.empty(room, np.uint8),
    )
    rng = np.zeros(1, np.uint64)
    buffer, values, valid = np.empty(40, np.uint8), np.empty(2, np.int64), np.zeros(1, np.uint8)
    pos, length = np.zeros(1, np.int32), np.zeros(1, np.int32)
    for case in range(first, first + cases):
        done[0] = case
        begin(rng, seed, case)
        i = below(rng, sizes.shape[0])
        length[0] = fill(rng, buffer, sizes[i])
        n = groups[i]
        b = buffer[: sizes[i]]
        if precisions[i] <= 38:
            decimal.image(b, pos, length, 1, values, valid, 0, widths[i, :n], powers[i, :n])
        unpacked = digits[:, : 1 + precisions[i]]
        long_decimal.image(b, pos, length, 1, unpacked, widths[i, :n], powers[i, :n])
        long_decimal.write(length, 1, unpacked, scales[i], offsets, out[:longest], valid, 0)
        size = broken(rng, data, starts, below(rng, starts.shape[0] - 1), text_buffer)
        length[0] = size
        if long_decimal.text(text_buffer[:size], pos, length, 1, unpacked, scales[i]) < 0:
            long_decimal.write(length, 1, unpacked, scales[i], offsets, out[:longest], valid, 0)


@njit(cache=True, nogil=True)
def drive_texts(seed, first, cases, done, data, starts, room):
    """Bytes of any length, filled up, and as numbers."""
    rng = np.zeros(1, np.uint64)
    buffer, values, valid = np.empty(room, np.uint8), np.empty(2, np.int64), np.zeros(1, np.uint8)
    pos, length, offsets, out = (
        np.zeros(1, np.int64),
        np.zeros(1, np.int64),
        np.zeros(2, np.int32),
        np.empty(3 * room, np.uint8),
    )
    for case in range(first, first + cases):
        done[0] = case
        begin(rng, seed, case)
        size = broken(rng, data, starts, below(rng, starts.shape[0] - 1), buffer)
        b = buffer[:size]
        length[0] = size
        width = below(rng, room)
        total = copy.total(length, 1, width)
        copy.copy_ranges(b, pos, length, 1, offsets, out[:total], valid, 0, width)
        decimal.text(b, pos, length, 1, values, valid, 0)
        integer.text(b, pos, length, 1, values[:1], valid, 0)


@njit(cache=True, nogil=True)
def drive_doubles(seed, first, cases, done):
    """Doubles of any bits, as JSON prints them."""
    rng = np.zeros(1, np.uint64)
    buffer, out = np.empty(8, np.uint8), np.empty(34, np.uint8)
    for case in range(first, first + cases):
        done[0] = case
        begin(rng, seed, case)
        fill(rng, buffer, 8)
        value = buffer.view(np.float64)[0]
        if below(rng, 2):
            value = np.rint(value % 1e9) / 10.0 ** below(rng, 9)
        jsonb.write_double(value, out, 0)


def json(seed: int, first: int, cases: int, done: np.ndarray) -> None:
    """Run cases of JSON."""
    samples = Samples.of(cut().cells["json"])
    drive_json(seed, first, cases, done, samples.data, samples.starts, samples.room, jsonb._HEX)


def members(seed: int, first: int, cases: int, done: np.ndarray) -> None:
    """Run cases of ENUM and SET."""
    labels = [b"x", "yé".encode(), b"", b"a long label"]
    starts = np.cumsum([0, *map(len, labels)]).astype(np.int64)
    data = np.frombuffer(b"".join(labels), np.uint8)
    drive_members(seed, first, cases, done, data, starts, len(data) + len(labels))


def numbers(seed: int, first: int, cases: int, done: np.ndarray) -> None:
    """Run cases of numbers."""
    drive_numbers(seed, first, cases, done)


def times(seed: int, first: int, cases: int, done: np.ndarray) -> None:
    """Run cases of dates and times."""
    samples = Samples.of([b"2024-02-29", b"0000-00-00", b"2024-02-29 12:34:56", b"9999-12-31 23:59:59.999999"])
    forms = np.zeros(7, np.int64)
    for kind, form in temporal._FORMS.items():
        if not kind[1]:
            forms[form] = date_text._FORMS[kind[0], ""]
    for kind, form in temporal._OLD_FORMS.items():
        forms[form] = date_text._FORMS[kind, "old"]
    drive_temporal(
        seed,
        first,
        cases,
        done,
        samples.data,
        samples.starts,
        samples.room,
        time._LONGEST_TIME,
        date_text._LONGEST + 1,
        forms,
    )


def decimals(seed: int, first: int, cases: int, done: np.ndarray) -> None:
    """Run cases of DECIMAL."""
    kinds = [(p, s) for p in range(1, 66) for s in range(min(p, 38) + 1)]
    widths, powers = np.zeros((2, len(kinds), 10), np.int64)
    counts, sizes = np.zeros((2, len(kinds)), np.int64)
    for i, (precision, scale) in enumerate(kinds):
        width, power = decimal.groups(precision, scale)
        counts[i], sizes[i] = len(width), decimal.packed_size(precision, scale)
        widths[i, : len(width)], powers[i, : len(width)] = width, power
    samples = Samples.of([b"-0.000", b"123.45", b"9" * 65, b"0." + b"9" * 38, b"-1"])
    precisions, scales = (np.array([kind[i] for kind in kinds]) for i in (0, 1))
    drive_decimals(
        seed, first, cases, done, widths, powers, counts, sizes, precisions, scales, long_decimal._LONGEST, samples.data,
        samples.starts, samples.room,
    )  # fmt: skip


def texts(seed: int, first: int, cases: int, done: np.ndarray) -> None:
    """Run cases of text."""
    samples = Samples.of([b"", b"-12345.678", b"18446744073709551615", "Müller €".encode("cp1252"), bytes(range(256))])
    drive_texts(seed, first, cases, done, samples.data, samples.starts, samples.room)


def doubles(seed: int, first: int, cases: int, done: np.ndarray) -> None:
    """Run cases of doubles in JSON."""
    drive_doubles(seed, first, cases, done)


def charsets(seed: int, first: int, cases: int, done: np.ndarray) -> None:
    """Run cases of texts in every character set, both refused and replaced where they are none."""
    made = [registry.transcoder(name) for name in sorted(registry.READABLE)]
    words = ["Müller", "日本語テキスト", "😀", "Привет мир", "ascii only text of some length"]
    pieces = [
        word.encode(code, "ignore")
        for word in words
        for code in ("utf-8", "utf-16-be", "utf-32-be", "euc_jp", "gb18030")
    ]
    samples = Samples.of(pieces)
    rng, buffer = np.zeros(1, np.uint64), np.empty(samples.room, np.uint8)
    pos, offsets, valid = np.zeros(1, np.int32), np.zeros(2, np.int32), np.zeros(1, np.uint8)
    out = np.empty(3 * samples.room, np.uint8)
    for case in range(first, first + cases):
        done[0] = case
        begin(rng, seed, case)
        size = int(broken(rng, samples.data, samples.starts, below(rng, len(pieces)), buffer))
        one, replaces = made[case % len(made)], case % 3 == 0
        length = np.array([size], np.int32)
        room = (3 if replaces else one.growth) * size
        one.kernel(buffer[:size], pos, length, 1, offsets, out[:room], valid, 0, replaces, *one.tables)
