"""JSON documents as Python values, as the server prints them and as MySQL stores them, each made without the decoder.

Binary form: MySQL ``sql-common/json_binary.h``. ``bytes`` represent an opaque value of column type 252.
"""

from __future__ import annotations

import base64
import json
import random
import struct
from collections.abc import Callable
from decimal import Decimal
from typing import Any

Document = Any
"""None, bool, int, float, str, bytes, and lists and dicts of them."""

NAMES = ["a", "b", "cc", "x y", 'q"q', "é", "日本", "$d", "a.b", "[0]", "", "n\n", "\x00", "zzzzzzzzzz", "k" * 300, "_"]
_INTEGERS = [0, 1, -1, 2**15 - 1, 2**15, -(2**15), 2**16, -(2**31), 2**31, 2**32 - 1, 2**32, -(2**63), 2**63, 2**64 - 1]
_DOUBLES = [
    0.0,
    -0.0,
    0.1,
    -1.5,
    1e14,
    1e15,
    1e16,
    1234567890123456.8,
    1e-14,
    1e-15,
    1e-16,
    -1.2345678901234567e-15,
    5e-324,
    1.7976931348623157e308,
]
_TEXTS = ["", "x", "é€😀", '"\\/\b\f\n\r\t\x01\x1f', "w" * 127, "w" * 128, "日" * 100, "null", "0"]
_FIXED = 15
"""Number of zeros after or before the decimal point up to which the server prints no exponent."""


def document(chosen: random.Random, depth: int = 0) -> Document:
    """Return a random value; at depth 0 mostly an object or an array."""
    kind = chosen.random()
    if depth > 3 or kind < (0.45 if depth else 0.1):
        return scalar(chosen)
    count = chosen.choice([0, 1, 2, 3, 6])
    if kind < 0.75:
        return {name: document(chosen, depth + 1) for name in chosen.sample(NAMES, count)}
    return [document(chosen, depth + 1) for _ in range(count)]


def scalar(chosen: random.Random) -> Document:
    """Return a random scalar."""
    return chosen.choice(_SCALARS)(chosen)


_SCALARS: tuple[Callable[[random.Random], Document], ...] = (
    lambda chosen: chosen.choice([None, True, False]),
    lambda chosen: chosen.choice(_INTEGERS),
    lambda chosen: chosen.randint(-(10**12), 10**12),
    lambda chosen: chosen.choice(_DOUBLES),
    lambda chosen: (
        chosen.choice([1, -1]) * float(struct.unpack("<d", struct.pack("<q", chosen.randrange(0x7FF << 52)))[0])
    ),
    lambda chosen: chosen.randbytes(chosen.choice([0, 1, 2, 3, 200])),
    lambda chosen: chosen.choice(_TEXTS),
)


def text(value: Document) -> str:
    """Return a document as the server prints it."""
    match value:
        case dict():
            names = sorted(value, key=lambda name: (len(name.encode()), name.encode()))
            return "{" + ", ".join(f"{text(name)}: {text(value[name])}" for name in names) + "}"
        case list():
            return "[" + ", ".join(map(text, value)) + "]"
        case bytes():
            return f'"base64:type252:{base64.b64encode(value).decode()}"'
        case float():
            return _double(value)
        case str():
            return json.dumps(value, ensure_ascii=False)
        case _:
            return json.dumps(value)


def _double(value: float) -> str:
    """Return the shortest digits; with an exponent where fixed notation would need too many zeros."""
    shortest = Decimal(repr(value))
    sign, digits, _ = shortest.normalize().as_tuple()
    point = shortest.adjusted() + 1
    if not value or (point > -_FIXED and (point <= _FIXED or len(digits) > point)):
        fixed = format(shortest, "f")
        return fixed if "." in fixed else fixed + ".0"
    figures = "".join(map(str, digits))
    mantissa = figures[0] + ("." + figures[1:] if len(figures) > 1 else "")
    return f"{'-' if sign else ''}{mantissa}e{point - 1}"


def encode(value: Document, chosen: random.Random) -> bytes:
    """Return the binary form; containers have a random offset width, numbers the smallest type."""
    kind, body = _encoded(value, chosen)
    return bytes([kind]) + body


def _encoded(value: Document, chosen: random.Random) -> tuple[int, bytes]:
    """Return type and bytes of a value."""
    match value:
        case None | True | False:
            return 4, bytes([{None: 0, True: 1, False: 2}[value]])
        case int():
            return _integer(value)
        case float():
            return 11, struct.pack("<d", value)
        case str():
            return 12, _counted(value.encode())
        case bytes():
            return 15, b"\xfc" + _counted(value)
    narrow = _container(value, 2, chosen) if chosen.random() < 0.8 else None
    is_array = 2 * isinstance(value, list)
    return (is_array, narrow) if narrow is not None else (is_array + 1, _container(value, 4, chosen) or b"")


def _integer(value: int) -> tuple[int, bytes]:
    for kind, form, low, high in (
        (5, "<h", -(2**15), 2**15), (6, "<H", 0, 2**16), (7, "<i", -(2**31), 2**31), (8, "<I", 0, 2**32),
        (9, "<q", -(2**63), 2**63),
    ):  # fmt: skip
        if low <= value < high:
            return kind, struct.pack(form, value)
    return 10, struct.pack("<Q", value)


def _counted(data: bytes) -> bytes:
    """Return bytes with their length before them, seven bits a byte."""
    left, head = len(data), bytearray()
    while left > 127:
        head.append(left & 127 | 128)
        left >>= 7
    return bytes([*head, left]) + data


def _container(value: dict[str, Document] | list[Document], wide: int, chosen: random.Random) -> bytes | None:
    """Return the bytes of an object or an array with offsets of a width; None if they do not fit."""
    names = sorted((name.encode() for name in value), key=lambda n: (len(n), n)) if isinstance(value, dict) else []
    members = [value[name.decode()] for name in names] if isinstance(value, dict) else value
    at = 2 * wide + len(names) * (wide + 2) + len(members) * (1 + wide)
    keys, entries, tail = b"", b"", b""
    for name in names:
        keys += (at + len(tail)).to_bytes(wide, "little") + len(name).to_bytes(2, "little")
        tail += name
    for member in members:
        kind, body = _encoded(member, chosen)
        if kind in (4, 5, 6) or (wide == 4 and kind in (7, 8)):
            signed = body + (b"\xff" if kind in (5, 7) and body[-1] > 127 else b"\0") * wide
            entries += bytes([kind]) + signed[:wide]
        else:
            entries += bytes([kind]) + ((at + len(tail)) & 0xFFFFFFFF).to_bytes(4, "little")[:wide]
            tail += body
    whole = at + len(tail)
    if whole >= 1 << (8 * wide):
        return None
    return len(members).to_bytes(wide, "little") + whole.to_bytes(wide, "little") + keys + entries + tail
