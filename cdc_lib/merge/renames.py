"""Renamed columns: which lake columns are renamed, and under which names older rows are written; pure.

The lake's columns have the names after the newest rename that it knows. A row has the names at its position in the stream,
so every later rename applies to it. A rename that is replayed in a later epoch is the same one: it applies once to a row.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import count
from typing import NamedTuple

from cdc_lib.errors import ConfigError, IncompatibleSchema
from cdc_lib.merge.chunks import low_of, read_to_of
from cdc_lib.merge.plan import StoredBatch
from cdc_lib.model.column_rename import ColumnRename
from cdc_lib.model.cursor import EpochChange
from cdc_lib.model.ddl_effect import Names
from cdc_lib.model.lake_table import LakeTable, Marker, reserved
from cdc_lib.model.manifest import DataFile, Manifest
from cdc_lib.model.position import Point
from cdc_lib.model.route import SOURCE_KEYS
from cdc_lib.model.schema import Column, TableSchema
from cdc_lib.model.spark_names import clash
from cdc_lib.model.table_name import TableName


class NamesAt(NamedTuple):
    """Where rows had their column names: at a point, or between two, as a SELECT between watermarks.

    ``names``, in lower case, then show whether the rows were read before or after a rename.
    """

    since: Point
    until: Point
    names: frozenset[str] = frozenset()


def renames_of(table: TableName, batches: Iterable[StoredBatch]) -> tuple[ColumnRename, ...]:
    """Return the renames of a table's columns in the windows of a merge, in order."""
    return tuple(
        ColumnRename(table, Point.at(batch.manifest.epoch, one.position), one.names, one.gtid, one.stamp)
        for batch in batches
        for one in batch.manifest.statements
        if one.table == table and one.kind == "rename_columns"
    )


def known(state: LakeTable | None, table: str, new: Iterable[ColumnRename]) -> tuple[ColumnRename, ...]:
    """Return the renames of a source table that a lake table knows, and the new ones of a merge, in order."""
    recorded = [one for one in state.renames if one.table == table] if state is not None else []
    points = {one.at for one in recorded}
    return tuple(sorted((*recorded, *(one for one in new if one.at not in points)), key=lambda one: one.at))


def names_at(manifest: Manifest, file: DataFile) -> NamesAt:
    """Return where rows of a file had their column names."""
    return names_at_schema(manifest, manifest.schemas[file.schema_id], file.renames)


def names_at_schema(manifest: Manifest, schema: TableSchema, renames: int = 0) -> NamesAt:
    """Return where rows of a batch had the names of a schema.

    Args:
        manifest: of the batch.
        schema: of the rows.
        renames: how many of the window's renames of the table's columns come before the rows.
    """
    if manifest.window is None:
        names = frozenset(column.name.lower() for column in schema.columns)
        return NamesAt(low_of(manifest), read_to_of(manifest), names)
    if not renames:
        return at_point(Point.at(manifest.epoch, manifest.window.start))
    statements = [one for one in manifest.statements if one.table == schema.name and one.kind == "rename_columns"]
    return at_point(Point.at(manifest.epoch, statements[renames - 1].position).just_after())


def at_point(point: Point) -> NamesAt:
    """Return the place of rows with an exact position."""
    return NamesAt(point, point)


def renames_after(names_at: NamesAt, renames: Sequence[ColumnRename]) -> tuple[ColumnRename, ...]:
    """Return the renames that apply to rows, in order.

    Args:
        names_at: of the rows.
        renames: of their table, in order.

    Raises:
        IncompatibleSchema: rows were read while columns exchanged their names.
    """
    later: list[ColumnRename] = []
    for one in renames:
        if any(one.is_again(other) for other in later):
            continue
        same = next(
            (other for other in renames if other.at.epoch == names_at.since.epoch and one.is_again(other)), None
        )
        if same is None:
            # Only later epochs have it, or an earlier one had it already.
            applies = all(other.at.epoch > names_at.since.epoch for other in renames if one.is_again(other))
        else:
            applies = _applies(names_at, same)
        if applies:
            later.append(same or one)
    return tuple(sorted(later, key=lambda one: one.at))


def _applies(names_at: NamesAt, rename: ColumnRename) -> bool:
    if rename.at < names_at.since:
        return False
    if rename.at >= names_at.until:
        return True
    return has_old_names(rename, names_at.names)


def has_old_names(rename: ColumnRename, columns: Iterable[str]) -> bool:
    """Whether columns have the names before a rename, and not those after it; true if it affects none of them.

    Raises:
        IncompatibleSchema: the names may be either.
    """
    names = {column.lower() for column in columns}
    old, new = rename.old_names, rename.new_names
    before, after = bool(names & (old - new)), bool(names & (new - old))
    if before != after:
        return before
    if not names & (old | new):
        return True
    raise _unknown_names(rename)


def _unknown_names(rename: ColumnRename) -> IncompatibleSchema:
    return IncompatibleSchema(
        f"columns were renamed ({_shown(rename)}) while rows of the table were read, and it is unknown which names "
        "these rows use",
        hint="A new snapshot replaces this merge: cdc snapshot {source} {table}",
        table=rename.table,
    )


def renamed_columns(schema: TableSchema, renames: Sequence[ColumnRename]) -> list[tuple[str, Column]]:
    """Return the columns of a schema under the names that they have after renames.

    A column whose name another column took is left out: it was dropped in between.
    """
    renamed: dict[str, tuple[str, Column]] = {}
    for column in schema.columns:
        name = current_name(column.name, renames)
        if name == column.name and name.lower() in renamed:
            continue
        renamed[name.lower()] = (name, column)
    return list(renamed.values())


def renamed_schema(schema: TableSchema, renames: Sequence[ColumnRename]) -> TableSchema:
    """Return a schema with its column names after renames."""
    if not renames:
        return schema
    columns = tuple(replace(column, name=name) for name, column in renamed_columns(schema, renames))
    return replace(schema, columns=columns, primary_key=tuple(current_name(one, renames) for one in schema.primary_key))


def current_name(column: str, renames: Iterable[ColumnRename]) -> str:
    """Return a column's name after renames."""
    for one in renames:
        column = one.new_name(column)
    return column


def placed_schemas(table: str, batches: Iterable[StoredBatch]) -> Iterator[tuple[TableSchema, NamesAt]]:
    """Yield the schemas of the table's rows, and where the rows had these names, in the order of the batches."""
    for batch in batches:
        manifest = batch.manifest
        for commit, held in batch.commits:
            if table in commit.prepared.tables:
                files = (file for file in held.manifest.prepared_files if file.table == table)
                yield from ((held.manifest.schemas[f.schema_id], names_at(held.manifest, f)) for f in files)
        files = (file for file in manifest.files if file.table == table)
        yield from ((manifest.schemas[file.schema_id], names_at(manifest, file)) for file in files)
        if manifest.chunk is not None:
            schemas = (schema for schema in manifest.schemas.values() if schema.name == table)
            yield from ((schema, names_at_schema(manifest, schema)) for schema in schemas)


def renamed_schemas(
    table: str, batches: Iterable[StoredBatch], renames: Sequence[ColumnRename]
) -> tuple[TableSchema, ...]:
    """Return the distinct schemas of the table's rows, with the current column names, in order."""
    placed = placed_schemas(table, batches)
    renamed = (renamed_schema(schema, renames_after(names_at, renames)) for schema, names_at in placed)
    return tuple({schema.id: schema for schema in renamed}.values())


def newest_schema(table: str, batches: Sequence[StoredBatch], renames: Sequence[ColumnRename]) -> TableSchema | None:
    """Return the schema of the table's last rows in the batches, with the current column names; None without rows."""
    return next((each[-1] for batch in reversed(batches) if (each := renamed_schemas(table, [batch], renames))), None)


def filled_column(column: str, renames: Iterable[ColumnRename]) -> str | None:
    """Return an added column's name after renames; None if another column took its name: it was dropped."""
    for one in renames:
        name = one.new_name(column)
        if name == column and column.lower() in one.new_names - one.old_names:
            return None
        column = name
    return column


@dataclass(frozen=True, slots=True)
class Renaming:
    """The renames that a merge does in a lake table.

    Args:
        names: lake columns and their new names, applied all at once; empty if none changes.
        renames: the renames that the lake table knows afterwards.
    """

    names: dict[str, str]
    renames: tuple[ColumnRename, ...]


def renaming(
    state: LakeTable,
    marker: Marker,
    new: Sequence[ColumnRename],
    keeps: Callable[[str], bool],
    others: Sequence[str],
    epoch_changes: Sequence[EpochChange] = (),
) -> Renaming | None:
    """Decide how renames change the columns of a lake table; None if it knows all of them.

    Args:
        state: the lake table.
        marker: of the source table, before the merge.
        new: renames of the source table in the merge's windows.
        keeps: whether the lake table keeps a column of this name.
        others: other source tables whose rows it holds.
        epoch_changes: how the source's epochs began.

    Raises:
        IncompatibleSchema: other tables share the column, the new name is reserved in the lake, or columns exchanged their
            names before rows were re-selected.
        ConfigError: a route keeps a column but not its new name.
    """
    points = {(one.table, one.at) for one in state.renames}
    new = [one for one in new if (one.table, one.at) not in points]
    if not new:
        return None
    names = {column.name: column.name for column in state.columns}
    done = list(state.renames)
    for one in new:
        if (before := next((other for other in done if one.is_again(other)), None)) is not None:
            done.append(replace(one, displaced=before.displaced))
            continue
        follows = _is_before(state, marker, one, names.values(), epoch_changes)
        if follows:
            _refuse(state, one, names.values(), keeps, others)
        rename = replace(one, displaced=_displaced(one, names.values())) if follows else one
        names = {column: rename.new_name(name) if follows else name for column, name in names.items()}
        done.append(rename)
    changed = {column: name for column, name in names.items() if column != name}
    return Renaming(changed, tuple(sorted(done, key=lambda one: one.at)))


def _displaced(rename: ColumnRename, columns: Iterable[str]) -> Names:
    """Return lake columns whose names others take, with free names: the source dropped them, and the lake keeps them."""
    have = {column.lower(): column for column in columns}
    renamed, taken = rename.old_names, have.keys() | rename.new_names
    displaced = []
    for _, new in rename.names:
        if new.lower() in have.keys() - renamed:
            tries = (f"{new}_old{number or ''}" for number in count())
            name = next(name for name in tries if name.lower() not in taken)
            taken |= {name.lower()}
            displaced.append((have[new.lower()], name))
    return tuple(displaced)


def _is_before(
    state: LakeTable,
    marker: Marker,
    rename: ColumnRename,
    columns: Collection[str],
    epoch_changes: Sequence[EpochChange],
) -> bool:
    """Whether the lake's columns have the names before a rename that it does not know."""
    if state.snapshot_id is None:
        return True  # an empty table has the names of its creation
    reached = [mark.low for mark in marker.snapshots if not mark.partial]
    if any(rename.at < point for point in (marker.merged_to, *reached) if point is not None):
        return False
    if any(rename.at < mark.read_to for mark in marker.snapshots):
        return has_old_names(rename, columns)
    if marker.reselected is not None and rename.at < marker.reselected.high:
        return _is_before_reselect(rename, columns)
    replayed = _is_replayed(rename, epoch_changes)
    if not replayed:
        unsure = replayed is None or any(
            _was_read_after(rename, mark.read_to, epoch_changes) for mark in marker.snapshots
        )
        return has_old_names(rename, columns) if unsure else True
    # Earlier epochs had it before anything of the table was merged, as before its snapshot; else it would be known.
    have = {column.lower() for column in columns}
    old, new = rename.old_names, rename.new_names
    return bool(have & (old - new)) and not have & (new - old)


def _is_before_reselect(rename: ColumnRename, columns: Iterable[str]) -> bool:
    """Whether columns follow a rename before the end of a re-selection, which saw the table with all known names.

    Raises:
        IncompatibleSchema: it affects one of these names: the name was reused, perhaps for another column, so the lake's
            column may hold values of both.
    """
    have = {column.lower() for column in columns}
    if have & rename.old_names:
        raise _unknown_names(rename)
    return not have & rename.new_names  # a column that was added in between came under its new name


def _is_replayed(rename: ColumnRename, epoch_changes: Sequence[EpochChange]) -> bool | None:
    """Whether a rename ran before an earlier epoch ended; None if clocks say so and no GTID does.

    The clocks of two servers may be minutes apart, so a rename that is new may have the earlier time.
    """
    ends = [one.previous_end for one in epoch_changes if one.epoch <= rename.at.epoch]
    known = [end.has_gtid(rename.gtid) for end in ends]
    if True in known or None not in known:
        return True in known
    stamp = datetime.fromtimestamp(rename.stamp, UTC)
    return None if any(end.time is not None and stamp <= end.time for end in ends) else False


def _was_read_after(rename: ColumnRename, read_to: Point, epoch_changes: Sequence[EpochChange]) -> bool:
    """Whether a snapshot of an earlier epoch was read past a rename, whose window was not drained because of a rewind.

    Positions of two epochs are comparable if only rewinds lie between them: both are in the same binlog.
    """
    between = [one for one in epoch_changes if read_to.epoch < one.epoch <= rename.at.epoch]
    return bool(between) and all(one.kind == "rewind" for one in between) and rename.at[1:] < read_to[1:]


def _refuse(
    state: LakeTable,
    rename: ColumnRename,
    columns: Collection[str],
    keeps: Callable[[str], bool],
    others: Sequence[str],
) -> None:
    have = {column.lower() for column in columns}
    for old, new in rename.names:
        if others and have & {old.lower(), new.lower()}:
            raise IncompatibleSchema(
                f"column {old} is now called {new} at the source, and {', '.join(others)} share it in the lake",
                hint="A new snapshot continues its rows in a column of the new name: cdc snapshot {source} {table}",
                table=rename.table,
                column=old,
            )
        if old.lower() in have and not keeps(new):
            raise ConfigError(
                f"a route keeps column {old}, which is now called {new}, and not {new}",
                hint=f"Name {new} under columns of the route as well.",
                table=rename.table,
                column=old,
            )
        if old.lower() in have and clash([new], reserved(state.mode) | set(SOURCE_KEYS.values())):
            raise IncompatibleSchema(
                f"column {new} has a name that is reserved in the lake",
                hint="Rename the column at the source, then: cdc snapshot {source} {table}",
                table=rename.table,
                column=new,
            )


def _shown(rename: ColumnRename) -> str:
    return ", ".join(f"{old} to {new}" for old, new in rename.names)
