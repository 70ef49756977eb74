"""``cdc consumers``: who reads the batches of a source, and how far they are."""

from __future__ import annotations

from typing import Annotated

import typer

from cdc_lib.cli.context import AsJson, SourceName, config_of, find, open_store_pipeline
from cdc_lib.cli.output import duration, print_json, say, table
from cdc_lib.cli.status import say_who_holds
from cdc_lib.consumers.restore import keep
from cdc_lib.consumers.states import states
from cdc_lib.consumers.subscribe import OWN
from cdc_lib.errors import ConfigError
from cdc_lib.pipeline import Pipeline
from cdc_lib.store.windows import stored_windows


def consumers(
    context: typer.Context,
    source: SourceName,
    drop: Annotated[str | None, typer.Option("--drop", metavar="NAME", help="Remove this consumer's cursor.")] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    as_json: AsJson = False,
) -> None:
    """List the consumers of a source's batches, the lake included, or drop one."""
    config = config_of(find(context, source))
    pipeline = open_store_pipeline(config)
    if drop is not None:
        _drop(pipeline, source, drop, yes=yes)
        return
    windows = stored_windows(pipeline.store, source)
    found = list(states(windows, pipeline.cursors, source, config.store.keep_batches_for))
    if as_json:
        print_json(found)
        return
    columns = ("consumer", "acknowledged to", "batches behind", "lag", "held by", "moved at")
    rows = (
        (
            one.name, str(one.position), str(one.behind), duration(one.lag_seconds), one.holder or "nobody",
            f"{one.moved_at:%Y-%m-%d %H:%M:%S}" if one.moved_at else "",
        )
        for one in found
    )  # fmt: skip
    table(columns, rows)
    say_who_holds(source, found)


def _drop(pipeline: Pipeline, source: str, name: str, *, yes: bool) -> None:
    if name in OWN:
        raise ConfigError(f"{name} is a cursor of the pipeline itself", hint="cdc cursor restore puts it elsewhere.")
    held = pipeline.cursors.load(source, name)
    if held is None:
        raise ConfigError(f"{source} has no consumer {name}", hint=f"cdc consumers {source} lists them.")
    if not yes:
        typer.confirm(f"Drop {name}, which stands at {held.position}?", abort=True)
    key = keep(pipeline.store, held)
    pipeline.cursors.remove(held)
    say(f"{name} is dropped; back: cdc cursor restore {source} {name} --from store:{key}")
