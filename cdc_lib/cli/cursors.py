"""``cdc cursor export`` and ``restore``: keeping cursors elsewhere, and taking them back."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from cdc_lib.cli.context import SourceName, caller, config_of, find, open_store_pipeline
from cdc_lib.cli.output import print_json, say
from cdc_lib.cli.status import ConsumerName
from cdc_lib.consumers.restore import restore as put_in_place
from cdc_lib.errors import ConfigError
from cdc_lib.model.cursor import Cursor
from cdc_lib.pipeline import Pipeline
from cdc_lib.store import documents

IN_STORE = "store:"
"""What stands before the key of a document that lies in the store."""


def export(context: typer.Context, source: SourceName, consumer: ConsumerName = None) -> None:
    """Print cursors as a JSON list of documents, which restore takes."""
    found = _load(open_store_pipeline(config_of(find(context, source))), source, consumer)
    print_json([documents.to_plain(one) for one in found])


def restore(
    context: typer.Context,
    source: SourceName,
    consumer: ConsumerName = None,
    document: Annotated[
        str, typer.Option("--from", help="File of an export, or store:KEY of a cursor that was replaced.")
    ] = "-",
    why: Annotated[str, typer.Option("--why", help="The reason, for the cursor's record of moves.")] = "",
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
) -> None:
    """Put exported cursors in the place of those that stand; what is replaced stays in the store.

    Going back means that batches are drained, merged or read once more, which changes nothing. Going forward leaves out what
    lies in between, as when a restore is taken back.
    """
    pipeline = open_store_pipeline(config_of(find(context, source)))
    wanted = [one for one in _read(pipeline, document) if consumer in (None, one.consumer)]
    if not wanted:
        raise ConfigError(f"there is no {consumer or ''} cursor in {document}", hint="cdc cursor export makes one.")
    for one in wanted:
        held = pipeline.cursors.load(source, one.consumer)
        say(f"{one.consumer}: {_place(held)} → {_place(one)}", style="bold")
    if not yes:
        typer.confirm("Restore?", abort=True)
    restored = put_in_place(
        pipeline.store, pipeline.cursors, wanted,
        source=source, by=caller("cursor restore"), why=why or f"from {document}", at=datetime.now(UTC),
    )  # fmt: skip
    for done in restored:
        say(f"{done.cursor.consumer} cursor stands at {done.cursor.position}, generation {done.cursor.generation}")
        if done.replaced_key:
            say(f"  back: cdc cursor restore {source} {done.cursor.consumer} --from {IN_STORE}{done.replaced_key}")


def _load(pipeline: Pipeline, source: str, consumer: str | None) -> list[Cursor]:
    names = pipeline.cursors.consumers(source)
    if consumer is not None and consumer not in names:
        raise ConfigError(f"{source} has no {consumer} cursor", hint=f"It has: {', '.join(names) or 'none'}.")
    cursors = (pipeline.cursors.load(source, name) for name in names if consumer in (None, name))
    return [one for one in cursors if one is not None]


def _read(pipeline: Pipeline, document: str) -> list[Cursor]:
    """Read one document, or a list of them, from a file, from standard input (``-``) or from the store."""
    if document.startswith(IN_STORE):
        key = document.removeprefix(IN_STORE)
        found = pipeline.store.get(key)
        if found is None:
            raise ConfigError(f"there is no {key} in the store", hint="cdc cursor restore told the key.")
        return [documents.load(Cursor, found.data, key)]
    try:
        text = typer.get_text_stream("stdin").read() if document == "-" else Path(document).read_text()
        plain = json.loads(text)
    except (OSError, ValueError) as error:
        raise ConfigError(
            f"{document} cannot be read: {error}", hint="It is what cdc cursor export printed."
        ) from error
    many = plain if isinstance(plain, list) else [plain]
    return [documents.load(Cursor, json.dumps(one).encode(), document) for one in many]


def _place(at: Cursor | None) -> str:
    return f"{at.position} in epoch {at.epoch}" if at else "nothing"
