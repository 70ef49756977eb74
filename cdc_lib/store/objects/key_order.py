"""Puts a listing into the order of keys where a server sorts the slash before all other characters."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from cdc_lib.ports import ObjectInfo


def in_order_of_keys(listed: Iterable[ObjectInfo], prefix: str) -> Iterator[ObjectInfo]:
    """Yield a listing in the order of its keys, with no more than one folder in memory.

    A server with real folders lists ``a/b`` before ``a-b``. In either order, keys that start with the same text are neighbours. So
    only keys are sorted that start like the first one does up to its first slash after the prefix.

    Args:
        listed: in the order of keys, or with the slash as the lowest character.
        prefix: with which all keys start.
    """
    group: list[ObjectInfo] = []
    start = ""
    for info in listed:
        if not group or not info.key.startswith(start):
            yield from sorted(group, key=_key)
            group, start = [], prefix + info.key[len(prefix) :].partition("/")[0]
        group.append(info)
    yield from sorted(group, key=_key)


def _key(info: ObjectInfo) -> str:
    return info.key
