"""Stores what was asked to be erased: a document for each table, which stays, so that no later drain brings the rows back."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

from cdc_lib.errors import BatchMismatch
from cdc_lib.model.erasure import Erasure, TableErasures
from cdc_lib.model.table_name import TableName
from cdc_lib.ports import ObjectStore
from cdc_lib.store import documents, layout

_TRIES = 10


def erasures(store: ObjectStore, source: str) -> list[Erasure]:
    """Return all erasures of a source, by table."""
    prefix = layout.erasures_prefix(source)
    return [one for table in documents.below(TableErasures, store, prefix) for one in table.erasures]


def erasures_of(store: ObjectStore, source: str, table: TableName) -> Sequence[Erasure]:
    """Return the erasures of a table."""
    found = documents.find(TableErasures, store, layout.erasures_key(source, table))
    return found.erasures if found is not None else ()


def erasures_by_table(store: ObjectStore, source: str) -> Callable[[TableName], Sequence[Erasure]]:
    """Return what returns the erasures of a table: one listing says which tables have any, and only those that are asked for are read."""
    known = {info.key for info in store.list(layout.erasures_prefix(source))}

    @functools.cache
    def of(table: TableName) -> Sequence[Erasure]:
        return erasures_of(store, source, table) if layout.erasures_key(source, table) in known else ()

    return of


def keep_erasure(store: ObjectStore, erasure: Erasure) -> None:
    """Write an erasure, or what is new of it.

    Raises:
        BatchMismatch: other tasks write erasures of the table all the time.
    """
    key = layout.erasures_key(erasure.source, erasure.table)
    if (
        documents.changed(TableErasures, store, key, lambda now: (now or TableErasures()).having(erasure), _TRIES)
        is None
    ):
        raise BatchMismatch("other tasks write erasures of the table", hint="Run the same command again.", key=key)
