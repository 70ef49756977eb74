"""``cdc cursor restore``: exported, replaced or lost cursors back in place."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from cdc_lib.cli.context import ConsumerName, SourceName, caller, config_of, find
from cdc_lib.cli.output import agreed, say
from cdc_lib.cli.pipelines import open_store_pipeline
from cdc_lib.consumers.rebuilt_cursors import Rebuilding
from cdc_lib.consumers.restore import restore as write_restored
from cdc_lib.errors import ConfigError
from cdc_lib.model.cursor import DRAIN, LAKE, Cursor
from cdc_lib.pipeline import Pipeline
from cdc_lib.store import documents


def restore(
    context: typer.Context,
    source: SourceName,
    consumer: ConsumerName = None,
    file: Annotated[str, typer.Option("--file", help="What cdc cursor export printed; - for standard input.")] = "-",
    replaced: Annotated[
        str | None,
        typer.Option("--replaced", metavar="KEY", help="A replaced cursor in the store, as cdc cursor show lists it."),
    ] = None,
    rebuild: Annotated[
        bool,
        typer.Option(
            "--rebuild",
            help="Make the lost drain and lake cursors again, from each other, the last cut and the stored batches.",
        ),
    ] = False,
    why: Annotated[str, typer.Option("--why", help="The reason, for the cursor's record of moves.")] = "",
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
) -> None:
    """Replace cursors by exported ones; a copy of what is replaced stays in the store.

    If a cursor goes back, batches are drained, merged or read again, which changes nothing. If it goes forward, the batches in
    between are left out, as when a restore is reverted.

    Example:
        cdc cursor restore shop --file shop-cursors.json --why "deleted by mistake"
        cdc cursor restore shop --rebuild
    """
    pipeline = open_store_pipeline(config_of(find(context, source)))
    origin, found = _read(pipeline, source, consumer, file, replaced, rebuild=rebuild)
    chosen = [one for one in found if consumer in (None, one.consumer)]
    if not chosen:
        raise ConfigError(f"there is no {consumer or ''} cursor in {origin}", hint="cdc cursor export makes one.")
    for one in chosen:
        held = pipeline.cursors.load(source, one.consumer)
        say(f"{one.consumer}: {_position_text(held)} → {_position_text(one)}", style="bold")
    if not agreed("Restore?", yes=yes):
        return
    restored = write_restored(
        pipeline.store, pipeline.cursors, chosen,
        source=source, by=caller("cursor restore"), why=why or f"from {origin}", at=datetime.now(UTC),
    )  # fmt: skip
    for done in restored:
        say(f"{done.cursor.consumer} cursor is at {done.cursor.position}, generation {done.cursor.generation}")
        if done.replaced_key:
            say(f"  back: cdc cursor restore {source} {done.cursor.consumer} --replaced {done.replaced_key}")


def _read(
    pipeline: Pipeline, source: str, consumer: str | None, file: str, replaced: str | None, *, rebuild: bool
) -> tuple[str, list[Cursor]]:
    """Read the documents that the options name; returns their origin, for messages, and the cursors."""
    if sum((file != "-", replaced is not None, rebuild)) > 1 or (rebuild and consumer not in (None, DRAIN, LAKE)):
        raise ConfigError(
            "it is not clear which cursor is to be restored",
            hint="Take one of --file FILE, --replaced KEY, and --rebuild, which makes the drain and lake cursors.",
        )
    if rebuild:
        now, by = datetime.now(UTC), caller("cursor restore")
        made = Rebuilding(pipeline, now, by).rebuilt(consumer)
        return "what is stored", made
    if replaced is not None:
        found = pipeline.store.get(replaced)
        if found is None:
            raise ConfigError(f"there is no {replaced} in the store", hint=f"cdc cursor show {source} lists the keys.")
        return replaced, [documents.load(Cursor, found.data, replaced)]
    return file, _from_file(file)


def _from_file(file: str) -> list[Cursor]:
    """Read one document, or a list of them, from a file or from standard input (``-``)."""
    try:
        text = typer.get_text_stream("stdin").read() if file == "-" else Path(file).read_text()
        plain = json.loads(text)
    except (OSError, ValueError) as error:
        raise ConfigError(f"{file} cannot be read: {error}", hint="It is what cdc cursor export printed.") from error
    many = plain if isinstance(plain, list) else [plain]
    return [documents.load(Cursor, json.dumps(one).encode(), file) for one in many]


def _position_text(at: Cursor | None) -> str:
    return f"{at.position} in epoch {at.epoch}" if at else "nothing"
