"""What is stored of comparisons with the source, for cuts and versions of rows."""

from __future__ import annotations

from cdc_lib.model.merge_plan import Cut
from cdc_lib.model.table_name import TableName
from cdc_lib.model.verification import TableVerification, verification_of
from cdc_lib.model.verify import Verified
from cdc_lib.ports import ObjectStore
from cdc_lib.store import documents, layout
from cdc_lib.store.after_merge import last_after_merge
from cdc_lib.store.verified import last_verified


def verifications(store: ObjectStore, *cuts: Cut) -> list[dict[TableName, tuple[TableVerification, ...]]]:
    """Return what is known of each source table, for each of some cuts of one source.

    Raises:
        StoreError: a document cannot be read.
    """
    if not cuts:
        return []
    verified, after = last_verified(store, cuts[0].source), last_after_merge(store, cuts[0].source)
    return [verification_of(cut, verified, after) for cut in cuts]


def verified_table(store: ObjectStore, source: str, table: TableName, lake_table: str) -> Verified | None:
    """Return the last comparison of one table; None before the first."""
    return documents.find(Verified, store, layout.verified_key(source, table, lake_table))
