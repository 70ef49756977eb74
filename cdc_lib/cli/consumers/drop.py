"""``cdc consumers drop``: a consumer that no longer reads the batches."""

from __future__ import annotations

from typing import Annotated

import typer

from cdc_lib.cli.context import SourceName, config_of, find
from cdc_lib.cli.output import agreed, say
from cdc_lib.cli.pipelines import open_store_pipeline
from cdc_lib.consumers.restore import keep
from cdc_lib.consumers.subscribe import OWN
from cdc_lib.errors import ConfigError


def drop(
    context: typer.Context,
    source: SourceName,
    name: Annotated[str, typer.Argument(metavar="CONSUMER", help="As cdc consumers list shows it.")],
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
) -> None:
    """Remove the cursor of a consumer; a copy of it stays in the store.

    Example:
        cdc consumers drop shop audit
    """
    pipeline = open_store_pipeline(config_of(find(context, source)))
    if name in OWN:
        raise ConfigError(f"{name} is a cursor of the pipeline itself", hint="cdc cursor restore puts it elsewhere.")
    held = pipeline.cursor(name)
    if held is None:
        raise ConfigError(f"{source} has no consumer {name}", hint=f"cdc consumers list {source} names them.")
    if not agreed(f"Drop {name}, which is at {held.position}?", yes=yes):
        return
    key = keep(pipeline.store, held)
    pipeline.cursors.remove(held)
    say(f"{name} is dropped; back: cdc cursor restore {source} {name} --replaced {key}")
