"""Differences of JSON documents, applied to the text of a document.

A list of differences (MySQL ``sql/json_diff.h``): each one byte of operation (0 replace, 1 insert, 2 remove), the path as a
length-encoded string such as ``$.a[1]."x y"``, and, but for remove, the value as length-encoded binary JSON. The document
before is printed, taken apart, changed and printed again: numbers and what JSON has no type for stay the texts that the
server printed, members are in the server's order (by length of the name, then by its bytes).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

REPLACE, INSERT, REMOVE = range(3)

_INDEX = re.compile(r"\[([0-9]{1,10})\]")
_NAME = re.compile(r"\.((?:[\w$]|[^\x00-\x7f])+)")
"""A name without quotes, which servers write only for identifiers; what else one may hold of Unicode is left to them."""
_LENGTHS = {252: 2, 253: 3, 254: 8}
"""Bytes after the first one of a length-encoded integer."""


class BadDiff(ValueError):
    """Differences that do not follow the format, or do not fit the document."""


class Number(NamedTuple):
    """A number as the server printed it."""

    text: str


@dataclass(frozen=True, slots=True)
class Diff:
    """One difference.

    Args:
        operation: REPLACE, INSERT or REMOVE.
        path: names of members and indexes of elements, from the top.
        start: where the value lies in the bytes that were parsed.
        size: bytes of the value; 0 for REMOVE.
    """

    operation: int
    path: tuple[str | int, ...]
    start: int
    size: int


def parse(data: bytes) -> list[Diff]:
    """Return the differences of one cell.

    Raises:
        BadDiff: a length leaves the cell, or an operation or a path is not known.
    """
    found = []
    at = 0
    while at < len(data):
        operation = data[at]
        if operation > REMOVE:
            raise BadDiff(f"the operation {operation} is not known")
        start, at = _counted(data, at + 1)
        path = tuple(_legs(data[start:at]))
        start = at
        if operation != REMOVE:
            start, at = _counted(data, at)
        found.append(Diff(operation, path, start, at - start))
    return found


def _counted(data: bytes, at: int) -> tuple[int, int]:
    """Return start and end of a string after its length."""
    if at >= len(data):
        raise BadDiff("a length is missing")
    size, first = data[at], at + 1
    if size > 250:  # not the length itself
        width = _LENGTHS.get(size, 0)
        size = int.from_bytes(data[first : first + width], "little")
        first += width
        if not width:
            raise BadDiff("a length does not follow the format")
    if first + size > len(data):
        raise BadDiff("a length leaves the differences")
    return first, first + size


def _legs(path: bytes) -> Iterator[str | int]:
    """Yield member names and element indexes of a path."""
    try:
        text = path.decode()
        at = 1
        while at < len(text):
            leg, at = _leg(text, at)
            yield leg
    except ValueError as error:
        raise BadDiff(f"the path {path[:100]!r} is not known: {error}") from error
    if not text.startswith("$"):
        raise BadDiff(f"the path {path[:100]!r} is not known")


def _leg(text: str, at: int) -> tuple[str | int, int]:
    """Return the name or index at an index of a path, and the index after it."""
    if index := _INDEX.match(text, at):
        return int(index[1]), index.end()
    if name := _NAME.match(text, at):
        return name[1], name.end()
    if not text.startswith('."', at):
        msg = f"neither a name nor an index is at {at}"
        raise ValueError(msg)
    quoted, end = json.JSONDecoder(strict=False).raw_decode(text, at + 1)
    quoted.encode()  # half of a character is no name
    return quoted, end


def apply(document: str, diffs: list[tuple[Diff, str | None]]) -> str:
    """Return a document's text after differences.

    Args:
        document: as the server prints it.
        diffs: in order, each with its value as the server prints it; None for REMOVE.

    Raises:
        BadDiff: a path does not exist in the document.
    """
    tree = _read(document)
    for diff, text in diffs:
        value = None if text is None else _read(text)
        if not diff.path:
            if diff.operation != REPLACE:
                raise BadDiff("only a replacement can be of the whole document")
            tree = value
            continue
        node = tree
        for leg in diff.path[:-1]:
            node = _child(node, leg)
        _change(node, diff, value)
    return "".join(_print(tree))


def _child(node: Any, leg: str | int) -> Any:
    if isinstance(leg, int) and isinstance(node, list) and leg < len(node):
        return node[leg]
    if isinstance(leg, str) and isinstance(node, dict) and leg in node:
        return node[leg]
    raise BadDiff(f"{leg!r} is not in the document")


def _change(node: Any, diff: Diff, value: Any) -> None:
    leg = diff.path[-1]
    if diff.operation == INSERT:
        if isinstance(leg, int) and isinstance(node, list):
            node.insert(leg, value)
            return
        if not isinstance(leg, str) or not isinstance(node, dict) or leg in node:
            raise BadDiff(f"{leg!r} cannot be put there")
        node[leg] = value
        return
    _child(node, leg)
    if diff.operation == REPLACE:
        node[leg] = value
    else:
        del node[leg]


def _read(text: str) -> Any:
    number: Callable[[str], Number] = Number
    return json.loads(text, parse_int=number, parse_float=number, strict=False)


def _print(value: Any) -> Iterator[str]:
    if isinstance(value, Number):
        yield value.text
    elif isinstance(value, dict):
        names = sorted(value, key=lambda name: (len(name.encode()), name.encode()))
        for i, name in enumerate(names):
            yield ("{" if i == 0 else ", ") + json.dumps(name, ensure_ascii=False) + ": "
            yield from _print(value[name])
        yield "}" if names else "{}"
    elif isinstance(value, list):
        for i, element in enumerate(value):
            yield "[" if i == 0 else ", "
            yield from _print(element)
        yield "]" if value else "[]"
    else:
        yield json.dumps(value, ensure_ascii=False)
