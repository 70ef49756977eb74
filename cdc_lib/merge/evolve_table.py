"""Changes to a lake table before a merge writes rows: its mode, names, key and columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from cdc_lib.config.source import SourceConfig
from cdc_lib.errors import IncompatibleSchema
from cdc_lib.lake.evolution import can_be_rekeyed, lake_columns
from cdc_lib.lake.layout import first_layout
from cdc_lib.lake.modes import mode_of, refuse_change
from cdc_lib.lake.routing import LakeMerge, lake_merges, same_constants
from cdc_lib.lake.union import shared_table_error, union
from cdc_lib.merge.contribution import Contribution
from cdc_lib.merge.source_types import types_after
from cdc_lib.model.lake_table import MARKER_PROPERTY, LakeColumn, LakeTable
from cdc_lib.model.schema import TableSchema
from cdc_lib.model.table_mode import Mode
from cdc_lib.model.table_name import TableName
from cdc_lib.ports import MergeTarget


def merge_mode(
    config: SourceConfig, lake: LakeMerge, state: LakeTable | None, schemas: Sequence[Sequence[TableSchema]]
) -> Mode:
    """Return the mode in which a lake table is merged: the source file's, if an existing table can follow it.

    Raises:
        ConfigError: the source file gives the table two modes, perhaps the other one for a table without rows in this merge.
        MergeError: the existing table cannot change to the mode.
    """
    if not schemas:
        return state.mode if state is not None else "mirror"
    schema = schemas[0][-1]
    configured = mode_of(schema, with_merged_before(config, lake, state).mode)
    if state is None:
        return configured
    if bool(state.primary_key) != bool(schema.primary_key):
        return state.mode  # another key is refused where columns are compared
    refuse_change(state.mode, configured, lake.routed_tables[0].table, str(lake.name))
    return configured


def with_merged_before(config: SourceConfig, lake: LakeMerge, state: LakeTable | None) -> LakeMerge:
    """Return a lake table with the other tables of this source that share it and have no rows in this merge."""
    carried: Mapping[str, str] = state.carried if state is not None else {}
    named = {TableName.parse(table) for source, _, table in map(_owner, carried) if source == config.source and table}
    tables = {*lake.tables, *(table for table in named if config.tables.captures(*table.pair))}
    return next((one for one in lake_merges(config, tables) if one.name == lake.name), lake)


def evolved(
    target: MergeTarget,
    lake: LakeMerge,
    parts: Sequence[Contribution],
    state: LakeTable | None,
    config: SourceConfig,
) -> tuple[LakeColumn, ...]:
    """Add the columns of all parts to the table; incompatible schemas are refused before anything is changed.

    Raises:
        IncompatibleSchema: names the incompatible source tables.
        ConfigError: the source file gives a new table a layout that its columns do not allow.
    """
    shards = [(part.routed.table, schema) for part in parts for schema in part.schemas]
    if len(parts) > 1 and shards:
        union(str(lake.name), shards, lake.mode)
    renames = [rename for part in parts for rename in part.renames]
    types = types_after(parts, state)
    if state is None:
        layout = first_layout(config, lake, lake_columns(shards[0][1], lake.mode))
        state = target.create(shards[0][1], lake.mode, renames, layout, types)
    columns = state.columns
    for table, schema in shards:
        try:
            columns = target.evolve(schema).columns
        except IncompatibleSchema as error:
            others = others_of(lake, state, table)
            raise shared_table_error(error, str(lake.name), (table, *others)) if others else error from error
    if types != state.source_types:
        # Before the rows: without them nothing is lost, since the statements of this merge were looked at.
        target.note_types(types)
    return columns


def rekeyed(target: MergeTarget, lake: LakeMerge, parts: Sequence[Contribution], state: LakeTable) -> LakeTable:
    """Give the lake table the key of a snapshot that replaces all of its rows."""
    if len(parts) > 1 or parts[0].work.rebuild_before is None or others_of(lake, state, parts[0].routed.table):
        return state
    keys = {tuple(name.lower() for name in schema.primary_key) for schema in parts[0].schemas}
    if len(keys) != 1 or keys == {tuple(name.lower() for name in state.primary_key)}:
        return state
    schema = parts[0].schemas[-1]
    return target.rekey(schema) if can_be_rekeyed(state, schema.primary_key) else state


def others_of(lake: LakeMerge, state: LakeTable | None, table: str) -> list[str]:
    """Return the other source tables of a lake table, as far as its markers name them."""
    carried: Mapping[str, str] = state.carried if state is not None else {}
    named = [table for _, _, table in map(_owner, carried) if table]
    return sorted({*named, *lake.tables} - {table})


def is_indistinct(source: str, lake: LakeMerge, part: Contribution, state: LakeTable | None) -> bool:
    """Whether rows of a source table cannot be distinguished from those of another table in the same lake table."""
    carried: Mapping[str, str] = state.carried if state is not None else {}
    others: list[tuple[str, str]] = [(source, table) for table in lake.tables]
    others += [(other, table) for other, _, table in map(_owner, carried)]
    this = (source, part.routed.table)
    return bool(same_constants(source, part.routed, (other for other in others if other != this)))


def _owner(marker: str) -> tuple[str, str, str]:
    """Return source, slash and table of a marker's property; no table where it does not name one."""
    return marker.removeprefix(f"{MARKER_PROPERTY}.").partition("/")
