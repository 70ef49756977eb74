"""Row images without all columns, and differences of JSON documents, through the reader."""

from __future__ import annotations

import random
from contextlib import suppress
from dataclasses import replace

import numpy as np

from cdc_lib.binlog.framing import event_types
from cdc_lib.binlog.rows.row_groups import ReadOptions
from cdc_lib.binlog.types.codec import ValueFault
from cdc_lib.binlog.types.json_diff import REMOVE, BadDiff, apply, parse
from cdc_lib.binlog.types.jsonb import JsonCodec
from tests.fuzz.samples import nested
from tests.fuzz.streams import outcome
from tests.fuzz.transactions import bent
from tests.harness.binlog.json_changes import changes, difference
from tests.harness.binlog.json_updates import partial_updates
from tests.harness.binlog.json_values import document, encode, text
from tests.harness.binlog.recorded import Event, Recorded, recorded

_ROW_EVENTS = (*event_types.ROWS, event_types.TABLE_MAP)


def images(seed: int, first: int, cases: int, done: np.ndarray) -> None:
    """Run cases of recorded streams whose images lack columns; row events and table maps are changed."""
    streams = [stream.without_checksums() for name, stream in recorded().items() if name.endswith("_images")]
    for case in range(first, first + cases):
        done[0] = case
        chosen = random.Random(seed << 40 | case)
        stream = chosen.choice(streams)
        found = list(stream.events)
        for at in chosen.sample(
            [i for i, event in enumerate(found) if event.kind in _ROW_EVENTS], chosen.randint(0, 3)
        ):
            found[at] = _changed(found[at], found, chosen)
        _same_in_portions(replace(stream, events=tuple(found)).laid_out(), chosen)


def _changed(event: Event, others: list[Event], chosen: random.Random) -> Event:
    """Change the bytes after the table id, or the type, or take another event's images."""
    body = event.body
    match chosen.randrange(8):
        case 0 if event.kind != event_types.TABLE_MAP:
            return event.holding(body, chosen.choice(event_types.ROWS[:7]))
        case 1 if event.kind != event_types.TABLE_MAP:
            other = chosen.choice([one for one in others if one.kind in event_types.ROWS])
            return event.holding(body[:8] + other.body[8:])
        case _:
            return event.holding(body[:6] + bent(body[6:], chosen))


def _same_in_portions(stream: Recorded, chosen: random.Random) -> None:
    """Read a stream twice; rows must not differ with the portions in which it comes."""
    options = ReadOptions(group_rows=chosen.choice([1, 2, 1 << 17]))
    omittable = frozenset(name for name in ("id", "a", "b", "c", "j", "t", "v") if chosen.random() < 0.2)
    found, again = (
        outcome(stream, chosen, options=options, omittable=omittable, most=most).rows() for most in (1 << 20, 300)
    )
    if found != again:
        raise AssertionError("rows that differ with the portions")


def differences(seed: int, first: int, cases: int, done: np.ndarray) -> None:
    """Run cases of differences: sound ones, hostile ones on sound documents, and whole corrupt events."""
    for case in range(first, first + cases):
        done[0] = case
        chosen = random.Random(seed << 40 | case)
        before = document(chosen)
        data, after = changes(chosen, before)
        if _applied(text(before), data) != text(after):
            raise AssertionError(f"differences that do not lead to {text(after)}")
        for _ in range(10):
            with suppress(BadDiff, ValueFault, RecursionError):
                _applied(text(before), bent(data, chosen) + _hostile(chosen))
        if case % 4 == 0:
            _read_updates(chosen, broken=chosen.random() < 0.7)


def _read_updates(chosen: random.Random, *, broken: bool) -> None:
    stream, expected = partial_updates(chosen, _hostile if broken else lambda _: b"")
    if broken and chosen.random() < 0.5:
        at = len(stream.events) - 2
        event = stream.events[at]
        body = event.body[:8] + bent(event.body[8:], chosen)
        stream = replace(stream, events=(*stream.events[:at], event.holding(body), *stream.events[at + 1 :]))
    found = outcome(stream.laid_out(), chosen)
    rows = [(row["id"], row["j"]) for groups in found.plain.rows().values() for row in groups.to_pylist()]
    if not broken and rows != expected:
        raise AssertionError(f"{found.error} or other rows than {expected}: {rows}")


def _hostile(chosen: random.Random) -> bytes:
    """Return differences that no server writes, mostly none."""
    if chosen.random() < 0.7:
        return b""
    value = chosen.choice([encode(document(chosen), chosen), b"\x0b" + bytes(6) + b"\xf0\x7f", b"", nested(120)])
    operation = chosen.choice([0, 1, 1, 2, 3, 255])
    return difference(operation, chosen.choice(_PATHS), None if operation == REMOVE else value)


_PATHS = (
    *(
        b"",
        b"$",
        b"$.",
        b"$[",
        b"$[]",
        b"$[-1]",
        b"$[last]",
        b"$[ 0]",
        b"$[0 to 1]",
        b"$**",
        b"$.*",
        b"$[*]",
        b"$. a",
        b"$.a b",
    ),
    *(
        b'$."',
        b'$.""',
        b'$."\\ud800"',
        b'$."\\ud83d\\ude00"',
        b'$."\\u0000"',
        b'$."a"b',
        b'$.a"b',
        b"$\xff",
        b"$.\xed\xa0\x80",
    ),
    *(
        "$[\u0663]".encode(),
        b"$[" + b"9" * 5000 + b"]",
        b"$[99999999999999999999]",
        b"$" + b"[0]" * 3000,
        b"$" + b".a" * 3000,
    ),
)


def documents(seed: int, first: int, cases: int, done: np.ndarray) -> None:
    """Run cases of documents in one buffer: sound ones print as their values, whatever is before and after them."""
    for case in range(first, first + cases):
        done[0] = case
        chosen = random.Random(seed << 40 | case)
        values = [document(chosen) for _ in range(chosen.randint(1, 4))]
        packed = [encode(value, chosen) for value in values]
        if _printed(packed) != [text(value) for value in values]:
            raise AssertionError(f"other texts than of {values}")
        at = chosen.randrange(len(packed))
        packed[at] = bent(packed[at], chosen)
        try:
            _printed(packed)
        except ValueFault as fault:
            if fault.row != at:
                raise AssertionError(f"document {fault.row} is blamed for {at}: {fault}") from fault


def _applied(before: str, data: bytes) -> str:
    found = parse(data)
    texts = iter(_printed([data[diff.start : diff.start + diff.size] for diff in found if diff.operation != REMOVE]))
    return apply(before, [(diff, None if diff.operation == REMOVE else next(texts)) for diff in found])


def _printed(packed: list[bytes]) -> list[str]:
    sizes = np.array([len(one) for one in packed], np.int32)
    starts = np.cumsum([0, *sizes])[:-1].astype(np.int32)
    codec = JsonCodec()
    codec.append(np.frombuffer(b"".join(packed), np.uint8), starts, sizes, len(packed))
    array = codec.finish()
    array.validate(full=True)
    return array.to_pylist()
