"""``cdc cursor export``: cursors as JSON, to keep them elsewhere."""

from __future__ import annotations

import typer

from cdc_lib.cli.context import ConsumerName, SourceName, config_of, find
from cdc_lib.cli.output import print_json
from cdc_lib.cli.pipelines import open_store_pipeline
from cdc_lib.errors import ConfigError
from cdc_lib.model.cursor import Cursor
from cdc_lib.pipeline import Pipeline
from cdc_lib.store import documents


def export(context: typer.Context, source: SourceName, consumer: ConsumerName = None) -> None:
    """Print cursors as a JSON list of documents, which restore takes.

    Example:
        cdc cursor export shop > shop-cursors.json
    """
    found = _load(open_store_pipeline(config_of(find(context, source))), source, consumer)
    print_json([documents.to_plain(one) for one in found])


def _load(pipeline: Pipeline, source: str, consumer: str | None) -> list[Cursor]:
    names = pipeline.cursors.consumers(source)
    if consumer is not None and consumer not in names:
        raise ConfigError(f"{source} has no {consumer} cursor", hint=f"It has: {', '.join(names) or 'none'}.")
    cursors = (pipeline.cursor(name) for name in names if consumer in (None, name))
    return [one for one in cursors if one is not None]
