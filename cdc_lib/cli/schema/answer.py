"""``cdc schema answer``: decides about a schema change at which a table waits."""

from __future__ import annotations

from typing import Annotated

import typer

from cdc_lib.cli.context import AsJson, SourceName, caller, config_of, find
from cdc_lib.cli.output import print_json, say
from cdc_lib.cli.pipelines import open_store_pipeline
from cdc_lib.merge.answers import answer_question
from cdc_lib.model.position import Position
from cdc_lib.model.schema_question import Decision


def answer(
    context: typer.Context,
    source: SourceName,
    table: Annotated[
        str, typer.Argument(help="The table, as database.table; cdc schema questions lists those that wait.")
    ],
    decision: Annotated[
        Decision, typer.Argument(help="follow: the lake does as the source; keep: it keeps what it has.")
    ],
    position: Annotated[
        str | None, typer.Option("--position", help="Only if the table waits at this statement: binlog.000012:1079.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Answer the schema change at which a table waits; the next merge applies it to this statement only.

    The answer is stored with who gave it, and is not changed. No server is contacted.

    Example:
        cdc schema answer shop shop.orders keep
    """
    pipeline = open_store_pipeline(config_of(find(context, source)))
    at = Position.parse(position) if position is not None else None
    given = answer_question(pipeline, table, decision, at, by=caller("schema answer"))
    asked = given.question
    if as_json:
        print_json(given)
        return
    say(f"{asked.table}: {given.decision} is the answer to {asked.kind} at {asked.position} ({given.by})")
    say("the next merge applies it")
