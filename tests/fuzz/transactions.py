"""Compressed transactions and compressed events: recorded streams with parts of them packed, and then broken."""

from __future__ import annotations

import random
import zlib
from collections.abc import Callable
from dataclasses import replace
from functools import cache

import numpy as np
import zstandard

from cdc_lib.binlog.framing import event_types
from cdc_lib.binlog.rows.mariadb_compressed import end_of_bitmaps
from cdc_lib.binlog.rows.row_groups import ReadOptions
from tests.fuzz.streams import Outcome, outcome
from tests.harness.binlog.recorded import Event, Recorded, recorded
from tests.harness.binlog.streams import packed_integer

_BEGINS = (event_types.GTID, event_types.ANONYMOUS_GTID, event_types.MARIADB_GTID)
_EXTREMES = (
    0,
    1,
    250,
    251,
    1 << 16,
    (1 << 31) - 1,
    1 << 31,
    (1 << 32) - 1,
    1 << 40,
    (1 << 63) - 1,
    1 << 63,
    (1 << 64) - 1,
)


@cache
def _streams(flavor: str) -> list[Recorded]:
    return [stream.without_checksums() for stream in recorded().values() if stream.flavor == flavor]


def _read(stream: Recorded, chosen: random.Random) -> Outcome:
    """Read a stream twice, in portions and buffers of different sizes: the rows must be the same."""
    rows = chosen.choice([1, 3, 1 << 17])
    sizes = chosen.sample([40, 64, 1000, 1 << 16, 8 << 20], 2)
    portions = [1 << 20, chosen.choice([100, 1000, 1 << 20])]
    found, again = (
        outcome(stream, chosen, options=ReadOptions(group_rows=rows), inflate_size=inflate_size, most=most)
        for inflate_size, most in zip(sizes, portions, strict=True)
    )
    if found.rows() != again.rows():
        raise AssertionError(f"rows that differ with the portions: {found.error} {again.error}")
    longest = max(len(stream.wire), sum(len(table) for table in found.plain.rows().values()))
    if found.held > max(sizes[0], 1100 * longest):
        raise AssertionError(f"{found.held} bytes of memory for a stream of {len(stream.wire)}")
    return found


def bent(data: bytes, chosen: random.Random) -> bytes:
    """Return bytes with a few changes; most of them keep the length."""
    changed = bytearray(data)
    for _ in range(chosen.randint(1, 4)):
        at = chosen.randrange(len(changed) + 1)
        match chosen.randrange(8):
            case 0 | 1 if at < len(changed):
                changed[at] ^= 1 << chosen.randrange(8)
            case 2 | 3 if at < len(changed):
                changed[at] = chosen.choice([0, 1, 127, 128, 250, 251, 252, 253, 254, 255])
            case 4 if at < len(changed):
                changed[at] = (changed[at] + chosen.choice([-1, 1])) & 0xFF
            case 5:
                changed[at : at + 4] = chosen.choice(_EXTREMES[:8]).to_bytes(4, "little")
            case 6:
                changed[at:at] = chosen.randbytes(chosen.randrange(9))
            case 7:
                del changed[at : at + chosen.choice([1, 2, 8, len(changed)])]
            case _:
                pass
    return bytes(changed)


# --- transactions of MySQL


def payload(seed: int, first: int, cases: int, done: np.ndarray) -> None:
    """Run cases of compressed transactions; those that nothing was broken in must give the rows of the plain stream."""
    for case in range(first, first + cases):
        done[0] = case
        chosen = random.Random(seed << 40 | case)
        stream = chosen.choice(_streams("mysql"))
        broken = chosen.random() < 0.8
        found = _read(_packed(stream, chosen, broken=broken), chosen)
        if not broken and found.values() != outcome(stream, chosen).values():
            raise AssertionError(f"other rows than those of the plain stream: {found.error}")


def _packed(stream: Recorded, chosen: random.Random, *, broken: bool) -> Recorded:
    """Pack transactions; break one of them."""
    begins = [at for at, event in enumerate(stream.events) if event.kind in _BEGINS]
    ends = [*begins[1:], len(stream.events)]
    whole = [
        (at, end)
        for at, end in zip(begins, ends, strict=True)
        if stream.events[end - 1].kind == event_types.XID and all(e.in_file for e in stream.events[at:end])
    ]
    victim = chosen.choice(whole) if broken else None
    laid: list[Event] = []
    copied_to = 0
    for at, end in whole:
        if (at, end) != victim and chosen.random() < 0.5:
            continue
        laid += stream.events[copied_to : at + 1]
        inner = list(stream.events[at + 1 : end])
        body = _broken_body(inner, stream, chosen) if (at, end) == victim else _body(_bytes(inner), chosen)
        laid.append(stream.events[at].holding(body, event_types.TRANSACTION_PAYLOAD))
        copied_to = end
    return replace(stream, events=(*laid, *stream.events[copied_to:])).laid_out()


def _bytes(inner: list[Event]) -> bytes:
    return b"".join(event.whole for event in inner)


def _body(
    inner: bytes,
    chosen: random.Random,
    *,
    size: int | None = None,
    change: Callable[[bytes, random.Random], bytes] = lambda data, _: data,
    change_front: Callable[[bytes, random.Random], bytes] = lambda data, _: data,
) -> bytes:
    """Return the body of a TRANSACTION_PAYLOAD in one of the forms that it may have.

    Args:
        inner: the events.
        chosen: for the form.
        size: what it says of its inflated length, if that is wrong.
        change: changes the compressed bytes before their size is written.
        change_front: changes the fields in front.
    """
    compress = chosen.random() < 0.85
    packed = change(_frames(inner, chosen) if compress else inner, chosen)
    fields = {1: len(packed), 2: 0 if compress else 255}
    if compress or size is not None or chosen.random() < 0.5:
        fields[3] = len(inner) if size is None else size
    if chosen.random() < 0.2:
        fields[chosen.choice([4, 77, 300])] = chosen.choice(_EXTREMES)
    front = b""
    for name, value in sorted(fields.items(), key=lambda _: chosen.random()):
        number = packed_integer(value)
        front += packed_integer(name) + packed_integer(len(number)) + number
    return change_front(front + b"\0", chosen) + packed


def _frames(inner: bytes, chosen: random.Random) -> bytes:
    """Return one zstd frame or some, with and without their sizes and checksums; some may be empty."""
    cuts = sorted(chosen.randint(0, len(inner)) for _ in range(chosen.choice([0, 0, 1, 3])))
    pieces = [inner[at:end] for at, end in zip([0, *cuts], [*cuts, len(inner)], strict=True)]
    return b"".join(
        zstandard.ZstdCompressor(
            level=chosen.choice([1, 3, 9]),
            write_checksum=chosen.random() < 0.3,
            write_content_size=chosen.random() < 0.7,
        ).compress(piece)
        for piece in pieces
    )


def _broken_body(inner: list[Event], stream: Recorded, chosen: random.Random) -> bytes:
    whole = _bytes(inner)
    match chosen.randrange(7):
        case 0:
            body = _body(bent(whole, chosen), chosen)
        case 1:
            body = _body(whole, chosen, change=bent)
        case 2:
            body = _body(whole, chosen, change_front=bent)
        case 3:
            near = len(whole) + chosen.choice([-1, 1, -19, 19])
            body = _body(whole, chosen, size=max(0, chosen.choice([near, *_EXTREMES])))
        case 4:
            body = _body(_bytes(_shuffled(inner, list(stream.events), chosen)), chosen)
        case 5:
            body = _body(whole + _bomb(inner[0], chosen), chosen, size=chosen.choice([len(whole), 1 << 20, None]))
        case _:
            body = bent(_body(whole, chosen), chosen)
    return body


def _shuffled(inner: list[Event], others: list[Event], chosen: random.Random) -> list[Event]:
    """Leave events out, repeat them, change their order and types, or put in what belongs elsewhere."""
    found = list(inner)
    for _ in range(chosen.randint(1, 3)):
        at = chosen.randrange(len(found) + 1)
        match chosen.randrange(5):
            case 0:
                del found[at : at + 1]
            case 1:
                found.insert(at, chosen.choice(others))
            case 2:
                found.insert(at, inner[0].holding(_body(_bytes(inner), chosen), event_types.TRANSACTION_PAYLOAD))
            case 3:
                chosen.shuffle(found)
            case 4 if found:
                one = chosen.randrange(len(found))
                found[one] = found[one].holding(found[one].body, chosen.randrange(256))
            case _:
                pass
    return found


def _bomb(like: Event, chosen: random.Random) -> bytes:
    """Return what compresses to almost nothing: zeros, one long event, or many of the shortest."""
    size = 1 << chosen.choice([10, 16, 20, 23] if chosen.random() < 0.1 else [10, 16])
    match chosen.randrange(3):
        case 0:
            return bytes(size)
        case 1:
            return like.holding(bytes(size), chosen.choice([29, 29, 2, 30])).whole
        case _:
            return like.holding(b"", chosen.choice([29, 29, 2, 30])).whole * (size >> 6)


# --- events of MariaDB


def deflated(seed: int, first: int, cases: int, done: np.ndarray) -> None:
    """Run cases of compressed events; whatever their rows are, they must give what the same rows give uncompressed."""
    for case in range(first, first + cases):
        done[0] = case
        chosen = random.Random(seed << 40 | case)
        stream = chosen.choice(_streams("mariadb"))
        plain, packed = _both(stream, chosen)
        wrong_size = chosen.random() < 0.4
        if wrong_size:
            packed = _lying(packed, chosen)
        found = _read(packed.laid_out(), chosen)
        if not wrong_size:
            expected = outcome(plain.laid_out(), chosen)
            if found.values() != expected.values():
                raise AssertionError(f"other rows than those of the plain events: {found.error} {expected.error}")


def _both(stream: Recorded, chosen: random.Random) -> tuple[Recorded, Recorded]:
    """Return a stream with some of its rows broken, and the same with some of its events compressed."""
    plain, packed = [], []
    for event in stream.events:
        kind, body = event.kind, event.body
        at = _packed_from(event)
        if at >= 0 and kind != event_types.QUERY and chosen.random() < 0.3:
            body = body[:at] + bent(body[at:], chosen)
        if at >= 0 and kind != event_types.QUERY and chosen.random() < 0.3:  # version 2, which has extra data in front
            extra = chosen.randbytes(chosen.choice([0, 0, 1, 9]))
            body = body[:8] + (2 + len(extra)).to_bytes(2, "little") + extra + body[8:]
            kind, at = kind + 7, at + 2 + len(extra)
        plain.append(event.holding(body, kind))
        if at >= 0 and chosen.random() < 0.7:
            body = body[:at] + _deflated(body[at:], chosen)
            kind = event_types.QUERY_COMPRESSED if kind == event_types.QUERY else kind + (143 if kind < 30 else 139)
        packed.append(event.holding(body, kind))
    return replace(stream, events=tuple(plain)), replace(stream, events=tuple(packed))


def _packed_from(event: Event) -> int:
    """Return where in a body the part starts that is compressed; -1 for events that never are."""
    body = event.body
    if event.kind == event_types.QUERY:
        return 13 + int.from_bytes(body[11:13], "little") + body[8] + 1
    if event.kind in (event_types.WRITE_ROWS_V1, event_types.UPDATE_ROWS_V1, event_types.DELETE_ROWS_V1):
        return int(end_of_bitmaps(np.frombuffer(body, np.uint8), 8, len(body), event.kind))
    return -1


def _deflated(data: bytes, chosen: random.Random) -> bytes:
    needed = max(1, (len(data).bit_length() + 7) // 8)
    width = chosen.randint(needed, 4)
    return bytes([0x80 | width]) + len(data).to_bytes(width, "big") + zlib.compress(data, chosen.choice([0, 1, 6, 9]))


def _lying(stream: Recorded, chosen: random.Random) -> Recorded:
    """Break one compressed event: its head, its length, its stream; or give it far more than it says."""
    found = list(stream.events)
    at = chosen.choice([i for i, e in enumerate(found) if e.kind >= event_types.QUERY_COMPRESSED] or [len(found) - 1])
    body = found[at].body
    match chosen.randrange(5):
        case 0 | 1:
            body = body[:8] + bent(body[8:], chosen)
        case 2:
            body = bent(body, chosen)
        case 3:
            size = 1 << chosen.choice([8, 16, 20, 23] if chosen.random() < 0.1 else [8, 16])
            claimed = chosen.choice([1, 5, size - 1, size + 1, size, (1 << 32) - 1])
            body = body[: chosen.randint(8, 24)] + b"\x84" + claimed.to_bytes(4, "big") + zlib.compress(bytes(size))
        case _:
            found[at] = found[at].holding(body, chosen.choice([2, *range(23, 26), *range(30, 33), *range(165, 172)]))
            return replace(stream, events=tuple(found))
    found[at] = found[at].holding(body)
    return replace(stream, events=tuple(found))
