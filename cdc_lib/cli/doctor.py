"""``cdc doctor``: what is wrong, and the statement that corrects it."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import typer
from rich.text import Text

from cdc_lib.cli.context import AsJson, config_of, open_pipeline, settings
from cdc_lib.cli.output import exit_code, print_json, say, table
from cdc_lib.config import Loaded, load_sources
from cdc_lib.doctor.examine import examine
from cdc_lib.errors import CdcError

_AT_ONCE = 16

_STYLES = {"ok": "green", "warning": "yellow", "error": "red"}


@dataclass(frozen=True, slots=True)
class Line:
    """One finding about one source: level (``ok``, ``warning`` or ``error``), what was found, and a hint."""

    source: str
    level: str
    what: str
    hint: str
    code: int = 0


def doctor(context: typer.Context, as_json: AsJson = False) -> None:
    """Check every source file, server, store, lake and Java; exits with 0 only when a run can work.

    Example:
        cdc doctor
        cdc doctor --json
    """
    folder = settings(context).sources
    with ThreadPoolExecutor(_AT_ONCE) as pool:  # the checks of a source may take a few seconds
        lines = [line for found in pool.map(examined, load_sources(folder)) for line in found]
    if as_json:
        print_json(lines)
    elif lines:
        show_lines(lines)
    else:
        say(f"there are no source files in {folder}")
    code = max((line.code for line in lines), default=0)
    if code:
        raise typer.Exit(code)


def examined(loaded: Loaded) -> Sequence[Line]:
    """Check one source; an unreachable one does not hide the others."""
    try:
        findings = examine(open_pipeline(config_of(loaded)))
    except CdcError as error:
        place = ", ".join(f"{name}={value}" for name, value in error.context.items())
        text = f"{error.message} [{place}]" if place else error.message
        return [Line(loaded.source, "error", text, error.hint, exit_code(error))]
    return [
        Line(loaded.source, found.level, found.what, found.hint, 1 if found.level == "error" else 0)
        for found in findings
    ]


def show_lines(lines: Sequence[Line]) -> None:
    """Print findings as a table, and how many errors and warnings there are."""
    rows = ((line.source, Text(line.level, style=_STYLES.get(line.level, "")), line.what, line.hint) for line in lines)
    table(("source", "", "finding", "what to do"), rows)
    errors = sum(line.level == "error" for line in lines)
    warnings = sum(line.level == "warning" for line in lines)
    say(f"{errors} errors, {warnings} warnings", style="red" if errors else "green")
