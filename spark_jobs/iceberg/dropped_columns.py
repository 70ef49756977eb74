"""Drops columns of an Iceberg table with Iceberg's Java API: SQL cannot drop a column and write a property in one commit."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from cdc_lib.model.lake_table import DROPPED_PROPERTY, LakeTable
from spark_jobs.iceberg.renames import refuse_redefined
from spark_jobs.iceberg.row_delta import each


def drop_columns(table: Any, state: LakeTable, columns: Sequence[str], source_table: str) -> None:
    """Drop columns and record their field ids, in one commit.

    Args:
        table: Iceberg's Java object, newly loaded from the catalog.
        state: the table on which the columns were decided.
        columns: names of columns that the table has.
        source_table: for messages.

    Raises:
        MergeConflict: another merge has changed the columns meanwhile.
    """
    change = table.newTransaction()
    refuse_redefined(change.table(), state, source_table)
    now = change.table().schema()
    ids = [int(field.fieldId()) for field in map(now.findField, columns) if field is not None]
    schema = change.updateSchema()
    for field in ids:
        schema = schema.deleteColumn(now.findColumnName(field))
    schema.commit()
    dropped = sorted({*dropped_fields(change.table().properties().get(DROPPED_PROPERTY)), *ids})
    change.updateProperties().set(DROPPED_PROPERTY, json.dumps(dropped)).commit()
    change.commitTransaction()


def dropped_fields(text: str | None) -> frozenset[int]:
    """Return the ids in the table's property."""
    return frozenset(map(int, json.loads(text))) if text else frozenset()


def partition_columns(table: Any) -> list[str]:
    """Return the columns of a table's partition specs, the current one and those before it.

    Args:
        table: Iceberg's Java object.
    """
    schema, specs = table.schema(), table.specs()
    ids = {int(field.sourceId()) for number in each(specs.keySet()) for field in each(specs[number].fields())}
    return [str(name) for one in sorted(ids) if (name := schema.findColumnName(one)) is not None]
