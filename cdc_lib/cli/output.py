"""How the commands print: tables for people, JSON for programs, errors on the error stream."""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Iterable, Sequence
from dataclasses import fields, is_dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Column, Table
from rich.text import Text

from cdc_lib.errors import CdcError, ConfigError

WIDTH_OF_A_FILE = 200
"""Columns when the output is no terminal: what is piped is not folded at 80."""


def console(*, stderr: bool = False) -> Console:
    """Return a console on today's standard streams."""
    stream = sys.stderr if stderr else sys.stdout
    return Console(stderr=stderr, width=None if stream.isatty() else WIDTH_OF_A_FILE, highlight=False)


def say(text: str, style: str = "") -> None:
    """Print one line as it is."""
    console().print(Text(text, style=style), soft_wrap=True)


class _ToStderr(logging.Handler):
    """Whole lines on today's error stream, above a progress bar where there is one."""

    def emit(self, record: logging.LogRecord) -> None:
        sys.stderr.write(self.format(record) + "\n")
        sys.stderr.flush()


def show_log() -> None:
    """Let the library's progress and warnings be seen."""
    log = logging.getLogger("cdc_lib")
    if not any(isinstance(handler, _ToStderr) for handler in log.handlers):
        log.addHandler(_ToStderr())
    log.setLevel(logging.INFO)


def width() -> int:
    """Return how many characters a line has room for."""
    return console().width


def table(columns: Sequence[str], rows: Iterable[Sequence[str | Text]], *, whole_lines: bool = False) -> None:
    """Print a table; what it holds is never read as markup.

    Args:
        columns: their names.
        rows: their cells.
        whole_lines: whether each row is one line, however little of a cell is then to be seen.
    """
    heads = [
        Column(Text(name), no_wrap=whole_lines, overflow="ellipsis" if whole_lines else "fold") for name in columns
    ]
    grid = Table(*heads, header_style="bold", expand=False)
    for row in rows:
        grid.add_row(*(cell if isinstance(cell, Text) else Text(cell) for cell in row))
    console().print(grid)


def show_error(error: CdcError) -> None:
    """Print what went wrong, where, and what to do."""
    out = console(stderr=True)
    out.print(Text.assemble(("error: ", "bold red"), (error.message, "red")), soft_wrap=True)
    if error.context:
        place = ", ".join(f"{name}={value}" for name, value in error.context.items())
        out.print(Text(f"  at {place}", style="dim"), soft_wrap=True)
    if error.hint:
        out.print(Text(f"  {error.hint}", style="bold"), soft_wrap=True)


def exit_code(error: CdcError) -> int:
    """2 for what a person wrote wrongly, 1 for everything else."""
    return 2 if isinstance(error, ConfigError) else 1


def error_as_plain(error: CdcError) -> dict[str, Any]:
    """Write an error as JSON does."""
    return {
        "code": error.code,
        "message": error.message,
        "hint": error.hint,
        "context": error.context,
        "retryable": error.retryable,
    }


def print_json(value: Any) -> None:
    """Print a value of dataclasses and plain types as JSON: one line for programs, indented for people at a terminal."""
    indent = 2 if sys.stdout.isatty() else None
    sys.stdout.write(json.dumps(plain(value), indent=indent, ensure_ascii=False) + "\n")


def plain(value: Any) -> Any:
    """Turn dataclasses, times and paths into what JSON has."""
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, datetime):
        return value.isoformat()
    return str(value) if isinstance(value, Path) else value


def size(count: int | None) -> str:
    """Write a number of bytes: ``12.3 MiB``."""
    if count is None:
        return "?"
    amount = float(count)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if amount < 1024:
            return f"{amount:.0f} {unit}" if unit == "B" else f"{amount:.1f} {unit}"
        amount /= 1024
    return f"{amount:.1f} TiB"


def duration(seconds: float | None) -> str:
    """Write a time span: ``3 s``, ``5 min``, ``2.5 h``, ``3.0 d``."""
    if seconds is None:
        return "?"
    if seconds < 120:
        return f"{seconds:.0f} s"
    if seconds < 7200:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h" if seconds < 172_800 else f"{seconds / 86_400:.1f} d"
