"""``cdc step rollback``: drop the merge that the lake has in flight."""

from __future__ import annotations

from typing import Annotated

import typer

from cdc_lib import requests
from cdc_lib.cli.context import SourceName, caller, config_of, find
from cdc_lib.cli.output import agreed, say
from cdc_lib.cli.pipelines import open_store_pipeline
from cdc_lib.merge.planner import plan_of
from cdc_lib.model.cursor import LAKE
from cdc_lib.model.pace import counted


def rollback(
    context: typer.Context,
    source: SourceName,
    why: Annotated[str, typer.Option("--why", help="The reason; it is kept with the move.")] = "",
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
) -> None:
    """Remove the merge in flight from the lake cursor; the next merge is planned again from the lake cursor. The lake keeps its rows.

    Example:
        cdc step rollback shop --why "a batch was restored"
    """
    pipeline = open_store_pipeline(config_of(find(context, source)))
    lake = pipeline.cursor(LAKE)
    if lake is not None and lake.is_merging:
        plan = plan_of(lake)
        say(f"in flight: {counted(len(plan.batches), 'batch')} from {plan.start} to {plan.stop}")
        if not agreed(f"Forget this merge of {source}?", yes=yes):
            return
    moved = requests.rollback(pipeline, by=caller("step rollback"), why=why)
    say(f"the lake cursor is at {moved.position} with nothing in flight; cdc step merge {source} plans the next merge")
