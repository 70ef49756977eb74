"""Stores the foreign commits that merges found: one small document for each source."""

from __future__ import annotations

from collections.abc import Sequence

from cdc_lib.model.foreign import KEPT_COMMITS, ForeignCommit, ForeignCommits
from cdc_lib.ports import ObjectStore
from cdc_lib.store import documents, layout


def noticed_commits(store: ObjectStore, source: str) -> list[ForeignCommit]:
    """Return the foreign commits that merges found, oldest first."""
    found = documents.find(ForeignCommits, store, layout.foreign_key(source))
    return list(found.commits) if found is not None else []


def note_commits(store: ObjectStore, source: str, found: Sequence[ForeignCommit]) -> None:
    """Add foreign commits; a known one keeps its ``noticed_at``."""
    if not found:
        return
    before = noticed_commits(store, source)
    known = {(one.lake_table, one.snapshot_id) for one in before}
    new = [one for one in found if (one.lake_table, one.snapshot_id) not in known]
    if new:
        kept = (*before, *sorted(new, key=lambda one: one.at))[-KEPT_COMMITS:]
        store.put(layout.foreign_key(source), documents.dump(ForeignCommits(source, kept)))
