"""Changes comments of an Iceberg table with Iceberg's Java API: all of them, and the record of them, in one commit."""

from __future__ import annotations

from typing import Any

from cdc_lib.lake.comments import COMMENTS_PROPERTY, CommentChange
from cdc_lib.model.lake_table import LakeTable
from spark_jobs.iceberg.renames import refuse_redefined

COMMENT_PROPERTY = "comment"
"""Table property that engines show as the table's comment."""


def change_comments(table: Any, state: LakeTable, change: CommentChange, source_table: str) -> None:
    """Change comments, and record what came from the source.

    Args:
        table: Iceberg's Java object, newly loaded from the catalog.
        state: the table on which the change was decided.
        change: what changes.
        source_table: for messages.

    Raises:
        MergeConflict: another merge has changed the columns meanwhile.
    """
    transaction = table.newTransaction()
    refuse_redefined(transaction.table(), state, source_table)
    if change.columns:
        schema = transaction.updateSchema()
        for name, text in change.columns.items():
            schema = schema.updateColumnDoc(name, text)
        schema.commit()
    properties = transaction.updateProperties().set(COMMENTS_PROPERTY, change.carried)
    if change.table:
        properties = properties.set(COMMENT_PROPERTY, change.table)
    elif change.table is not None:
        properties = properties.remove(COMMENT_PROPERTY)
    properties.commit()
    transaction.commitTransaction()
