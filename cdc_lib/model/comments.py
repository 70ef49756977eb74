"""Comments of a table and of its columns, as the source has them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from cdc_lib.model.table_name import TableName


@dataclass(frozen=True, slots=True)
class TableComments:
    """The comments of one table at the time they were read.

    Args:
        table: ``database.table``.
        comment: of the table; empty without one.
        columns: by column, without columns that have none.
    """

    table: TableName
    comment: str = ""
    columns: Mapping[str, str] = field(default_factory=dict)
