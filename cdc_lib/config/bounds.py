"""Limits of a YAML file: size, depth and expanded aliases, checked before a tree is built.

Nested aliases can expand a file of a few hundred bytes to gigabytes, and a recursive alias never ends. One bad file must not
keep the other files from loading.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import yaml

from cdc_lib.errors import ConfigError

MOST_BYTES = 1_048_576
"""Maximum bytes of a file: some 20,000 table names."""

MOST_NODES = 100_000
"""Maximum keys, values and items of a file, with aliases expanded."""

DEEPEST = 32
"""Maximum nesting; a source file has six levels."""


def read_bounded(path: Path) -> str:
    """Return the text of a file.

    Raises:
        ConfigError: it is not a file, or it is too large.
        OSError: it cannot be read.
        UnicodeDecodeError: it is not UTF-8.
    """
    if path.exists() and not path.is_file():  # reading a named pipe would block
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
    """Refuse a stream of YAML events that is too deep, or whose aliases expand too much; linear in the file.

    Args:
        events: events of the parser, before values are built.
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
