"""``cdc lake cuts``: the positions as of which the lake tables of a source are consistent."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import typer

from cdc_lib.cli.context import AsJson, SourceName, config_of, find
from cdc_lib.cli.output import plain, print_json, say, table
from cdc_lib.cli.pipelines import open_store_pipeline
from cdc_lib.model.merge_plan import Cut
from cdc_lib.model.table_name import TableName
from cdc_lib.model.verification import TableVerification, said_of_cut
from cdc_lib.store.cuts import last_cuts
from cdc_lib.store.verification import verifications

Known = Mapping[TableName, tuple[TableVerification, ...]]


def cuts(
    context: typer.Context,
    source: SourceName,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, max=10_000, help="How many of the last cuts.")] = 20,
    as_json: AsJson = False,
) -> None:
    """List the last cuts of a source: positions at which all its lake tables are consistent.

    JSON has the snapshot of each lake table, by which a query reads the tables as of the cut. The last column counts the tables that
    cdc verify found equal to the source at the position of the cut, before it and after it.

    Example:
        cdc lake cuts shop --limit 5
    """
    pipeline = open_store_pipeline(config_of(find(context, source)))
    found = last_cuts(pipeline.store, source, limit)
    known = verifications(pipeline.store, *found)
    if as_json:
        print_json([_document(*one) for one in zip(found, known, strict=True)])
        return
    if not found:
        say(f"{source} has no cuts yet; its first merge publishes one")
        return
    table(
        ("cut", "epoch", "position", "last commit", "published at", "tables", "equal to the source"),
        (_row(*one) for one in zip(found, known, strict=True)),
    )


def _document(cut: Cut, known: Known) -> dict[str, Any]:
    tables = [one for some in known.values() for one in some]
    return {**plain(cut), "verified": tables}


def _row(cut: Cut, known: Known) -> tuple[str, ...]:
    commit = f"{cut.event_time:%Y-%m-%d %H:%M:%S} UTC" if cut.event_time is not None else "none"
    at = f"{cut.at:%Y-%m-%d %H:%M:%S} UTC"
    verified = said_of_cut(one for some in known.values() for one in some)
    return cut.merge_id, str(cut.epoch), str(cut.position), commit, at, str(len(cut.tables)), verified
