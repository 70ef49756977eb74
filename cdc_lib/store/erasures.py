"""Stores what was asked to be erased: one document for each request, which stays, so that no later drain brings the rows back."""

from __future__ import annotations

from cdc_lib.model.erasure import Erasure
from cdc_lib.model.table_name import TableName
from cdc_lib.ports import ObjectStore
from cdc_lib.store import documents, layout


def erasures(store: ObjectStore, source: str) -> list[Erasure]:
    """Return all erasures of a source, by table."""
    return documents.below(Erasure, store, layout.erasures_prefix(source))


def erasures_of(store: ObjectStore, source: str, table: TableName) -> list[Erasure]:
    """Return the erasures of a table."""
    return documents.below(Erasure, store, layout.erasures_prefix(source, table))


def keep_erasure(store: ObjectStore, erasure: Erasure) -> None:
    """Write an erasure, or what is new of it."""
    store.put(layout.erasure_key(erasure), documents.dump(erasure))
