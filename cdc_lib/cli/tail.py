"""``cdc tail``: changes as lines of JSON, in the shape of alibaba canal's entries."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Iterator
from typing import Annotated

import typer

from cdc_lib.cli.context import SourceName, caller, config_of, find
from cdc_lib.cli.pipelines import open_store_pipeline
from cdc_lib.consumers.batch import Batch
from cdc_lib.consumers.entries import entries
from cdc_lib.consumers.ephemeral_subscription import EphemeralSubscription
from cdc_lib.consumers.subscribe import From, Holder, subscribe
from cdc_lib.consumers.subscription import POLL, Subscription
from cdc_lib.model.subscription import Interest
from cdc_lib.pipeline import Pipeline

_ROWS = 10_000
"""Rows of one read."""


def tail(
    context: typer.Context,
    source: SourceName,
    consumer: Annotated[
        str | None,
        typer.Option("--consumer", metavar="NAME", help="Continue at this consumer's position, and save it."),
    ] = None,
    tables: Annotated[
        list[str] | None, typer.Option("--tables", help="Pattern of database.table; may be given several times.")
    ] = None,
    start: Annotated[
        From, typer.Option("--start", help="Where to begin: the oldest stored batch, or after the newest.")
    ] = "earliest",
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Wait for more.")] = False,
) -> None:
    """Print changes as JSON lines of alibaba canal's shape.

    Batches hold the row after each change, and the row before it only for deletes. So beforeColumns is empty for updates, and
    updated is null if the binlog does not show whether a column changed. Cells that a change does not carry are left out.
    Statements of all tables are printed; values are text, binary ones in hex. Without --consumer no
    position is saved; with it, each batch is acknowledged after it is printed.

    Example:
        cdc tail shop --tables shop.orders --follow
        cdc tail shop --consumer audit --start earliest
    """
    pipeline = open_store_pipeline(config_of(find(context, source)))
    interest = Interest(tables=tuple(tables or ()))
    try:
        if consumer is None:
            _watch(pipeline, interest, start, follow=follow)
        else:
            _consume(pipeline, consumer, interest if tables else None, start, follow=follow)
    except BrokenPipeError:
        # The reader of the pipe has exited, as `head` does. Python would report it again when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _watch(pipeline: Pipeline, interest: Interest, start: From, *, follow: bool) -> None:
    watch = EphemeralSubscription(pipeline.store, pipeline.cursors, pipeline.config.source, interest, start)
    for batch in _batches(watch, follow=follow):
        _print(batch)


def _consume(pipeline: Pipeline, consumer: str, interest: Interest | None, start: From, *, follow: bool) -> None:
    source, by = pipeline.config.source, caller("tail")
    with subscribe(
        pipeline.store, pipeline.cursors, source, consumer, interest, start=start, holder=Holder(by)
    ) as subscription:
        for batch in _batches(subscription, follow=follow):
            _print(batch)
            batch.ack()


def _batches(where: EphemeralSubscription | Subscription, *, follow: bool) -> Iterator[Batch]:
    while True:
        batch = where.get(_ROWS)
        if batch:
            yield batch
        elif follow:
            time.sleep(POLL)
        else:
            return


def _print(batch: Batch) -> None:
    for entry in entries(batch):
        sys.stdout.write(json.dumps(entry, ensure_ascii=False) + "\n")
    sys.stdout.flush()
