"""Which comments of a lake table follow those of its source table: pure.

A comment of the source always wins. Where the source has none, a comment is removed only if it came from the source: the lake
table's property :data:`COMMENTS_PROPERTY` keeps what was carried over last.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from cdc_lib.model.comments import TableComments
from cdc_lib.model.lake_table import LakeTable

COMMENTS_PROPERTY = "cdc.comments"
"""Table property: the source's comments as a JSON mapping of lower-case column names; that of the table under an empty name."""


@dataclass(frozen=True, slots=True)
class CommentChange:
    """What one commit changes.

    Args:
        columns: lake columns and their new comments; None removes one.
        table: the table's new comment; an empty text removes it, None leaves it.
        carried: the new value of :data:`COMMENTS_PROPERTY`.
    """

    columns: Mapping[str, str | None] = field(default_factory=dict)
    table: str | None = None
    carried: str = ""


def comment_change(
    state: LakeTable, docs: Mapping[str, str], comment: str, wanted: Iterable[TableComments], *, shared: bool
) -> CommentChange | None:
    """Return how the comments of a lake table change; None if they do not.

    Args:
        state: the lake table.
        docs: its columns' comments by name, without columns that have none.
        comment: the table's own; empty without one.
        wanted: the comments at the source, in the order in which they were read; names as in the lake.
        shared: whether several source tables go into it: then only what has no comment yet gets one.
    """
    carried, now = dict(state.comments), {name.lower(): text for name, text in docs.items()}
    for one in wanted:
        found = {name.lower(): text for name, text in one.columns.items()} | {"": one.comment}
        if shared:
            carried = {name: text for name, text in found.items() if text} | carried
        else:
            carried = {name: text for name, text in found.items() if text}
    columns: dict[str, str | None] = {}
    for column in state.columns:
        name = column.name.lower()
        new = _followed(now.get(name, ""), state.comments.get(name, ""), carried.get(name, ""), shared=shared)
        if new is not None:
            columns[column.name] = new or None
    table = _followed(comment, state.comments.get("", ""), carried.get("", ""), shared=shared)
    if not columns and table is None and carried == state.comments:
        return None
    return CommentChange(columns, table, json.dumps(dict(sorted(carried.items()))))


def _followed(now: str, before: str, wanted: str, *, shared: bool) -> str | None:
    """Return the new comment, empty to remove it; None if it stays.

    Args:
        now: in the lake.
        before: what was carried over last.
        wanted: at the source.
        shared: whether other source tables may have set it.
    """
    if wanted == now or (shared and now):
        return None
    if wanted:
        return wanted
    return "" if now and now == before else None


def carried_comments(text: str | None) -> dict[str, str]:
    """Return the comments in the table's property; none if it is missing or is not this library's."""
    try:
        found = json.loads(text or "{}")
    except ValueError:
        return {}
    return {str(name): str(comment) for name, comment in found.items()} if isinstance(found, dict) else {}
