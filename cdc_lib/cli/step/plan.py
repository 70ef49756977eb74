"""``cdc step plan``: the windows and snapshots that are drained next."""

from __future__ import annotations

import typer

from cdc_lib.cli.context import AsJson, SourceName, caller, config_of, find
from cdc_lib.cli.output import plain, print_json, say, table
from cdc_lib.cli.pipelines import open_pipeline
from cdc_lib.model.window import DrainUnit, SnapshotTask
from cdc_lib.pipeline import Pipeline
from cdc_lib.steps.plan import refuse_nothing


def plan(context: typer.Context, source: SourceName, as_json: AsJson = False) -> None:
    """Show the units to drain: those in flight, or else new windows and snapshots, which then are in flight.

    Example:
        cdc step plan shop
    """
    pipeline = open_pipeline(config_of(find(context, source)))
    units = pipeline.plan(by=caller("step plan"))
    if not as_json:
        show_units(pipeline, units)
        return
    if not units:
        refuse_nothing(pipeline)
    kinds = ("snapshot" if isinstance(unit, SnapshotTask) else "window" for unit in units)
    print_json([{"unit": unit.id, "kind": kind, **plain(unit)} for unit, kind in zip(units, kinds, strict=True)])


def show_units(pipeline: Pipeline, units: list[DrainUnit]) -> None:
    """Print the units of a plan.

    Raises:
        ConfigError: there are none, and no table is captured.
    """
    if not units:
        refuse_nothing(pipeline)
        say("nothing to drain")
        return
    table(("unit", "what", "from", "to"), map(_unit_row, units))


def _unit_row(unit: DrainUnit) -> tuple[str, str, str, str]:
    if isinstance(unit, SnapshotTask):
        return (
            unit.id,
            f"snapshot of {unit.title}",
            f"chunk {unit.chunks if unit.range is None else unit.range.chunks}",
            "its end",
        )
    return unit.id, "window", str(unit.start), str(unit.stop)
