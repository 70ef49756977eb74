"""Renames columns of an Iceberg table with Iceberg's Java API.

A column keeps its field id, so older files are read under the new name. SQL cannot change names and a property in one commit,
nor exchange two names.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from pyspark.sql import SparkSession

from cdc_lib.errors import MergeConflict
from cdc_lib.lake.computed import renamed
from cdc_lib.lake.layout import renamed as renamed_layout
from cdc_lib.model.column_rename import RENAMES_PROPERTY, ColumnRename, from_json, to_json
from cdc_lib.model.lake_table import COMPUTED_PROPERTY, KEY_PROPERTY, LakeTable
from cdc_lib.model.layout import LAYOUT_PROPERTY
from spark_jobs.iceberg.loading import identity_of, texts


def rename_columns(
    session: SparkSession,
    table: Any,
    state: LakeTable,
    names: Mapping[str, str],
    renames: Sequence[ColumnRename],
    of: str,
) -> None:
    """Rename columns, and write the renames, the key and the layout, in one commit.

    Args:
        session: a Spark session.
        table: Iceberg's Java object, newly loaded from the catalog.
        state: the table on which the names were decided.
        names: columns and their new names, applied all at once.
        renames: all renames that the columns follow then.
        of: the source table, for messages.

    Raises:
        MergeConflict: another merge has renamed columns meanwhile.
    """
    change = table.newTransaction()
    refuse_redefined(change.table(), state, of)
    # Also without a new name: Iceberg does not rebase a schema change on another commit.
    schema = change.updateSchema()
    for old, new in names.items():
        schema = schema.renameColumn(old, new)
    lower = {old.lower(): new for old, new in names.items()}
    # A column that takes the name of another one would leave that one, or none, in the key: the names are changed one by one.
    identity = [lower.get(name.lower(), name) for name in identity_of(table)[0]]
    schema.setIdentifierFields(texts(session, tuple(identity))).commit()
    key = json.dumps([lower.get(name.lower(), name) for name in state.primary_key])
    properties = change.updateProperties().set(RENAMES_PROPERTY, to_json(renames)).set(KEY_PROPERTY, key)
    if state.computed:
        properties = properties.set(COMPUTED_PROPERTY, json.dumps(renamed(state.computed, names)))
    if state.layout.columns:
        properties = properties.set(LAYOUT_PROPERTY, renamed_layout(state.layout, lower).to_json())
    properties.commit()
    change.commitTransaction()


def refuse_redefined(table: Any, decided: LakeTable, source_table: str) -> None:
    """Refuse to change or to publish rows of other columns than those that were decided on.

    Another merge, perhaps of a later plan than one that was abandoned and still runs, may have added a column under the name of a
    dropped one: its values would go with the column, or rows would lack them.

    Args:
        table: Iceberg's Java object, as it is now.
        decided: the table on which the change was decided.
        source_table: for messages.

    Raises:
        MergeConflict: another merge has changed the columns meanwhile, or their names.
    """
    refuse_renamed(table, decided.renames, source_table)
    if int(table.schema().schemaId()) != decided.schema_id:
        raise MergeConflict(
            "another merge has changed the columns", hint="Nothing was published. Run it again.", table=source_table
        )


def refuse_renamed(table: Any, renames: Sequence[ColumnRename], source_table: str) -> None:
    """Refuse to publish rows with other names than the current columns.

    Raises:
        MergeConflict: another merge has renamed columns meanwhile.
    """
    refuse_other_names(from_json(table.properties().get(RENAMES_PROPERTY), source_table), renames, source_table)


def refuse_other_names(now: Sequence[ColumnRename], followed: Sequence[ColumnRename], source_table: str) -> None:
    """Refuse a table whose columns follow other renames than expected.

    Raises:
        MergeConflict: another merge has renamed columns meanwhile.
    """
    if tuple(now) != tuple(followed):
        raise MergeConflict(
            "columns of the lake table were renamed meanwhile",
            hint="Nothing was changed; the merge can be run again.",
            table=source_table,
        )
