"""``cdc metrics``: the figures of the sources for Prometheus."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from cdc_lib.cli.context import config_of, find, settings
from cdc_lib.cli.output import exit_code, show_error
from cdc_lib.cli.pipelines import open_pipeline
from cdc_lib.config import load_sources
from cdc_lib.errors import CdcError
from cdc_lib.status.prometheus import Exposition, Scraped, figures_of


def metrics(
    context: typer.Context,
    sources: Annotated[
        list[str] | None, typer.Argument(metavar="SOURCE", help="Names of sources. Default: all sources.")
    ] = None,
) -> None:
    """Print figures of the sources for Prometheus (OpenMetrics).

    Each server is asked for the end of its binlog. A source that cannot be read has cdc_source_up 0, and its error is printed on the
    error stream.

    Example:
        cdc metrics
        cdc metrics shop > /var/lib/node_exporter/cdc.prom
    """
    loaded = [find(context, source) for source in sources] if sources else load_sources(settings(context).sources)
    figures: list[Scraped] = []
    errors: dict[str, CdcError] = {}
    for one in loaded:
        try:
            figures.append(figures_of(open_pipeline(config_of(one)), ask=True))
        except CdcError as error:
            errors[one.source] = error
    sys.stdout.write(Exposition(figures, tuple(errors)).text())
    for found in errors.values():
        show_error(found)
    if errors:
        raise typer.Exit(max(map(exit_code, errors.values())))
