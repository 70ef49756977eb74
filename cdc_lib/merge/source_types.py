"""The source's types of the rows that a lake table has, and statements that gave these columns other types; pure.

The lake holds ENUM, SET, CHAR and VARCHAR all as string, so its own types do not say whether a MODIFY changed values. Without a row
of the table before it in its window, the drain does not know the former type either.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence

from pydantic import TypeAdapter

from cdc_lib.binlog.ddl.history.retyped import compared, converts_to_others, shows_others
from cdc_lib.errors import ValuesNotLogged
from cdc_lib.merge.chunks import begin_of, end_of, is_newer, low_of
from cdc_lib.merge.contribution import Contribution
from cdc_lib.merge.plan import StoredBatch, TableWork
from cdc_lib.merge.redefinition import last_reset
from cdc_lib.merge.renames import at_point, current_name, newest_schema, renames_after
from cdc_lib.merge.table_resets import Retyped
from cdc_lib.model.column_rename import ColumnRename
from cdc_lib.model.lake_table import LakeTable, Marker, marker_of
from cdc_lib.model.position import Point
from cdc_lib.model.schema import Column, SourceType
from cdc_lib.model.table_name import TableName

Types = dict[str, SourceType]
"""By column name in lower case."""

_TYPES = TypeAdapter(Types)


def refuse_retyped(work: TableWork, before: Marker, state: LakeTable | None, renames: Sequence[ColumnRename]) -> None:
    """Refuse to continue after a statement that may have changed values in rows that the lake has.

    Args:
        work: what the table needs.
        before: its marker before the merge.
        state: the lake table.
        renames: of the table's columns, in order.

    Raises:
        ValuesNotLogged: there is such a statement.
    """
    since = last_reset(work)
    is_emptied = since is not None or before.emptied is not None
    kept = {} if state is None or is_emptied else _read(state.source_types).get(work.table, {})
    at = at_point(before.merged_to) if before.merged_to is not None else None
    kept = {_later(name, renames_after(at, renames)) if at is not None else name: one for name, one in kept.items()}
    for one in work.retyped:
        batches = [each.batch for each in work.inputs if _is_between(each.batch, since, one.at)]
        schema = newest_schema(work.table, sorted(batches, key=lambda batch: begin_of(batch.manifest)), renames)
        former = _types_of(schema.columns) if schema is not None else kept
        if former and (column := _changed(one, former, renames)):
            raise ValuesNotLogged(
                f"a statement may have changed the values of column {column} in rows that it does not show",
                hint="A merge requests a new snapshot, which replaces the rows; or: cdc snapshot {source} {table}",
                table=work.table,
            )


def is_retyped_only(work: TableWork) -> bool:
    """Whether a merge has nothing of a table but statements that may change types: without other values it needs no commit."""
    batches = [each.batch for each in work.inputs]
    statements = [one for batch in batches for one in batch.manifest.statements if one.table == work.table]
    has_rows = any(
        batch.commits
        or batch.manifest.chunk is not None
        or any(file.table == work.table for file in batch.manifest.files)
        for batch in batches
    )
    return not has_rows and all(one.kind == "retype" for one in statements)


def types_after(parts: Iterable[Contribution], state: LakeTable | None) -> str:
    """Return the source's types of the newest rows after a merge, as :attr:`LakeTable.source_types` holds them.

    Args:
        parts: what the merge brings of each source table.
        state: the lake table before it.
    """
    text = state.source_types if state is not None else ""
    found = _read(text)
    before = dict(found)
    for part in parts:
        table = part.routed.table
        marker = marker_of(state, table)
        since = marker if table in found else Marker()  # older rows have older types
        batches = [one.batch for one in part.work.inputs if is_newer(one.batch.manifest, _end(one.batch), since)]
        schema = newest_schema(table, sorted(batches, key=lambda batch: begin_of(batch.manifest)), part.renames)
        if schema is not None:
            found[table] = _types_of(schema.columns)
    return text if found == before else _written(found)


def _changed(one: Retyped, former: Mapping[str, SourceType], renames: Sequence[ColumnRename]) -> str:
    """Return the first column whose values may be others; a column that the rows lack was added since, with a value for each."""
    later = renames_after(at_point(one.at), renames)
    for column in one.columns:
        if not column.name:
            charset = column.type.charset
            if found := next((name for name, old in former.items() if converts_to_others(old, charset)), ""):
                return found
            continue
        old = former.get(_later(column.name, later))
        if old is None or shows_others(old, column.type):
            return column.name
    return ""


def _later(name: str, renames: Sequence[ColumnRename]) -> str:
    return current_name(name, renames).lower()


def _end(batch: StoredBatch) -> Point:
    manifest = batch.manifest
    return low_of(manifest) if manifest.window is None else end_of(manifest)


def _is_between(batch: StoredBatch, since: Point | None, until: Point) -> bool:
    """Whether rows of a batch come before a statement, and perhaps after another one that removed all rows."""
    return _end(batch) <= until and (since is None or _end(batch) >= since)


def _types_of(columns: Iterable[Column]) -> Types:
    return {column.name.lower(): compared(column.type) for column in columns}


def _read(text: str) -> dict[TableName, Types]:
    """Return the types of each source table; none of a lake table that an older release wrote."""
    groups = json.loads(text)["types"] if text else ()
    return {
        TableName.parse(table): types
        for one in groups
        for types in (_TYPES.validate_python(one["columns"]),)
        for table in one["tables"]
    }


def _written(found: Mapping[TableName, Types]) -> str:
    """Return the text of types; many tables of a route have the same ones."""
    groups: dict[str, tuple[object, list[str]]] = {}
    for table, types in sorted(found.items()):
        plain = _TYPES.dump_python(types, mode="json", exclude_defaults=True)
        groups.setdefault(json.dumps(plain), (plain, []))[1].append(table)
    listed = [{"tables": tables, "columns": columns} for columns, tables in groups.values()]
    return json.dumps({"format_version": 1, "types": listed}, separators=(",", ":"))
