"""Prints versions of a row from stored batches, and how far back they go."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from cdc_lib.cli.lake.preview import show_rows
from cdc_lib.cli.lake.reader import lake_reader
from cdc_lib.cli.output import print_json, say
from cdc_lib.errors import ConfigError


def instant(text: str) -> datetime | None:
    """Return the time that --since names; None for an empty text.

    Raises:
        ConfigError: it is not a time.
    """
    if not text:
        return None
    try:
        found: datetime = lake_reader("read.key_text").parse_instant(text)
    except ValueError as error:
        raise ConfigError(f"--since takes a time, not {text!r}", hint="For example 2026-01-31T12:00:00Z.") from error
    return found


def refuse_since(since: datetime | None, mode: str) -> None:
    """Refuse --since for a table that keeps its versions itself.

    Raises:
        ConfigError: the option is given.
    """
    if since is not None:
        raise ConfigError(
            f"--since is for mirror and soft_delete tables, and the table is in {mode} mode", hint="Leave it out."
        )


def show_archived(found: Any, *, as_json: bool) -> bool:
    """Print archived versions, and since when all are known.

    Args:
        found: :class:`cdc_lib.read.archive.versions.ArchivedVersions`.
        as_json: whether JSON is printed.

    Returns:
        Whether there is a version.
    """
    changed = found.rows.column("_changed").to_pylist()
    cells = lake_reader("lake.catalog").shown(found.rows) | {"_changed": changed}
    if as_json:
        rows = [dict(zip(cells, row, strict=True)) for row in zip(*cells.values(), strict=True)]
        print_json({"versions": rows, "complete_since": found.complete_since, "why": found.why})
        return bool(rows)
    if changed:
        texts = {"_changed": [None if names is None else ", ".join(names) for names in changed]}
        first = [name for name in ("_op", "_ts", "_changed") if name in cells]
        own = [name for name in cells if not name.startswith("_")]
        show_rows({name: (cells | texts)[name] for name in dict.fromkeys([*first, *own, *cells])}, as_json=False)
    else:
        say("no version is known")
    say(said_since(found))
    return bool(changed)


def said_since(found: Any) -> str:
    """Return the sentence about how far versions go back.

    Args:
        found: :class:`cdc_lib.read.archive.versions.ArchivedVersions`.
    """
    since = f"since {found.complete_since.isoformat(' ')}" if found.complete_since else "of no earlier time"
    return f"all versions are known {since}: {found.why}"
