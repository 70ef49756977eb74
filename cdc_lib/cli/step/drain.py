"""``cdc step drain``: several units in parallel, with a progress bar."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from datetime import datetime
from typing import Annotated

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.text import Text

from cdc_lib.cli.context import SourceName, caller, config_of, find
from cdc_lib.cli.output import console, say, show_error, size
from cdc_lib.cli.pipelines import open_pipeline
from cdc_lib.config import SourceConfig
from cdc_lib.errors import CdcError, ConfigError
from cdc_lib.model.pace import counted
from cdc_lib.model.results import DrainResult
from cdc_lib.model.window import DrainUnit, SnapshotTask


def drain(
    context: typer.Context,
    source: SourceName,
    unit: Annotated[
        list[str] | None, typer.Argument(help="Ids of units, as cdc step plan shows them. Default: all.")
    ] = None,
) -> None:
    """Read units and write their batches; a unit that is already drained is not read again. Snapshots are read to their end.

    Example:
        cdc step drain shop
    """
    config = config_of(find(context, source))
    units = open_pipeline(config).plan(by=caller("step drain"))
    drain_units(config, _chosen(units, unit or []))


def _chosen(units: list[DrainUnit], ids: list[str]) -> list[DrainUnit]:
    if not ids:
        return units
    known = {unit.id: unit for unit in units}
    unknown = [one for one in ids if one not in known]
    if unknown:
        raise ConfigError(
            f"not in flight: {', '.join(unknown)}",
            hint=f"In flight: {', '.join(known) or 'nothing'}. See cdc step plan.",
        )
    return [known[one] for one in ids]


def drain_units(config: SourceConfig, units: Sequence[DrainUnit], until: datetime | None = None) -> None:
    """Drain units, ``drain.parallelism`` at a time, each with its own connection.

    Args:
        config: the source.
        units: in flight.
        until: when reading snapshots ends (UTC); None: after their last chunks.

    Raises:
        CdcError: the first error of a unit, after the others have ended.
    """
    if not units:
        say("nothing to drain")
        return
    failed: list[CdcError] = []
    pipeline = open_pipeline(config)
    snapshots = pipeline.for_snapshots()
    with _progress() as progress, ThreadPoolExecutor(config.drain.parallelism) as pool:
        bar = progress.add_task(f"drain {config.source}", total=len(units))
        drains = ((unit, snapshots if isinstance(unit, SnapshotTask) else pipeline) for unit in units)
        futures = {pool.submit(reader.drain, unit, until=until): unit for unit, reader in drains}
        try:
            for future in as_completed(futures):
                _report(progress, future, futures[future], failed)
                progress.advance(bar)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    for other in failed[1:]:
        show_error(other)
    if failed:
        raise failed[0]


def _report(progress: Progress, future: Future[DrainResult], unit: DrainUnit, failed: list[CdcError]) -> None:
    try:
        result = future.result()
    except CdcError as error:
        failed.append(error)
        progress.console.print(Text(f"{unit.id}: failed", style="red"), soft_wrap=True)
        return
    events = f", {counted(result.events, 'event')}" if result.events else ""
    amount = f"{counted(result.rows, 'row')}, {size(result.bytes)}{events} in {result.seconds:.1f} s"
    progress.console.print(Text(f"{result.unit_id}: {amount}"), soft_wrap=True)
    for one in result.quarantined:
        line = f"{result.unit_id}: {one.table} is left out: {one.fault.reason} [{one.fault.position}]"
        progress.console.print(Text(line, style="yellow"), soft_wrap=True)


def _progress() -> Progress:
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    out = console()
    return Progress(
        *columns, console=out, transient=True, disable=not out.is_terminal
    )  # in a file it leaves an empty line
