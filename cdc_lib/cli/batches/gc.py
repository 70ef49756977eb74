"""``cdc batches gc``: remove batches that are no longer needed, and what no manifest names."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime
from typing import Annotated

import typer

from cdc_lib.cli.context import AsJson, SourceName, config_of, find
from cdc_lib.cli.output import print_json, say, size, table
from cdc_lib.cli.pipelines import open_store_pipeline
from cdc_lib.model.pace import counted
from cdc_lib.retention.garbage_collector import carry_out, plan_collection, prune_cursors
from cdc_lib.retention.removal import Collection


def gc(
    context: typer.Context,
    source: SourceName,
    yes: Annotated[
        bool, typer.Option("--yes/--dry-run", help="Remove them. Default: only show what would be removed.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Remove batches that every consumer has acknowledged and that are older than store.keep_batches_for.

    Removed too: files that no manifest names and that are a day old (of drains that died, unfinished writes), cuts that are older
    than the snapshots of the tables except the last hundred, and records of cursors that are no longer needed.

    Example:
        cdc batches gc shop
        cdc batches gc shop --yes
    """
    config = config_of(find(context, source))
    pipeline = open_store_pipeline(config)
    keep_for = config.store.keep_batches_for
    cuts_for = config.maintenance.keep_snapshots_for
    planned = plan_collection(pipeline.store, pipeline.cursors, source, keep_for, datetime.now(UTC), cuts_for)
    if yes:
        carry_out(pipeline.store, planned)
        prune_cursors(pipeline.store, pipeline.cursors, source)
    if as_json:
        print_json({"removed": yes, "size": planned.size, "planned": planned})
    else:
        show(planned, removed=yes)


def show(planned: Collection, *, removed: bool) -> None:
    """Print what is removed, and why the rest is kept."""
    counts = Counter(one.what for one in planned.removals)
    sizes: Counter[str] = Counter()
    for one in planned.removals:
        sizes[one.what] += one.size
    rows = [(what, str(count), size(sizes[what])) for what, count in sorted(counts.items())]
    if planned.unfinished:
        unfinished = sum(one.size for one in planned.unfinished)
        rows.append(("unfinished write", str(len(planned.unfinished)), size(unfinished)))
    if rows:
        table(("removed" if removed else "would go", "how many", "bytes"), rows)
    else:
        say("nothing to collect")
    for why, count in sorted(planned.kept.items()):
        say(f"kept: {counted(count, 'window')}: {why}")
    for name, count in sorted(planned.holding.items()):
        say(f"{name} holds back {counted(count, 'window')} old enough to go", style="yellow")
    if rows and not removed:
        say("--yes removes it")
