"""Which merge published a commit of a lake table, and with how many rows; pure.

A marker counts only in a commit that its merge published: a statement of a merge that lands in the table by mistake, or
another tool that copies a commit's properties, proves nothing.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable

from cdc_lib.model.pace import counted

PUBLISHED_PROPERTY = "cdc.published"
"""Snapshot summary property: the id of the merge that published the commit, and the table's number of rows then."""

_MERGE = re.compile(r'"merge_id":"([^"]+)"')


def publication(merge_id: str, rows: int | None) -> dict[str, str]:
    """Return the property of a commit.

    Args:
        merge_id: of the merge; without one there is no property.
        rows: rows of the table after the commit, by the merge's own account; None if unknown.
    """
    plain = {"format_version": 1, "merge_id": merge_id, "rows": rows}
    return {PUBLISHED_PROPERTY: json.dumps(plain, separators=(",", ":"))} if merge_id else {}


def why_unpublished(markers: Iterable[str], published: str | None, rows: int | None) -> str:
    """Return why the markers of a commit do not count; empty if they do, also for those of releases before this property.

    Args:
        markers: all markers of the commit, as text: those of other sources' tables too.
        published: the commit's property; None without one.
        rows: rows of the table by the commit's summary; None if it does not show them.
    """
    merges = {found[1] for text in markers if (found := _MERGE.search(text))}
    if not merges:
        return ""
    plain = json.loads(published) if published is not None else {"merge_id": "", "rows": None}
    if plain["merge_id"] not in merges:
        by = f"merge {plain['merge_id']} published" if plain["merge_id"] else "no merge published"
        return f"its newest marker is of merge {max(merges)}, in a commit that {by}"
    if rows is not None and plain["rows"] not in (None, rows):
        return f"its newest commit has {counted(rows, 'row')}, and merge {plain['merge_id']} published {plain['rows']}"
    return ""
