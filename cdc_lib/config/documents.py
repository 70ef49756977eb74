"""Reads one YAML file into plain values, with the line of each key.

Stricter than YAML: duplicate keys are errors, and the top level must be a mapping. No message repeats a value of the
file.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from cdc_lib.config.bounds import check_events, read_bounded
from cdc_lib.errors import ConfigError

KeyPath = tuple[str | int, ...]

_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""libyaml's compiled parser if the build has it, because a scheduler reads many files."""


@dataclass(frozen=True, slots=True)
class Document:
    """A file's values and their lines.

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
        ConfigError: the file cannot be read, is too large, is not YAML, has a duplicate key or is not a mapping.
    """
    try:
        return parse_document(read_bounded(path), path)
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
    try:
        check_events(yaml.parse(text, Loader=_LOADER), path)
        return _built(text, path)
    except yaml.YAMLError as error:
        # Without its cause: YAML's message may quote the line.
        raise _not_yaml(error, path) from None


def _built(text: str, path: Path) -> Document:
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
        return Document(path, _values(loader, node, path), lines)
    finally:
        loader.dispose()


def _values(loader: Any, node: yaml.Node, path: Path) -> Any:
    """Construct the values; YAML's constructors raise plain Python errors for invalid dates and numbers."""
    try:
        return loader.construct_document(node)
    except (ValueError, IndexError, OverflowError, TypeError):
        raise ConfigError(
            "a value looks like a date or a number, but is not a valid one (such as 2026-02-30)",
            hint="Correct it, or put quotation marks around it.",
            file=str(path),
            line=_line_of_fault(node),
        ) from None


def _line_of_fault(node: yaml.Node) -> int | None:
    """Return the line of the first scalar that cannot be constructed."""
    waiting = [node]
    while waiting:
        here = waiting.pop(0)
        if isinstance(here, yaml.ScalarNode):
            try:
                yaml.constructor.SafeConstructor().construct_object(here)
            except (ValueError, IndexError, OverflowError, TypeError):
                return here.start_mark.line + 1
        elif isinstance(here, yaml.SequenceNode):
            waiting += here.value
        else:
            waiting += [part for pair in here.value for part in pair]
    return None


def _lines(node: yaml.Node, at: KeyPath, path: Path, seen: set[int]) -> Iterator[tuple[KeyPath, int]]:
    if id(node) in seen:  # an alias: already visited, and it may refer to its own parent
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
                    f"the key {name!r} is given twice, on lines {known[name]} and {line}",
                    hint="Keep one of them.",
                    file=str(path),
                    line=line,
                    key=dotted((*at, name)),
                )
            known[name] = line
            yield (*at, name), line
            yield from _lines(value, (*at, name), path, seen)


def dotted(path: KeyPath) -> str:
    """Return a key path as text: ``tables.include[0]``."""
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else str(part)
    return text


def _not_yaml(error: yaml.YAMLError, path: Path) -> ConfigError:
    mark = getattr(error, "problem_mark", None)
    fault = " ".join(str(part) for part in (getattr(error, "context", None), getattr(error, "problem", None)) if part)
    hint = "Correct the line; indentation is by blanks."
    if "tag" in fault:
        fault, hint = "a value begins with !", "Put quotation marks around a text that begins with !."
    elif "alias" in fault:
        hint = 'Put quotation marks around a text that begins with *, such as "*.orders" or "*/5 * * * *".'
    elif "flow mapping" in fault:
        hint = 'Put quotation marks around a text with braces inside braces, such as "${NAME}".'
    return ConfigError(
        f"not YAML: {fault or error}", hint=hint, file=str(path), line=mark.line + 1 if mark is not None else None
    )
