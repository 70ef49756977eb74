"""``cdc run``: the whole main job of one source, once."""

from __future__ import annotations

from datetime import UTC, datetime
from math import ceil

import typer

from cdc_lib.cli import job
from cdc_lib.cli.changed_rows import compare_changed_rows
from cdc_lib.cli.context import SourceName, caller, config_of, find
from cdc_lib.cli.output import say
from cdc_lib.cli.pipelines import open_pipeline
from cdc_lib.cli.step.ack import ack_line, say_quarantined
from cdc_lib.cli.step.drain import drain_units
from cdc_lib.model.pace import counted, listed
from cdc_lib.model.window import SnapshotTask
from cdc_lib.pipeline import Pipeline
from cdc_lib.status.overview import gauges_of
from cdc_lib.steps.plan import refuse_nothing


def run(context: typer.Context, source: SourceName) -> None:
    """Drain and merge what is new, as a run of the DAG does.

    It plans, drains, acks, merges and acks again.
    Every step continues the work of an earlier run. If a run was stopped, run it again. Snapshots are read for
    snapshot.run_for; the next run goes on with them.

    Example:
        cdc run shop
    """
    loaded = find(context, source)
    config = config_of(loaded)
    by = caller("run")
    pipeline = open_pipeline(config)
    units = pipeline.plan(by=by)
    if not units:
        refuse_nothing(pipeline)
    snapshots = sum(isinstance(unit, SnapshotTask) for unit in units)
    _step(1, "plan", listed((len(units) - snapshots, "window"), (snapshots, "snapshot")) or "nothing to drain")
    if units:
        _step(2, "drain")
        drain_units(config, units, config.snapshot.until(datetime.now(UTC)))
    acked = pipeline.ack_drain(by=by)
    _step(3, "ack drain", ack_line(acked))
    say_quarantined(acked)
    if len(units) - snapshots >= config.drain.max_windows:
        _say_backlog(pipeline)
    plan = pipeline.plan_merge(by=by)
    if plan is None:
        _step(4, "plan merge", "nothing to merge")
        return
    _step(4, "plan merge", f"{counted(len(plan.batches), 'batch')} up to {plan.stop}")
    _step(5, "merge")
    job.run_job("merge", loaded)
    compare_changed_rows(config)
    _step(6, "ack lake", ack_line(pipeline.ack_lake(by=by)))


def _say_backlog(pipeline: Pipeline) -> None:
    """Print what a plan of the largest number of windows has left, if the server can be asked."""
    backlog, drain = gauges_of(pipeline).backlog, pipeline.config.drain
    if backlog is not None and backlog.bytes:
        needed = min(1000, ceil(backlog.bytes / drain.max_window_bytes))
        say(
            f"{backlog}. The next run goes on; drain.max_windows: {needed} in the source file lets one run read it all."
        )


def _step(number: int, name: str, result: str = "") -> None:
    say(f"[{number}/6] {name}{': ' * bool(result)}{result}", style="bold cyan")
