"""Which layout a lake table gets, whether its columns allow it, and how an existing table changes to it: pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Context, Decimal

from cdc_lib.config.source import SourceConfig
from cdc_lib.errors import ConfigError, MergeError
from cdc_lib.lake.computed import computed_of
from cdc_lib.lake.routing import LakeMerge
from cdc_lib.model.lake_table import LakeColumn
from cdc_lib.model.lake_types import decimal_of, lake_type_of
from cdc_lib.model.layout import Layout

_EXACT = Context(prec=80)


@dataclass(frozen=True, slots=True)
class LayoutChange:
    """How an existing table changes to another layout.

    Args:
        to: the layout.
        removed: names of properties that the table no longer has.
        rewrites: whether all data files are written again.
    """

    to: Layout
    removed: tuple[str, ...]
    rewrites: bool


def layout_of(config: SourceConfig, lake: LakeMerge) -> Layout:
    """Return the layout of a lake table in the source file.

    Raises:
        ConfigError: source tables that share the lake table have different layouts.
    """
    default = config.lake.default_layout
    layouts = {
        routed.table: next(
            (rule.over(default) for rule in config.layouts if rule.covers(routed.database, routed.name)), default
        )
        for routed in lake.routed_tables
    }
    if len(set(layouts.values())) > 1:
        raise ConfigError(
            f"tables that share a lake table have different layouts: {', '.join(layouts)}",
            hint="Cover them by one rule under layouts in the source file, or give each a lake table of its own.",
            lake_table=str(lake.name),
        )
    return next(iter(layouts.values()), default)


def fitted(layout: Layout, columns: Sequence[LakeColumn], lake_table: str) -> Layout:
    """Return the layout with the names that the columns have in the lake.

    Args:
        layout: in the source file; column names compare without case.
        columns: of the lake table.
        lake_table: its name, for messages.

    Raises:
        ConfigError: a column does not exist, or has a type that the transform does not take.
    """
    if problems := list(_problems(layout, columns)):
        raise ConfigError(
            f"the layout cannot be used: {'; '.join(problems)}",
            hint="Correct it under layouts in the source file.",
            lake_table=lake_table,
        )
    return renamed(layout, {column.name.lower(): column.name for column in columns})


def first_layout(config: SourceConfig, lake: LakeMerge, columns: Sequence[LakeColumn]) -> Layout:
    """Return the layout that a lake table is created with.

    Partitions and order wait for the computed columns if they name one: only Spark knows its type.

    Args:
        config: the source.
        lake: the lake table.
        columns: of the lake table, without the computed ones.

    Raises:
        ConfigError: as :func:`layout_of` and :func:`fitted` do.
    """
    layout, computed = layout_of(config, lake), {name.lower() for name in computed_of(config, lake)}
    known = replace(
        layout,
        partition_by=tuple(one for one in layout.partition_by if one.column.lower() not in computed),
        sort_by=tuple(one for one in layout.sort_by if one.column.lower() not in computed),
    )
    fit = fitted(known, columns, str(lake.name))
    return fit if known == layout else replace(fit, partition_by=(), sort_by=())


def has_layout(has: Layout, layout: Layout, names: Sequence[str]) -> bool:
    """Whether a table has the layout of the source file already.

    Args:
        has: the table's own.
        layout: in the source file; column names compare without case.
        names: of the table's columns. Without one that the layout needs, the answer is no.
    """
    by_lower = {name.lower(): name for name in names}
    needed = {one.column.lower() for one in layout.partition_by} | {one.column.lower() for one in layout.sort_by}
    return needed <= by_lower.keys() and has == renamed(layout, by_lower)


def renamed(layout: Layout, names: Mapping[str, str]) -> Layout:
    """Return the layout with other names of its columns.

    Args:
        layout: a layout.
        names: the new names, by the old ones in lower case; other columns keep theirs.
    """

    def new(name: str) -> str:
        return names.get(name.lower(), name)

    return replace(
        layout,
        partition_by=tuple(replace(one, column=new(one.column)) for one in layout.partition_by),
        sort_by=tuple(replace(one, column=new(one.column)) for one in layout.sort_by),
    )


def _problems(layout: Layout, columns: Sequence[LakeColumn]) -> Iterator[str]:
    types = {column.name.lower(): column.type for column in columns}
    for key, wanted in (("partition_by", layout.partition_by), ("sort_by", layout.sort_by)):
        missing = [one.column for one in wanted if one.column.lower() not in types]
        if missing:
            yield f"{key} has {', '.join(missing)}, and the table has no such column"
    for one in layout.partition_by:
        kind = types.get(one.column.lower())
        if kind is not None and one.kind not in lake_type_of(kind).transforms:
            yield f"partition_by has {one.kind} of {one.column}, whose type is {kind}"
        if one.kind != "identity" and one.field.lower() in types:
            yield f"partition_by would name a field {one.field}, which is a column of the table"


def lowest_values(layout: Layout, columns: Sequence[LakeColumn]) -> dict[str, str]:
    """Return, by column of numbers with ``truncate``, the smallest value whose partition is a number of the column's type.

    Iceberg rounds down: for a smaller value the partition of an INT or BIGINT becomes a large number, so that conditions no longer find
    the row, and that of a DECIMAL gets one digit more, which Iceberg refuses.

    Args:
        layout: with the names of the columns in the lake.
        columns: of the lake table.
    """
    types = {column.name: column.type for column in columns}
    cut = [one for one in layout.partition_by if one.kind == "truncate"]
    return {one.column: low for one in cut if (low := _lowest(types.get(one.column, ""), one.size)) is not None}


def _lowest(lake_type: str, width: int) -> str | None:
    if bits := lake_type_of(lake_type).bits:
        return str(-(2 ** (bits - 1) // width) * width)
    if (decimal := decimal_of(lake_type)) is None:
        return None
    digits, scale = decimal
    return str(Decimal(-((10**digits - 1) // width) * width).scaleb(-scale, _EXACT))


def refuse_dropped(needed_by_layout: Sequence[str], columns: Sequence[str], table: str) -> None:
    """Refuse to drop columns that the layout of a lake table needs, or that it was partitioned by before.

    Iceberg keeps former partition specs, and deletes fail once a column of one is dropped.

    Args:
        needed_by_layout: columns of the layout, and of all partition specs.
        columns: to be dropped.
        table: the source table, for messages.

    Raises:
        MergeError: names them.
    """
    dropped = {name.lower() for name in columns}
    if needed := [name for name in dict.fromkeys(needed_by_layout) if name.lower() in dropped]:
        raise MergeError(
            f"the source dropped {', '.join(needed)}, and the layout of the lake table needs it, or did before",
            hint="Set schema_changes.drop_column: keep for this table, and merge again: the lake keeps the column.",
            table=table,
        )


def change_of_layout(old: Layout, new: Layout, lake_table: str) -> LayoutChange | None:
    """Return how a table with one layout changes to another; None if it has that layout.

    Files are written again if their partitions or their order change, or if deleted rows may no longer be marked.

    Raises:
        MergeError: the format version would be lower.
    """
    if old == new:
        return None
    if new.format_version < old.format_version:
        raise MergeError(
            f"the lake table has format version {old.format_version}, and the source file says "
            f"{new.format_version}: Iceberg lowers no format version",
            hint="Set format_version (or lake.readers) as it was; or drop the lake table, and take a new snapshot with cdc snapshot.",
            lake_table=lake_table,
        )
    kept = {name for name, _ in new.properties}
    removed = tuple(name for name, _ in old.properties if name not in kept)
    ordered = (old.partition_by, old.sort_by) == (new.partition_by, new.sort_by)
    rewrites = not ordered or (new.write_mode == "copy_on_write" and old.write_mode != new.write_mode)
    return LayoutChange(new, removed, rewrites)
