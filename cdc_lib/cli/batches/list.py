"""``cdc batches list``: the batches of a source, as their manifests describe them."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from cdc_lib.cli.context import AsJson, SourceName, config_of, find
from cdc_lib.cli.output import print_json, say, size, table
from cdc_lib.cli.pipelines import open_store_pipeline
from cdc_lib.consumers.cursors import ends
from cdc_lib.model.cursor import DRAIN, Cursor
from cdc_lib.model.stored_window import StoredWindow
from cdc_lib.model.window import Window
from cdc_lib.store.manifests import find_manifest
from cdc_lib.store.windows import stored_windows


def list_batches(
    context: typer.Context,
    source: SourceName,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, max=10_000, help="How many of the last batches.")] = 20,
    as_json: AsJson = False,
) -> None:
    """List the last batches of a source, in the order of the binlog.

    A batch is "in flight" until the drain cursor acknowledges it, and "acked" then. "unused" is a batch that a rewind or a
    failover left out. Only the manifests that are shown are read.

    Example:
        cdc batches list shop --limit 50
    """
    pipeline = open_store_pipeline(config_of(find(context, source)))
    drain = pipeline.cursor(DRAIN)
    stored = stored_windows(pipeline.store, source)
    found: list[dict[str, Any]] = []
    for one in stored[-limit:]:
        manifest = find_manifest(pipeline.store, one.key)
        if manifest is not None and manifest.window is not None:  # garbage collection may remove it meanwhile
            window = manifest.window
            found.append({
                "batch": window.id, "epoch": window.epoch, "from": str(window.start), "to": str(window.stop),
                "rows": manifest.rows, "bytes": manifest.bytes, "status": _status(drain, window, one),
                "written_at": one.modified, "manifest": one.key,
            })  # fmt: skip
    if as_json:
        print_json(found)
        return
    if not found:
        say(f"{source} has no batches in the store")
        return
    columns = ("epoch", "from", "to", "rows", "bytes", "status", "written at")
    rows = (
        (
            str(one["epoch"]), one["from"], one["to"], f"{one['rows']:,}", size(one["bytes"]), one["status"],
            f"{one['written_at']:%Y-%m-%d %H:%M:%S} UTC",
        )
        for one in found
    )  # fmt: skip
    table(columns, rows)
    if len(stored) > len(found):
        say(f"{len(stored) - len(found)} earlier batches; --limit shows more")


def _status(drain: Cursor | None, window: Window, stored: StoredWindow) -> str:
    if drain is not None and window in drain.in_flight:
        return "in flight"
    end = ends(drain).get(window.epoch) if drain is not None else None
    return "acked" if end is not None and stored.stop <= end else "unused"
