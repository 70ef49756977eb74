"""One stage of the main job at a time: ``plan``, ``drain``, ``merge``, ``ack``."""

from __future__ import annotations

from typing import Annotated

import typer

from cdc_lib.cli import spark
from cdc_lib.cli.context import SourceName, caller, config_of, find, open_pipeline, open_store_pipeline
from cdc_lib.cli.drains import drain_units
from cdc_lib.cli.output import say, table
from cdc_lib.errors import ConfigError
from cdc_lib.model.window import SnapshotTask, Unit
from cdc_lib.pipeline import AckResult

ack = typer.Typer(no_args_is_help=True, help="Move a cursor over the work that is found done in the store.")


def plan(context: typer.Context, source: SourceName) -> None:
    """Show what there is to drain: what is in flight, or else new windows and snapshots, which then are."""
    with_units(open_pipeline(config_of(find(context, source))).plan(by=caller("plan")))


def with_units(units: list[Unit]) -> None:
    """Print the units of a plan."""
    if not units:
        say("nothing to drain")
        return
    table(("unit", "what", "from", "to"), (_unit_row(unit) for unit in units))


def _unit_row(unit: Unit) -> tuple[str, str, str, str]:
    if isinstance(unit, SnapshotTask):
        return unit.id, f"snapshot of {unit.part.text if unit.part else unit.name}", f"chunk {unit.chunks}", "its end"
    return unit.id, "window", str(unit.start), str(unit.stop)


def drain(
    context: typer.Context,
    source: SourceName,
    unit: Annotated[list[str] | None, typer.Argument(help="Ids of units, as plan shows them; all without.")] = None,
) -> None:
    """Read units and write their batches; one that is drained already is left as it is."""
    config = config_of(find(context, source))
    units = open_pipeline(config).plan(by=caller("drain"))
    drain_units(config, _chosen(units, unit or []))


def _chosen(units: list[Unit], ids: list[str]) -> list[Unit]:
    if not ids:
        return units
    known = {unit.id: unit for unit in units}
    unknown = [one for one in ids if one not in known]
    if unknown:
        raise ConfigError(
            f"not in flight: {', '.join(unknown)}", hint=f"In flight: {', '.join(known) or 'nothing'}. See cdc plan."
        )
    return [known[one] for one in ids]


def merge(context: typer.Context, source: SourceName) -> None:
    """Merge what is drained into the lake tables, in Spark."""
    loaded = find(context, source)
    config_of(loaded)
    spark.run_job("spark_jobs.merge", loaded.path)


@ack.command("drain")
def ack_drain(context: typer.Context, source: SourceName) -> None:
    """Move the drain cursor over the windows and chunks whose batches are durable."""
    show_ack(open_pipeline(config_of(find(context, source))).ack_drain(by=caller("ack drain")))


@ack.command("lake")
def ack_lake(context: typer.Context, source: SourceName) -> None:
    """Move the lake cursor to the cut that the last merge published."""
    show_ack(open_store_pipeline(config_of(find(context, source))).ack_lake(by=caller("ack lake")))


def show_ack(result: AckResult) -> None:
    """Print how far a cursor moved."""
    moved = f"{result.start} → {result.stop}" if result.start != result.stop else f"at {result.stop}"
    waiting = f", {result.waiting} still waiting" if result.waiting else ""
    say(f"{result.consumer} cursor {moved}: {result.windows} windows, {result.chunks} chunks{waiting}")
    for one in result.aside:
        if one.fault is None:
            say(f"to be read anew: {one.table}: {one.why}")
            continue
        say(
            f"set aside: {one.table}, which stands as of {one.stands}: {one.fault.reason} [{one.fault.position}]",
            "yellow",
        )
