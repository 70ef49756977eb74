"""``cdc schema questions``: the schema changes that wait for an answer."""

from __future__ import annotations

from typing import Any

import typer

from cdc_lib.cli.context import AsJson, SourceName, config_of, find
from cdc_lib.cli.output import print_json, say, table
from cdc_lib.merge.answers import OpenQuestion, open_questions
from cdc_lib.model.schema_question import DECISIONS
from cdc_lib.store.objects.open import open_store


def questions(context: typer.Context, source: SourceName, as_json: AsJson = False) -> None:
    """List the schema changes at which tables of a source wait for an answer (schema_changes: ask).

    An answered question stays in the list until the next merge has applied the answer. No server is contacted.

    Example:
        cdc schema questions shop
    """
    found = open_questions(open_store(config_of(find(context, source)).store), source)
    if as_json:
        print_json([_row(one) for one in found])
        return
    if not found:
        say(f"no table of {source} waits for an answer")
        return
    table(
        ("table", "change", "position", "since", "answers", "answered"),
        ((row["table"], row["change"], row["position"], f"{row['since']:%Y-%m-%d %H:%M:%S} UTC", "|".join(row["decisions"]),
          f"{row['decision']} by {row['answered_by']}" if row["decision"] else "no")
         for row in map(_row, found)),
    )  # fmt: skip
    for one in found:
        say(f"{one.question.table}: {one.what}", style="yellow")


def _row(one: OpenQuestion) -> dict[str, Any]:
    asked, given = one.question, one.answer
    return {
        "table": asked.table,
        "lake_table": one.lake_table,
        "change": asked.kind,
        "epoch": asked.epoch,
        "position": str(asked.position),
        "since": one.since,
        "what": one.what,
        "decisions": DECISIONS[asked.kind],
        "decision": given.decision if given is not None else None,
        "answered_by": given.by if given is not None else None,
        "answered_at": given.at if given is not None else None,
    }
