"""Lineage of rows that are written again (Iceberg's format 3): which row each is, and which commit changed it last."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cdc_lib.apply.data_files import FIELD_ID
from cdc_lib.apply.key_rows import Rows

SINCE = 3
"""The format version since which rows have it."""

_ROW_ID, _CHANGED_BY = "_row_id", "_last_updated_sequence_number"

LINEAGE = (
    pa.field(_ROW_ID, pa.int64(), metadata={FIELD_ID: b"2147483540"}),
    pa.field(_CHANGED_BY, pa.int64(), metadata={FIELD_ID: b"2147483539"}),
)
"""Columns of a data file, by Iceberg's specification; null where a row has what its place in the file says."""


def with_lineage(rows: pa.Table, positions: Rows, first_row_id: int | None, sequence: int) -> pa.Table:
    """Return rows of a data file with what nulls of their lineage stand for.

    Args:
        rows: with the columns of the lineage.
        positions: of the rows in the file.
        first_row_id: of the file; None if it was written in an older format and has no lineage.
        sequence: data sequence number of the file.
    """
    if first_row_id is None:
        return rows
    ids = pc.coalesce(rows.column(_ROW_ID), pa.array(positions + np.int64(first_row_id)))
    changed_by = pc.coalesce(rows.column(_CHANGED_BY), pa.scalar(sequence, pa.int64()))
    for field, column in zip(LINEAGE, (ids, changed_by), strict=True):
        rows = rows.set_column(rows.schema.get_field_index(field.name), field, column)
    return rows
