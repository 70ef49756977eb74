"""What is compared of a table: its definition at the source now, and its lake table."""

from __future__ import annotations

from collections.abc import Callable

from cdc_lib.config import Credentials, SourceConfig
from cdc_lib.drain.columns import shape_of
from cdc_lib.lake.routing import LakeMerge, RoutedTable
from cdc_lib.model.cursor import Cursor
from cdc_lib.model.lake_table import LakeTable
from cdc_lib.ports import SchemaReader
from cdc_lib.verify.comparability import Subject, subject_of


def subject_at(
    config: SourceConfig,
    credentials: Credentials,
    reader: SchemaReader,
    lake: LakeMerge,
    routed: RoutedTable,
    state: Callable[[], LakeTable | None],
) -> Subject | str:
    """Return what is compared of a table, or why it cannot be compared.

    Args:
        config: the source.
        credentials: its log-in, with the key of its masks.
        reader: of the source.
        lake: the lake table.
        routed: the source table.
        state: returns the lake table's columns, its key and its mode; None without a lake table.

    Raises:
        SourceError: the source cannot be read.
        MergeError: the lake cannot be read.
    """
    schema = reader.schema(routed.database, routed.name)
    if schema is None:
        return "it was dropped at the source"
    found = state()
    values = config.values.as_held(schema, {} if found is None else found.types)
    schema = values.applied(schema)
    policy = config.schema_changes.policy(routed.database, routed.name)
    return subject_of(
        schema,
        shape_of(config, credentials).of(schema),
        routed.target,
        lake.name,
        found,
        routed.constants(config.source),
        values,
        ignores_added=policy.add_column == "keep",
    )


def indistinct_rows(source: str, lake: LakeMerge, routed: RoutedTable) -> str:
    """Return why the rows of a source table cannot be distinguished from others in its lake table; empty if they can.

    Args:
        source: name of the source.
        lake: the lake table.
        routed: the source table.
    """
    if len(lake.routed_tables) > 1 and not routed.constants(source):
        return "it shares its lake table with others, and no column there shows the source table of a row"
    return ""


def skipped_now(config: SourceConfig, drain: Cursor, merged: Cursor, lake: LakeMerge, routed: RoutedTable) -> str:
    """Return why a comparable table is not compared as a whole now; empty if it is.

    Args:
        config: the source.
        drain: its drain cursor.
        merged: its lake cursor.
        lake: the lake table.
        routed: the source table.
    """
    if any(one.table == routed.table for one in drain.lagging_in(merged)):
        return "it is quarantined, or released and not in the lake again yet; see cdc status"
    if why := indistinct_rows(config.source, lake, routed):
        return why
    read = any(task.complete for task in merged.snapshots if task.name == routed.table)
    if config.start == "snapshot" and not read:
        return "its snapshot is not complete in the lake yet"
    if config.start not in ("snapshot", "earliest") and not read:
        return "the source began without a snapshot: rows that did not change since are not in the lake"
    return ""
