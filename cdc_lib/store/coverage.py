"""Stores which ranges of each table were compared: one document for each pair of source table and lake table."""

from __future__ import annotations

from cdc_lib.model.coverage import Coverage
from cdc_lib.model.table_name import TableName
from cdc_lib.ports import ObjectStore
from cdc_lib.store import documents, layout


def coverage_of(store: ObjectStore, source: str, table: TableName, lake_table: str) -> Coverage | None:
    """Return what is known of a table; None before its first comparison."""
    return documents.find(Coverage, store, layout.coverage_key(source, table, lake_table))


def coverages(store: ObjectStore, source: str) -> list[Coverage]:
    """Return what is known of all tables, by name."""
    return documents.below(Coverage, store, layout.coverage_prefix(source))


def keep_coverage(store: ObjectStore, before: Coverage | None, after: Coverage) -> bool:
    """Replace the document of a table, unless another task has written it since it was read.

    Args:
        store: holds it.
        before: as it was read; None if there was none.
        after: the new one.

    Returns:
        Whether it is stored. If not, the other task's comparison counts, and this one's is lost.
    """
    key = layout.coverage_key(after.source, after.table, after.lake_table)

    def change(stored: Coverage | None) -> Coverage:
        return after if stored == before else stored or after

    return documents.changed(Coverage, store, key, change) == after
