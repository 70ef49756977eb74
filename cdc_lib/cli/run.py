"""``cdc run``: the whole main job of one source, once."""

from __future__ import annotations

from datetime import UTC, datetime

import typer

from cdc_lib.cli import job
from cdc_lib.cli.changed_rows import compare_changed_rows
from cdc_lib.cli.context import SourceName, caller, config_of, find
from cdc_lib.cli.output import say
from cdc_lib.cli.pipelines import open_pipeline
from cdc_lib.cli.step.ack import show_ack
from cdc_lib.cli.step.drain import drain_units
from cdc_lib.cli.step.plan import show_units


def run(context: typer.Context, source: SourceName) -> None:
    """Plan, drain, ack, merge and ack again: what the DAG of a source does in one run.

    Every step continues the work of an earlier run. If a run was stopped, run it again. Snapshots are read for
    snapshot.run_for; the next run goes on with them.

    Example:
        cdc run shop
    """
    loaded = find(context, source)
    config = config_of(loaded)
    by = caller("run")
    pipeline = open_pipeline(config)
    _step(1, "plan")
    units = pipeline.plan(by=by)
    show_units(pipeline, units)
    _step(2, "drain")
    drain_units(config, units, config.snapshot.until(datetime.now(UTC)))
    _step(3, "ack drain")
    show_ack(pipeline.ack_drain(by=by))
    _step(4, "merge")
    plan = pipeline.plan_merge(by=by)
    if plan is None:
        say("nothing to merge")
        return
    say(f"{len(plan.batches)} batches up to {plan.stop}")
    job.run_job("merge", loaded)
    compare_changed_rows(config)
    _step(5, "ack lake")
    show_ack(pipeline.ack_lake(by=by))


def _step(number: int, name: str) -> None:
    say(f"[{number}/5] {name}", style="bold cyan")
