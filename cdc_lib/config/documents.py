"""One YAML file as plain values, with the line on which each key stands.

Stricter than YAML: a key that stands twice is an error, and so is anything but a mapping at the top.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from cdc_lib.errors import ConfigError

KeyPath = tuple[str | int, ...]

_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""libyaml is seven times as fast, which counts when a scheduler reads many files; not every build has it."""


@dataclass(frozen=True, slots=True)
class Document:
    """A file's values and where they stand.

    Args:
        path: the file.
        values: its top-level mapping.
        lines: line (from 1) of each key path.
    """

    path: Path
    values: Mapping[str, Any]
    lines: Mapping[KeyPath, int] = field(default_factory=dict)

    def line(self, path: KeyPath) -> int | None:
        """Return the line of a key, or of the nearest key around it that the file has."""
        while path:
            if path in self.lines:
                return self.lines[path]
            path = path[:-1]
        return None


def read_document(path: Path) -> Document:
    """Read one YAML file.

    Raises:
        ConfigError: the file cannot be read, is no YAML, holds a key twice or is no mapping.
    """
    try:
        return parse_document(path.read_text(encoding="utf-8"), path)
    except OSError as error:
        raise ConfigError(
            f"cannot read the file: {error.strerror or error}",
            hint="Check its path and its permissions.",
            file=str(path),
        ) from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"the file is not UTF-8: {error.reason}", hint="Save it as UTF-8.", file=str(path)) from error


def parse_document(text: str, path: Path) -> Document:
    """Read the text of a YAML file; ``path`` is for messages."""
    loader = _LOADER(text)
    try:
        node = loader.get_single_node()
        if node is None:
            return Document(path, {})
        if not isinstance(node, yaml.MappingNode):
            raise ConfigError(
                "a source file holds keys and values at its top",
                hint="Begin with server:, tables:, store: and lake:.",
                file=str(path),
                line=node.start_mark.line + 1,
            )
        lines = dict(_lines(node, (), path, set()))
        return Document(path, loader.construct_document(node), lines)
    except yaml.YAMLError as error:
        raise _not_yaml(error, path) from error
    finally:
        loader.dispose()


def _lines(node: yaml.Node, at: KeyPath, path: Path, seen: set[int]) -> Iterator[tuple[KeyPath, int]]:
    if id(node) in seen:  # an alias: walked already, and it may point back at its own parent
        return
    seen.add(id(node))
    if isinstance(node, yaml.SequenceNode):
        for index, item in enumerate(node.value):
            yield (*at, index), item.start_mark.line + 1
            yield from _lines(item, (*at, index), path, seen)
    elif isinstance(node, yaml.MappingNode):
        known: dict[str, int] = {}
        for key, value in node.value:
            line = key.start_mark.line + 1
            name = str(key.value)
            if name in known:
                raise ConfigError(
                    f"the key {name!r} stands twice, on lines {known[name]} and {line}",
                    hint="Keep one of them.",
                    file=str(path),
                    line=line,
                    key=dotted((*at, name)),
                )
            known[name] = line
            yield (*at, name), line
            yield from _lines(value, (*at, name), path, seen)


def dotted(path: KeyPath) -> str:
    """Write a key path as people do: ``tables.include[0]``."""
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text


def _not_yaml(error: yaml.YAMLError, path: Path) -> ConfigError:
    mark = getattr(error, "problem_mark", None)
    said = " ".join(str(part) for part in (getattr(error, "context", None), getattr(error, "problem", None)) if part)
    hint = "Mend the line; indentation is by blanks."
    if "alias" in said:
        hint = 'Put quotation marks around a text that begins with *, such as "*.orders" or "*/5 * * * *".'
    elif "flow mapping" in said:
        hint = 'Put quotation marks around a text with braces inside braces, such as "${NAME}".'
    return ConfigError(
        f"not YAML: {said or error}", hint=hint, file=str(path), line=mark.line + 1 if mark is not None else None
    )
