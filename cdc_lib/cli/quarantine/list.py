"""``cdc quarantine list``: the tables that are left out of the lake, and why."""

from __future__ import annotations

from typing import Any

import typer

from cdc_lib.cli.context import AsJson, SourceName, config_of, find
from cdc_lib.cli.output import print_json, say, table
from cdc_lib.cli.pipelines import open_store_pipeline
from cdc_lib.model.cursor import DRAIN, LAKE
from cdc_lib.model.quarantine import LaggingTable
from cdc_lib.pipeline import Pipeline
from cdc_lib.quarantine.tables import hint_of


def list_tables(context: typer.Context, source: SourceName, as_json: AsJson = False) -> None:
    """List the quarantined tables of a source, with the error and what to do.

    A table that was resumed stays in the list until its new snapshot is in the lake. No server is contacted.

    Example:
        cdc quarantine list shop
    """
    found = _quarantined(open_store_pipeline(config_of(find(context, source))), source)
    if as_json:
        print_json(found)
        return
    if not found:
        say(f"no table of {source} is quarantined")
        return
    table(
        ("table", "state", "since", "position", "error"),
        ((one["table"], one["state"], f"{one['since']:%Y-%m-%d %H:%M:%S} UTC", one["position"], one["code"])
         for one in found),
    )  # fmt: skip
    for one in found:
        say(f"{one['table']}: {one['reason']}", style="yellow")
        say(f"  {one['hint']}", style="bold")


def _quarantined(pipeline: Pipeline, source: str) -> list[dict[str, Any]]:
    drain, lake = pipeline.cursor(DRAIN), pipeline.cursor(LAKE)
    records = drain.lagging_in(lake) if drain is not None else ()
    return [row for one in records if (row := _row(source, one)) is not None]


def _row(source: str, one: LaggingTable) -> dict[str, Any] | None:
    """Return the printed fields of a table; None for one that only waits for a requested snapshot."""
    record, fault = one.last, one.last.fault
    if fault is None:
        return None
    return {
        "table": one.table,
        "state": "quarantined" if record.is_open else "resumed",
        "since": record.at,
        "position": str(fault.position),
        "lake_position": str(one.position),
        "code": fault.code,
        "reason": fault.reason,
        "hint": hint_of(record, source) if record.is_open else "The next runs read it and merge its snapshot.",
    }
