"""Columns that got other names: which lake columns follow, and under which names rows of before them go in; pure.

The lake's columns have the names of the newest rename that it knows. A row has the names of its place in the stream, so every
rename after that place counts for it. One that comes again in a later epoch is the same rename: it counts once for a row.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import count
from typing import NamedTuple

from cdc_lib.errors import ConfigError, IncompatibleSchema
from cdc_lib.merge.chunks import low_of, read_to_of
from cdc_lib.merge.plan import Batch
from cdc_lib.model.column_rename import ColumnRename
from cdc_lib.model.cursor import EpochChange
from cdc_lib.model.ddl_effect import Names
from cdc_lib.model.lake_table import LakeTable, Marker, reserved
from cdc_lib.model.manifest import DataFile, Manifest
from cdc_lib.model.position import Point
from cdc_lib.model.route import SOURCE_KEYS
from cdc_lib.model.schema import Column, TableSchema
from cdc_lib.model.table_name import TableName


class NamesAt(NamedTuple):
    """Where rows had their columns' names: at a point, or somewhere between two, as a SELECT between watermarks.

    ``names``, in lower case, tell then on which side of a rename the rows were read.
    """

    since: Point
    until: Point
    names: frozenset[str] = frozenset()


def renames_of(table: TableName, batches: Iterable[Batch]) -> tuple[ColumnRename, ...]:
    """Return the renames that the windows of a merge tell of a table, in order."""
    return tuple(
        ColumnRename(table, Point.at(batch.manifest.epoch, one.position), one.names, one.gtid, one.stamp)
        for batch in batches
        for one in batch.manifest.statements
        if one.table == table and one.kind == "rename_columns"
    )


def known(state: LakeTable | None, table: str, told: Iterable[ColumnRename]) -> tuple[ColumnRename, ...]:
    """Return the renames that a lake table knows of a source table, and those of a merge that it does not know, in order."""
    had = [one for one in state.renames if one.table == table] if state is not None else []
    places = {one.at for one in had}
    return tuple(sorted((*had, *(one for one in told if one.at not in places)), key=lambda one: one.at))


def names_at(manifest: Manifest, file: DataFile) -> NamesAt:
    """Return where rows of a file had their names."""
    return names_at_schema(manifest, manifest.schemas[file.schema_id], file.renames)


def names_at_schema(manifest: Manifest, schema: TableSchema, renames: int = 0) -> NamesAt:
    """Return where rows of a batch had the names of a schema.

    Args:
        manifest: of the batch.
        schema: of the rows.
        renames: how many of the window's statements that rename columns of the table come before.
    """
    if manifest.window is None:
        names = frozenset(column.name.lower() for column in schema.columns)
        return NamesAt(low_of(manifest), read_to_of(manifest), names)
    if not renames:
        return at_point(Point.at(manifest.epoch, manifest.window.start))
    own = [one for one in manifest.statements if one.table == schema.name and one.kind == "rename_columns"]
    return at_point(Point.at(manifest.epoch, own[renames - 1].position).just_after())


def at_point(point: Point) -> NamesAt:
    """Return the place of rows of which it is known where they stand."""
    return NamesAt(point, point)


def renames_after(place: NamesAt, renames: Sequence[ColumnRename]) -> tuple[ColumnRename, ...]:
    """Return the renames that rows of a place have still before them, in order.

    Args:
        place: of the rows.
        renames: of their table, in order.

    Raises:
        IncompatibleSchema: rows were read while columns exchanged their names.
    """
    found: list[ColumnRename] = []
    for one in renames:
        if any(one.is_again(other) for other in found):
            continue
        mine = next((other for other in renames if other.at.epoch == place.since.epoch and one.is_again(other)), None)
        if mine is None:
            # A later epoch alone has it, or a former one had it already.
            counts = all(other.at.epoch > place.since.epoch for other in renames if one.is_again(other))
        else:
            counts = _counts(place, mine)
        if counts:
            found.append(mine or one)
    return tuple(sorted(found, key=lambda one: one.at))


def _counts(place: NamesAt, rename: ColumnRename) -> bool:
    if rename.at < place.since:
        return False
    if rename.at >= place.until:
        return True
    return has_old_names(rename, place.names)


def has_old_names(rename: ColumnRename, columns: Iterable[str]) -> bool:
    """Whether columns have the names before a rename, and not those after it; where it is about none of them, yes.

    Raises:
        IncompatibleSchema: they may be either.
    """
    names = {column.lower() for column in columns}
    old, new = rename.old_names, rename.new_names
    before, after = bool(names & (old - new)), bool(names & (new - old))
    if before != after:
        return before
    if not names & (old | new):
        return True
    raise _cannot_be_told(rename)


def _cannot_be_told(rename: ColumnRename) -> IncompatibleSchema:
    return IncompatibleSchema(
        f"columns were renamed ({_shown(rename)}) while rows of the table were read, and it is unknown which names "
        "these rows use",
        hint="Take a new snapshot of this table (cdc snapshot); it replaces this merge.",
        table=rename.table,
    )


def renamed_columns(schema: TableSchema, renames: Sequence[ColumnRename]) -> list[tuple[str, Column]]:
    """Return the columns of a schema under the names that they have after renames.

    A column whose name another one took since is left out: it was dropped in between.
    """
    found: dict[str, tuple[str, Column]] = {}
    for column in schema.columns:
        name = now_called(column.name, renames)
        if name == column.name and name.lower() in found:
            continue
        found[name.lower()] = (name, column)
    return [(name, column) for name, column in found.values()]


def renamed_schema(schema: TableSchema, renames: Sequence[ColumnRename]) -> TableSchema:
    """Return a schema with the names that its columns have after renames."""
    if not renames:
        return schema
    columns = tuple(replace(column, name=name) for name, column in renamed_columns(schema, renames))
    return replace(schema, columns=columns, primary_key=tuple(now_called(one, renames) for one in schema.primary_key))


def now_called(column: str, renames: Iterable[ColumnRename]) -> str:
    """Return what a column is called after renames."""
    for one in renames:
        column = one.new_name(column)
    return column


def placed_schemas(table: str, batches: Iterable[Batch]) -> Iterator[tuple[TableSchema, NamesAt]]:
    """Yield the schemas in which the table's rows are written, and where they had those names, in the order of the batches."""
    for batch in batches:
        manifest = batch.manifest
        for commit, held in batch.commits:
            if table in commit.prepared.tables:
                files = (file for file in held.manifest.prepared_files if file.table == table)
                yield from ((held.manifest.schemas[f.schema_id], names_at(held.manifest, f)) for f in files)
        mine = [file for file in manifest.files if file.table == table]
        yield from ((manifest.schemas[file.schema_id], names_at(manifest, file)) for file in mine)
        if manifest.chunk is not None:
            told = (schema for schema in manifest.schemas.values() if schema.name == table)
            yield from ((schema, names_at_schema(manifest, schema)) for schema in told)


def renamed_schemas(table: str, batches: Iterable[Batch], renames: Sequence[ColumnRename]) -> tuple[TableSchema, ...]:
    """Return the schemas of the table's rows, with the names that their columns have now, without repeats, in order."""
    placed = placed_schemas(table, batches)
    found = (renamed_schema(schema, renames_after(place, renames)) for schema, place in placed)
    return tuple({schema.id: schema for schema in found}.values())


def newest_schema(table: str, batches: Sequence[Batch], renames: Sequence[ColumnRename]) -> TableSchema | None:
    """Return the schema of the table's last rows in the batches, with the names of now; None when they have none."""
    return next((found[-1] for batch in reversed(batches) if (found := renamed_schemas(table, [batch], renames))), None)


def filled_column(column: str, renames: Iterable[ColumnRename]) -> str | None:
    """Return what a column that was added is called after renames; None where another one took its name: it was dropped."""
    for one in renames:
        name = one.new_name(column)
        if name == column and column.lower() in one.new_names - one.old_names:
            return None
        column = name
    return column


@dataclass(frozen=True, slots=True)
class Renaming:
    """What a merge does to the columns of a lake table.

    Args:
        names: lake columns and their new names, all at once; empty when none changes.
        renames: what the lake table knows afterwards.
    """

    names: dict[str, str]
    renames: tuple[ColumnRename, ...]


def renaming(
    state: LakeTable,
    marker: Marker,
    told: Sequence[ColumnRename],
    keeps: Callable[[str], bool],
    others: Sequence[str],
    switches: Sequence[EpochChange] = (),
) -> Renaming | None:
    """Decide what renames do to the columns of a lake table; None where it knows them all.

    Args:
        state: the lake table.
        marker: of the source table, before the merge.
        told: of the source table, by the merge's windows.
        keeps: whether a column, by its name, goes into the lake table.
        others: other source tables whose rows it holds.
        switches: how the source's epochs began.

    Raises:
        IncompatibleSchema: others share the column, the lake keeps the new name for itself, or columns exchanged their names
            before rows were read back.
        ConfigError: a route keeps a column and not its new name.
    """
    places = {(one.table, one.at) for one in state.renames}
    new = [one for one in told if (one.table, one.at) not in places]
    if not new:
        return None
    names = {column.name: column.name for column in state.columns}
    done = list(state.renames)
    for one in new:
        if (before := next((other for other in done if one.is_again(other)), None)) is not None:
            done.append(replace(one, displaced=before.displaced))
            continue
        follows = _is_before(state, marker, one, names.values(), switches)
        if follows:
            _refuse(state, one, names.values(), keeps, others)
        rename = replace(one, displaced=_displaced(one, names.values())) if follows else one
        names = {column: rename.new_name(name) if follows else name for column, name in names.items()}
        done.append(rename)
    changed = {column: name for column, name in names.items() if column != name}
    return Renaming(changed, tuple(sorted(done, key=lambda one: one.at)))


def _displaced(rename: ColumnRename, columns: Iterable[str]) -> Names:
    """Return lake columns whose names others take, and free names: the source has dropped them, and the lake keeps them."""
    have = {column.lower(): column for column in columns}
    renamed, taken = rename.old_names, have.keys() | rename.new_names
    found = []
    for _, new in rename.names:
        if new.lower() in have.keys() - renamed:
            tries = (f"{new}_old{number or ''}" for number in count())
            name = next(name for name in tries if name.lower() not in taken)
            taken |= {name.lower()}
            found.append((have[new.lower()], name))
    return tuple(found)


def _is_before(
    state: LakeTable, marker: Marker, rename: ColumnRename, columns: Collection[str], switches: Sequence[EpochChange]
) -> bool:
    """Whether the lake's columns have the names before a rename that it does not know."""
    if state.snapshot_id is None:
        return True  # without a row, names are those that the merge gave
    reached = [mark.low for mark in marker.snapshots if not mark.partial]
    if any(rename.at < point for point in (marker.merged_to, *reached) if point is not None):
        return False
    if any(rename.at < mark.read_to for mark in marker.snapshots):
        return has_old_names(rename, columns)
    if marker.reselected is not None and rename.at < marker.reselected.high:
        return _is_before_read_back(rename, columns)
    if not _is_read_again(rename, switches):
        beyond = any(_was_read_after(rename, mark.read_to, switches) for mark in marker.snapshots)
        return has_old_names(rename, columns) if beyond else True
    # The epochs before had it where nothing of the table was merged, as before its snapshot; else it would be known.
    have = {column.lower() for column in columns}
    old, new = rename.old_names, rename.new_names
    return bool(have & (old - new)) and not have & (new - old)


def _is_before_read_back(rename: ColumnRename, columns: Iterable[str]) -> bool:
    """Whether columns follow a rename of before the end of a read-back, which saw the table with all names that were known.

    Raises:
        IncompatibleSchema: it is about one of those: the name was taken away and given to a column once more, perhaps to
            another one, so that rows of either side stand in the lake's column.
    """
    have = {column.lower() for column in columns}
    if have & rename.old_names:
        raise _cannot_be_told(rename)
    return not have & rename.new_names  # a column that was added meanwhile came under its new name


def _is_read_again(rename: ColumnRename, switches: Sequence[EpochChange]) -> bool:
    """Whether a rename was run before the epochs before its own were left."""
    left = [
        one.previous_end.time for one in switches if one.epoch <= rename.at.epoch and one.previous_end.time is not None
    ]
    return any(datetime.fromtimestamp(rename.stamp, UTC) <= time for time in left)


def _was_read_after(rename: ColumnRename, read_to: Point, switches: Sequence[EpochChange]) -> bool:
    """Whether a snapshot of a former epoch was read up to a point after a rename, which a rewind then kept from being drained.

    Points of two epochs compare as places of one binlog as long as somebody only moved the cursor.
    """
    between = [one for one in switches if read_to.epoch < one.epoch <= rename.at.epoch]
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
                hint="Take a new snapshot of this table (cdc snapshot): its rows continue in a column of the new name.",
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
        if old.lower() in have and new.lower() in reserved(state.mode) | set(SOURCE_KEYS.values()):
            raise IncompatibleSchema(
                f"column {new} has a name that is reserved in the lake",
                hint="Rename the column at the source, and take a new snapshot of this table (cdc snapshot).",
                table=rename.table,
                column=new,
            )


def _shown(rename: ColumnRename) -> str:
    return ", ".join(f"{old} to {new}" for old, new in rename.names)
