"""Rows of a batch as Arrow tables for consumers: some of their columns, in the order of changes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce

import pyarrow as pa
import pyarrow.compute as pc

from cdc_lib.model.manifest import ABSENT, BINLOG, CHANGE_COLUMNS, EPOCH, OFFSET, ROW
from cdc_lib.model.schema import TableSchema

ORDER = (EPOCH, BINLOG, OFFSET, ROW)
"""The order key's columns, most significant first."""


@dataclass(frozen=True, slots=True)
class TableRows:
    """Changes of one table with one schema version, in order.

    Args:
        table: ``database.table``.
        schema: the columns that are in ``rows``, after the change columns.
        rows: change columns (see :data:`cdc_lib.model.manifest.CHANGE_COLUMNS`), ``_absent`` (null for a complete row, else a
            character for each column of ``schema``), and the source columns.
    """

    table: str
    schema: TableSchema
    rows: pa.Table


def chosen(rows: pa.Table, schema: TableSchema, indexes: Sequence[int]) -> tuple[pa.Table, TableSchema]:
    """Keep only some columns, and their ``_absent`` marks.

    Args:
        rows: result of :func:`cdc_lib.store.batch_rows.read_file`.
        schema: schema of the file.
        indexes: indexes of the columns to keep, in order.
    """
    if len(indexes) == len(schema.columns):
        return rows, schema
    columns = tuple(schema.columns[index] for index in indexes)
    key = tuple(name for name in schema.primary_key if any(column.name == name for column in columns))
    absent_at = len(CHANGE_COLUMNS)
    marks = rows.column(absent_at)
    cut = [pc.utf8_slice_codeunits(marks, index, index + 1) for index in indexes]
    joined = reduce(lambda left, right: pc.binary_join_element_wise(left, right, ""), cut) if cut else marks
    rows = rows.select([*range(absent_at + 1), *(absent_at + 1 + index for index in indexes)])
    return rows.set_column(absent_at, ABSENT, joined), replace(schema, columns=columns, primary_key=key)


def in_order(rows: Sequence[pa.Table]) -> pa.Table:
    """Unite rows of one schema, in the order of changes."""
    whole = rows[0] if len(rows) == 1 else pa.concat_tables(rows, promote_options="permissive")
    return whole.sort_by([(name, "ascending") for name in ORDER])
