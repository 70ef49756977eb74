"""``cdc snapshot``: a lake table read again from its source."""

from __future__ import annotations

from typing import Annotated

import typer

from cdc_lib import requests
from cdc_lib.cli.context import SourceName, caller, config_of, find
from cdc_lib.cli.output import agreed, say
from cdc_lib.cli.pipelines import open_pipeline
from cdc_lib.errors import ConfigError
from cdc_lib.model.pace import counted
from cdc_lib.model.results import ResnapshotPreview
from cdc_lib.pipeline import Pipeline
from cdc_lib.snapshot.partial import PartialRequest


def snapshot(
    context: typer.Context,
    source: SourceName,
    tables: Annotated[
        list[str] | None,
        typer.Argument(metavar="TABLE", help="Captured tables as database.table, with * and ? for several."),
    ] = None,
    lower: Annotated[
        str, typer.Option("--key-from", help="Only rows from this key on; a JSON list for a key of several columns.")
    ] = "",
    upper: Annotated[str, typer.Option("--key-to", help="Only rows up to this key, and this key.")] = "",
    where: Annotated[
        str, typer.Option("--where", help="Only rows that match a condition, such as \"created >= '2026-01-01'\".")
    ] = "",
    cancel: Annotated[
        str | None, typer.Option("--cancel", metavar="TABLE", help="Cancel the partial snapshot of this table.")
    ] = None,
    replace: Annotated[
        bool,
        typer.Option(
            "--replace", help="Begin the lake table again: deleted rows, versions and changes that it keeps go."
        ),
    ] = False,
    why: Annotated[str, typer.Option("--why", help="The reason; it is kept with the record.")] = "",
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
) -> None:
    """Take a new snapshot of tables, or of a part of one.

    The lake then equals the source.

    Example:
        cdc snapshot shop 'shop.*'
        cdc snapshot shop shop.orders --key-from 500 --key-to 599
        cdc snapshot shop shop.orders --replace
        cdc snapshot shop --cancel shop.orders
    """
    pipeline = open_pipeline(config_of(find(context, source)))
    part = bool(lower or upper or where)
    if (
        bool(tables) is (cancel is not None)
        or (part and (len(tables or ()) != 1 or (where and (lower or upper))))
        or (replace and (part or cancel is not None))
    ):
        raise ConfigError(
            "it is not clear what to read",
            hint="Name tables; or one table with --key-from and --key-to, or with --where; or --cancel TABLE alone. "
            "--replace is about whole tables.",
        )
    if cancel is not None:
        requests.cancel_snapshot(pipeline, cancel)
        say(f"the snapshot of a part of {cancel} is cancelled")
    elif part:
        _ask_part(pipeline, source, PartialRequest((tables or [""])[0], lower, upper, where, why), yes=yes)
    else:
        _ask_whole(pipeline, source, tables or [], why, replaces=replace, yes=yes)


def _ask_part(pipeline: Pipeline, source: str, request: PartialRequest, *, yes: bool) -> None:
    if request.where:
        say(
            f"{request.text}: they are read again, and go over what the lake holds; rows that the source no longer has stay"
        )
    else:
        say(
            f"{request.text}: they are read again, and rows of the lake between these keys that the source no longer has go"
        )
    say("Until they are read, the lake of this source does not change; draining continues.")
    if not agreed("Read them?", yes=yes):
        return
    task = requests.snapshot_rows(pipeline, request, by=caller("snapshot"))
    say(
        f"{task.id} is read and merged by the next runs; cdc snapshot {source} --cancel {task.name.in_shell} cancels it"
    )


def _ask_whole(pipeline: Pipeline, source: str, tables: list[str], why: str, *, replaces: bool, yes: bool) -> None:
    previews = requests.preview_resnapshot(pipeline, tables)
    for one in previews:
        say(_described(one, replaces=replaces))
    say("Until they are read, the lake does not change these tables; the others are merged as ever.")
    if not agreed(f"Read {counted(len(previews), 'table')} of {source} again?", yes=yes):
        return
    for record in requests.resnapshot(
        pipeline, [one.table for one in previews], by=caller("snapshot"), why=why, replaces=replaces
    ):
        say(f"{record.table} is read again after {record.released_position}; the next runs merge that")


def _described(one: ResnapshotPreview, *, replaces: bool) -> str:
    what = "rows" if one.keyed else "changes (it has no key: the list of its changes begins again)"
    what += ", with all deleted rows, versions and changes that it keeps," if replaces else ""
    cancelled = "; the snapshot in progress is cancelled" if one.reading else ""
    ends = "; its quarantine ends" if one.quarantined else ""
    return f"{one.table}: the {what} that the lake holds are replaced by the source's rows{cancelled}{ends}"
