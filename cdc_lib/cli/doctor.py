"""``cdc doctor``: what is wrong, and the statement that corrects it."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text

from cdc_lib.cli import job
from cdc_lib.cli.context import AsJson, config_of, find, settings
from cdc_lib.cli.output import NOT_KNOWN, console, exit_code, print_json, say, worst
from cdc_lib.cli.pipelines import open_pipeline
from cdc_lib.config import Loaded, load_sources
from cdc_lib.doctor.examine import examine
from cdc_lib.doctor.visit import Visit
from cdc_lib.errors import CdcError, ConfigError
from cdc_lib.model.finding import Finding
from cdc_lib.model.pace import counted

_THREADS = 64

_INDENT = "    "
_STYLES = {"ok": "green", "warning": "yellow", "unknown": "yellow", "error": "red"}


@dataclass(frozen=True, slots=True)
class Line:
    """One finding about one source: its level (see :class:`cdc_lib.model.finding.Finding`), what was found, and a hint."""

    source: str
    level: str
    what: str
    hint: str
    code: int = 0


def doctor(
    context: typer.Context,
    source: Annotated[
        str | None, typer.Argument(metavar="SOURCE", help="Name of a source: its file without .yaml. Default: all.")
    ] = None,
    as_json: AsJson = False,
    spark: Annotated[
        bool, typer.Option("--spark", help="Also run a Spark job that reads and writes as a merge does; needs SOURCE.")
    ] = False,
) -> None:
    """Check files, servers, stores, lake and Java before a run.

    Exits with 0 only when a run can work.
    One source has 30 seconds; of many, those that do not answer share 5. What could not be looked at in that time has the level
    unknown, and the exit status is 3 if nothing else is wrong.
    --spark runs a job on the source's Spark: its executors read a file of the store, write a table into the warehouse and read it
    again. The table is then dropped. A key, endpoint, certificate, right or jar that they lack is named.

    Example:
        cdc doctor
        cdc doctor shop
        cdc doctor shop --spark
        cdc doctor --json
    """
    if spark and source is None:
        raise ConfigError("--spark checks one source at a time", hint="Name it: cdc doctor SOURCE --spark")
    folder = settings(context).sources
    sources = load_sources(folder) if source is None else [find(context, source)]
    visit = Visit(len(sources))
    with ThreadPoolExecutor(_THREADS) as pool:  # most of them wait for their turn
        lines = [line for found in pool.map(partial(examined, visit=visit), sources) for line in found]
    if spark:
        lines += [line for loaded in sources for line in probed(loaded)]
    if as_json:
        print_json(lines)
    elif lines:
        show_lines(lines)
    else:
        say(f"there are no source files in {folder}")
    if code := worst(line.code for line in lines):
        raise typer.Exit(code)


def examined(loaded: Loaded, visit: Visit) -> Sequence[Line]:
    """Check one source; an unreachable one does not hide the others."""
    try:
        config = config_of(loaded)
        pipeline = open_pipeline(config)
        with visit.turn(config) as patience:
            if patience is None:
                return [_not_reached(loaded)]
            findings = examine(pipeline, patience, visit.java)
    except CdcError as error:
        return [_line_of(loaded, error)]
    return _lines(loaded, findings)


def probed(loaded: Loaded) -> Sequence[Line]:
    """Run the Spark job that checks what executors can do; that it cannot run is a line too."""
    with tempfile.TemporaryDirectory(prefix="cdc-doctor-") as folder:
        report = Path(folder) / "findings.json"
        try:
            job.run_job("probe", loaded, to_stderr=True, report=report)
        except CdcError as error:
            return [_line_of(loaded, error)]
        return _lines(loaded, [Finding(**one) for one in json.loads(report.read_bytes())])


def _line_of(loaded: Loaded, error: CdcError) -> Line:
    return Line(loaded.source, "error", error.what, error.hint, exit_code(error))


def _lines(loaded: Loaded, findings: Sequence[Finding]) -> list[Line]:
    codes = {"error": 1, "unknown": NOT_KNOWN}
    return [Line(loaded.source, one.level, one.what, one.hint, codes.get(one.level, 0)) for one in findings]


def _not_reached(loaded: Loaded) -> Line:
    what = "the source was not checked: other sources did not answer, and took all of the time"
    return Line(loaded.source, "unknown", what, f"cdc doctor {loaded.source} checks it alone.", NOT_KNOWN)


def show_lines(lines: Sequence[Line]) -> None:
    """Print findings, each with its hint on a line of its own that can be pasted, and how many errors and warnings there are."""
    widest = max((len(line.source) for line in lines), default=0)
    for line in lines:
        level = Text(f"{line.level:<7}", style=_STYLES.get(line.level, ""))
        grid = Table.grid(padding=(0, 2))
        grid.add_row(Text(f"{line.source:<{widest}}"), level, Text(line.what))
        console().print(grid)
        if line.hint:
            say(f"{_INDENT}{line.hint}", style="bold")
    errors, warnings, unknown = (sum(line.level == one for line in lines) for one in ("error", "warning", "unknown"))
    found = f"{counted(errors, 'error')}, {counted(warnings, 'warning')}"
    found += f", {unknown} not known" if unknown else ""
    say(found, style="red" if errors else "yellow" if unknown else "green")
