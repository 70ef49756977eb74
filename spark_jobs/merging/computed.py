"""Computed columns of a lake table in one merge: checked before anything is written, and added to the table."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import SparkSession

from cdc_lib.config.source import SourceConfig
from cdc_lib.errors import ConfigError
from cdc_lib.lake.computed import columns_in, computed_of, refuse_invalid, refuse_other
from cdc_lib.lake.layout import fitted, layout_of
from cdc_lib.lake.routing import LakeMerge
from cdc_lib.merge.contribution import Contribution
from cdc_lib.merge.evolve_table import others_of
from cdc_lib.model.lake_table import MODE_COLUMNS, LakeColumn, LakeTable
from cdc_lib.ports import MergeTarget
from spark_jobs.changes.computed import computed_types


def with_computed(
    session: SparkSession,
    config: SourceConfig,
    target: MergeTarget,
    lake: LakeMerge,
    parts: Sequence[Contribution],
    state: LakeTable | None,
    columns: tuple[LakeColumn, ...],
) -> tuple[LakeColumn, ...]:
    """Give a lake table its computed columns; returns its columns.

    Args:
        session: a Spark session.
        config: the source.
        target: the lake table, which has the columns of the parts by now.
        lake: its name and source tables.
        parts: what is merged.
        state: the table before this merge; None if it did not exist.
        columns: its columns now.

    Raises:
        ConfigError: an expression cannot be used.
        IncompatibleSchema: existing rows have other computed columns.
    """
    computed = computed_of(config, lake)
    if not parts or (not computed and not (state is not None and state.computed)):
        return columns
    name = str(lake.name)
    source = _source_columns(lake, parts, state, columns, computed)
    refuse_invalid(computed, [one.name for one in source], name)
    _refuse_filters(lake, computed)
    if state is not None and not state.empty and not _replaces_all(lake, parts, state):
        refuse_other(state, computed, name)
    table = target.compute(computed, computed_types(session, computed, source, name))
    layout = layout_of(config, lake)
    if table.empty and {one.lower() for one in layout.columns} & {one.lower() for one in computed}:
        # Also of a table whose first merge ended before this.
        target.lay_out(fitted(layout, table.columns, name))
    return table.columns


def _source_columns(
    lake: LakeMerge,
    parts: Sequence[Contribution],
    state: LakeTable | None,
    columns: Sequence[LakeColumn],
    computed: Sequence[str] | dict[str, str],
) -> list[LakeColumn]:
    """Return the columns of the lake that the source has: of tables that share the lake table, all that it ever had."""
    mode = state.mode if state is not None else lake.mode or "mirror"
    known = [*(state.computed if state is not None else ()), *computed]
    skipped = {*MODE_COLUMNS[mode], *(name.lower() for name in known)}
    has = [part.schemas[-1] for part in parts if part.schemas]
    if len(lake.tables) == 1 and has and not others_of(lake, state, lake.tables[0]):
        names = {column.name.lower() for column in has[-1].columns}
        return [one for one in columns if one.name.lower() in names]
    return [one for one in columns if one.name.lower() not in skipped]


def _refuse_filters(lake: LakeMerge, computed: dict[str, str]) -> None:
    """Refuse predicates on computed columns: rows are filtered before anything is computed."""
    names = {name.lower() for name in computed}
    for predicate in (one for routed in lake.routed_tables for one in routed.target.where):
        if used := sorted(columns_in(predicate) & names):
            raise ConfigError(
                f"the predicate {predicate!r} names the computed column {used[0]}",
                hint="Write its expression instead, under filters or routes in the source file.",
                lake_table=str(lake.name),
                column=used[0],
            )


def _replaces_all(lake: LakeMerge, parts: Sequence[Contribution], state: LakeTable) -> bool:
    """Whether a new snapshot replaces all rows of the lake table: deleted rows, versions and lists of changes stay."""
    if len(parts) > 1 or state.mode != "mirror" or others_of(lake, state, parts[0].routed.table):
        return False
    work = parts[0].work
    return work.rebuild_before is not None and work.kept_before(work.rebuild_before) is None
