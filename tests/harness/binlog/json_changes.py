"""Random JSON diffs, and the documents that result, computed on Python values."""

from __future__ import annotations

import copy
import json
import random
import re
from collections.abc import Iterator

from tests.harness.binlog.json_values import NAMES, Document, document, encode
from tests.harness.binlog.streams import packed_integer

REPLACE, INSERT, REMOVE = range(3)
_IDENTIFIER = re.compile(r"[A-Za-z_$][A-Za-z0-9_$]*")

Path = tuple[str | int, ...]


def changes(chosen: random.Random, before: Document) -> tuple[bytes, Document]:
    """Return JSON diffs as MySQL writes them (``sql/json_diff.h``), and the document after them."""
    whole = [copy.deepcopy(before)]
    data = b""
    for _ in range(chosen.choice([0, 1, 1, 2, 5])):
        operation, path = _possible(chosen, whole[0])
        value = None if operation == REMOVE else document(chosen, 2)
        place = _place(whole, (0, *path))
        leg = path[-1] if path else 0
        if operation == REPLACE:
            place[leg] = copy.deepcopy(value)
        elif operation == REMOVE:
            del place[leg]
        elif isinstance(leg, int):
            place.insert(leg, copy.deepcopy(value))
        else:
            place[leg] = copy.deepcopy(value)
        data += difference(operation, path_text(path), None if operation == REMOVE else encode(value, chosen))
    return data, whole[0]


def difference(operation: int, path: bytes, value: bytes | None) -> bytes:
    """Return one JSON diff."""
    head = bytes([operation]) + packed_integer(len(path)) + path
    return head if value is None else head + packed_integer(len(value)) + value


def path_text(path: Path) -> bytes:
    """Return a JSON path as text: names that are not identifiers are quoted."""
    legs = (
        f"[{leg}]"
        if isinstance(leg, int)
        else f".{leg}"
        if _IDENTIFIER.fullmatch(leg)
        else f".{json.dumps(leg, ensure_ascii=False)}"
        for leg in path
    )
    return ("$" + "".join(legs)).encode()


def _possible(chosen: random.Random, whole: Document) -> tuple[int, Path]:
    """Return an operation and a path that are valid for the document."""
    places = list(_paths(whole))
    containers = [(path, place) for path, place in places if isinstance(place, (dict, list))]
    operation = chosen.choice([REPLACE, INSERT, INSERT, REMOVE])
    if operation == INSERT and containers:
        path, place = chosen.choice(containers)
        if isinstance(place, list):
            return INSERT, (*path, chosen.randint(0, len(place) + 2))
        return INSERT, (*path, chosen.choice([name for name in [*NAMES, "new", "néw"] if name not in place]))
    if operation == REMOVE and len(places) > 1:
        return REMOVE, chosen.choice(places[1:])[0]
    return REPLACE, chosen.choice(places)[0]


def _paths(value: Document, path: Path = ()) -> Iterator[tuple[Path, Document]]:
    yield path, value
    if isinstance(value, dict):
        for name, member in value.items():
            yield from _paths(member, (*path, name))
    elif isinstance(value, list):
        for i, element in enumerate(value):
            yield from _paths(element, (*path, i))


def _place(whole: Document, path: Path) -> Document:
    """Return the container that the last leg of a path refers to."""
    for leg in path[:-1]:
        whole = whole[leg]
    return whole
