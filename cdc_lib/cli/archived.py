"""Prints versions of a row: of a table that keeps them, or from stored batches and how far back those go."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from cdc_lib.cli.lake.preview import show_rows
from cdc_lib.cli.lake.reader import lake_reader
from cdc_lib.cli.output import print_json, say
from cdc_lib.errors import ConfigError


def instant(option: str, text: str) -> datetime | None:
    """Return the time that an option names; None for an empty text.

    Raises:
        ConfigError: it is not a time.
    """
    if not text:
        return None
    try:
        found: datetime = lake_reader("lake.arrow_types").parse_instant(text)
    except ValueError as error:
        raise ConfigError(f"{option} takes a time, not {text!r}", hint="For example 2026-01-31T12:00:00Z.") from error
    return found


def show_versions(rows: Any, *, as_json: bool) -> None:
    """Print versions, what each one changed last.

    Args:
        rows: with the column ``_changed``.
        as_json: whether JSON is printed.
    """
    cells, _ = _cells(rows, as_json=as_json)
    show_rows(cells if as_json else _first_what_happened(cells), as_json=as_json)


def _cells(rows: Any, *, as_json: bool) -> tuple[dict[str, list[Any]], list[list[str] | None]]:
    """Return the values of each column, as text for people, and the names of the columns that each version changed."""
    changed = rows.column("_changed").to_pylist()
    texts = changed if as_json else [None if names is None else ", ".join(names) for names in changed]
    return lake_reader("lake.catalog").shown(rows) | {"_changed": texts}, changed


def show_archived(found: Any, *, as_json: bool) -> bool:
    """Print archived versions, and since when all are known.

    Args:
        found: :class:`cdc_lib.read.archive.versions.ArchivedVersions`.
        as_json: whether JSON is printed.

    Returns:
        Whether there is a version.
    """
    cells, changed = _cells(found.rows, as_json=as_json)
    if as_json:
        rows = [dict(zip(cells, row, strict=True)) for row in zip(*cells.values(), strict=True)]
        print_json({"versions": rows, "complete_since": found.complete_since, "why": found.why})
        return bool(rows)
    if changed:
        show_rows(_first_what_happened(cells), as_json=False)
    else:
        say("no version is known")
    say(said_since(found))
    return bool(changed)


def _first_what_happened(cells: dict[str, list[Any]]) -> dict[str, list[Any]]:
    """Return columns as a line shows them: what happened and when, then the source's columns, then the others as far as they fit."""
    first = [name for name in ("_op", "_ts", "_valid_from", "_valid_to", "_changed") if name in cells]
    own = [name for name in cells if not name.startswith("_")]
    return {name: cells[name] for name in dict.fromkeys([*first, *own, *cells])}


def said_since(found: Any) -> str:
    """Return the sentence about how far versions go back.

    Args:
        found: :class:`cdc_lib.read.archive.versions.ArchivedVersions`.
    """
    since = f"since {found.complete_since.isoformat(' ')}" if found.complete_since else "of no earlier time"
    return f"all versions are known {since}: {found.why}"
