"""How large a YAML file may be, how deep it may go, and how much its aliases may write out: refused before a tree is built.

A file of a few hundred bytes can stand for gigabytes through aliases of aliases, and one that holds itself has no end. Whoever
reads many files must not be kept from the others by one of them.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import yaml

from cdc_lib.errors import ConfigError

MOST_BYTES = 1_048_576
"""Largest file: some 20,000 names of tables."""

MOST_NODES = 100_000
"""Most keys, values and items of a file, each alias counted as what it writes out."""

DEEPEST = 32
"""Most levels of values inside values; a source file has six."""


def read_bounded(path: Path) -> str:
    """Return the text of a file.

    Raises:
        ConfigError: it is no file, or too large.
        OSError: it cannot be read.
        UnicodeDecodeError: it is not UTF-8.
    """
    if path.exists() and not path.is_file():  # a named pipe would keep its reader for ever
        raise ConfigError("it is not a file", hint="Remove it from the folder of the sources.", file=str(path))
    with path.open("rb") as file:
        data = file.read(MOST_BYTES + 1)
    if len(data) > MOST_BYTES:
        raise ConfigError(
            f"the file is larger than {MOST_BYTES} bytes",
            hint="Name tables by patterns such as shop.*, or split the source into several files.",
            file=str(path),
        )
    return data.decode()


def check_events(events: Iterable[Any], path: Path) -> None:
    """Refuse a stream of YAML events that is too deep, or whose aliases write out too much; linear in the file.

    Args:
        events: what the parser yields, before anything is built of it.
        path: the file, for messages.

    Raises:
        ConfigError: with the line.
    """
    sizes: dict[str, int] = {}  # by anchor: nodes of what it names
    around: list[tuple[str | None, int]] = []  # anchors of the collections around, and nodes counted before each
    nodes = 0
    for event in events:
        line = event.start_mark.line + 1
        if isinstance(event, yaml.CollectionStartEvent):
            around.append((event.anchor, nodes))
            nodes += 1
            sizes.pop(event.anchor or "", None)
            if len(around) > DEEPEST:
                raise _refused(f"values are nested more than {DEEPEST} levels deep", path, line)
        elif isinstance(event, yaml.CollectionEndEvent):
            anchor, before = around.pop()
            if anchor is not None:
                sizes[anchor] = nodes - before
        elif isinstance(event, yaml.AliasEvent):
            if any(event.anchor == anchor for anchor, _ in around):
                raise _refused("an alias contains itself, so the file would have no end", path, line)
            nodes += sizes.get(event.anchor or "", 1)
        elif isinstance(event, yaml.ScalarEvent):
            nodes += 1
            if event.anchor is not None:
                sizes[event.anchor] = 1
        if nodes > MOST_NODES:
            raise _refused(f"the file holds more than {MOST_NODES} values, its aliases written out", path, line)


def _refused(message: str, path: Path, line: int) -> ConfigError:
    return ConfigError(message, hint="Write the values where they belong, without aliases.", file=str(path), line=line)
