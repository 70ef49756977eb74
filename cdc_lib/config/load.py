"""Loads source files into :class:`SourceConfig`; a bad file does not affect the others."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from cdc_lib.config.documents import Document, KeyPath, read_document
from cdc_lib.config.environment import fill_in
from cdc_lib.config.explain import explain, sentence
from cdc_lib.config.source import SourceConfig
from cdc_lib.errors import ConfigError

DEFAULTS_FILE = "_defaults.yaml"
"""File in the folder of the sources with defaults for all of them; a source's own keys win."""

_SUFFIXES = frozenset({".yaml", ".yml"})


@dataclass(frozen=True, slots=True)
class Loaded:
    """The result of loading one file: a config or an error.

    Args:
        source: name of the source, which is the file's stem.
        path: the file.
        config: its values; None if it is not valid.
        error: all its problems; None if it is valid.
    """

    source: str
    path: Path
    config: SourceConfig | None = None
    error: ConfigError | None = None


def load_source(path: Path | str, environ: Mapping[str, str] = os.environ) -> SourceConfig:
    """Load one source file, with the defaults of the ``_defaults.yaml`` in its folder.

    Raises:
        ConfigError: with all problems of the file.
    """
    path = Path(path)
    defaults = path.with_name(DEFAULTS_FILE)
    return _source(read_document(path), read_document(defaults) if defaults.is_file() else None, environ)


def sent_source(path: Path) -> SourceConfig:
    """Load the values of a source that another process read from its file: no variable is looked for in them.

    Args:
        path: named after the source; its values as JSON.

    Raises:
        ConfigError: with all that is wrong.
    """
    values = json.loads(path.read_bytes())
    try:
        return SourceConfig.model_validate(values)
    except ValidationError as error:
        raise _wrong(Document(path, values), None, explain(error, SourceConfig, {})) from None  # values can be secret


def load_sources(folder: Path | str, environ: Mapping[str, str] = os.environ) -> list[Loaded]:
    """Load every source file of a folder, sorted by name; files that begin with ``_`` are not sources.

    Raises:
        ConfigError: the folder does not exist. Problems of a file are in its :class:`Loaded`.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise ConfigError(
            f"there is no folder {folder}", hint="Give the folder of the source files: --sources or CDC_SOURCES."
        )
    return _refuse_server_id_twins(_refuse_twins([_load(path, environ) for path in source_files(folder)]))


def source_files(folder: Path) -> list[Path]:
    """Return the source files of a folder, sorted by name; none is read."""
    return sorted(
        path for path in folder.iterdir() if path.suffix in _SUFFIXES and not path.name.startswith(("_", "."))
    )


def _load(path: Path, environ: Mapping[str, str]) -> Loaded:
    try:
        return Loaded(path.stem, path, config=load_source(path, environ))
    except ConfigError as error:
        return Loaded(path.stem, path, error=error)
    except Exception as error:  # noqa: BLE001 - one file must not keep the others from loading
        return failed(path, error)


def failed(path: Path, error: Exception) -> Loaded:
    """Return the result for a file whose load crashed: its text may contain a secret, so only the location is reported."""
    return Loaded(
        path.stem,
        path,
        error=ConfigError(
            f"the file cannot be used: it ends in {type(error).__name__}",
            hint="Take out what was changed last, and report it: this is a defect. The other sources continue.",
            file=str(path),
        ),
    )


def _source(document: Document, defaults: Document | None, environ: Mapping[str, str]) -> SourceConfig:
    given = _merged(_normal(defaults.values) if defaults else {}, _normal(document.values))
    given = {"source": document.path.stem, **given}
    unset: dict[KeyPath, str] = {}
    filled = fill_in(given, environ, unset)
    problems = list(unset.items())
    try:
        config = SourceConfig.model_validate(filled)
    except ValidationError as error:
        problems += [(path, text) for path, text in explain(error, SourceConfig, given) if path not in unset]
    else:
        if config.source != document.path.stem:
            text = f"must be equal to the file's name, {document.path.stem!r} (given {config.source!r})"
            problems.append((("source",), text))
        if not problems:
            return config
    raise _wrong(document, defaults, problems) from None


def _wrong(document: Document, defaults: Document | None, problems: list[tuple[KeyPath, str]]) -> ConfigError:
    placed = []
    for path, text in problems:
        home = document
        if defaults is not None and path not in document.lines and path in defaults.lines:
            home = defaults
        line = home.line(path)
        placed.append((home is defaults, line or 0, sentence(path, line, home.path.name, text)))
    lines = [text for _, _, text in sorted(placed)]
    count = "one thing is" if len(lines) == 1 else f"{len(lines)} things are"
    return ConfigError(
        "\n  ".join((f"{count} wrong with the source {document.path.stem}:", *lines)), file=str(document.path)
    )


def _normal(values: Mapping[str, Any]) -> Mapping[str, Any]:
    """Expand the short form of ``tables``, so that a list and a mapping merge."""
    tables = values.get("tables")
    return {**values, "tables": {"include": tables}} if isinstance(tables, list) else values


def _merged(under: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(under)
    for key, value in over.items():
        below = merged.get(key)
        merged[key] = _merged(below, value) if isinstance(below, Mapping) and isinstance(value, Mapping) else value
    return merged


def _refuse_twins(loaded: list[Loaded]) -> list[Loaded]:
    """Refuse two files of one source: they would share cursors. Many stores ignore case, so names are compared without it."""
    homes: dict[str, list[str]] = {}
    for one in loaded:
        homes.setdefault(one.source.lower(), []).append(one.path.name)
    return [_refuse(one, homes[one.source.lower()]) for one in loaded]


def _refuse(one: Loaded, files: list[str]) -> Loaded:
    if len(files) == 1:
        return one
    error = ConfigError(
        f"the source {one.source} has {len(files)} files: {', '.join(files)}",
        hint="Keep one of them: they would share cursors and batches.",
        file=str(one.path),
    )
    return replace(one, config=None, error=error)


def _refuse_server_id_twins(loaded: list[Loaded]) -> list[Loaded]:
    """Refuse equal server_ids at one server: it disconnects the older of two such replicas."""
    homes: dict[tuple[object, str, int, int], list[str]] = {}
    for one in loaded:
        if one.config is not None and one.config.server.server_id is not None:
            server = one.config.server
            # Behind two bastions, one private address can be two servers.
            hop = (server.hop.host, server.hop.port) if server.hop is not None else None
            homes.setdefault((hop, server.host, server.port, one.config.server.server_id), []).append(one.path.name)
    twins = {name: files for files in homes.values() if len(files) > 1 for name in files}
    return [_refuse_server_id(one, twins[one.path.name]) if one.path.name in twins else one for one in loaded]


def _refuse_server_id(one: Loaded, files: list[str]) -> Loaded:
    error = ConfigError(
        f"server.server_id is the same in {', '.join(files)}, which read the same server",
        hint="Give each its own, or leave it out.",
        file=str(one.path),
    )
    return replace(one, config=None, error=error)
