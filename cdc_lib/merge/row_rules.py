"""Which rows of a lake table a merge's commit changes besides those of its changes: removed, closed or filled ones; pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from cdc_lib.errors import IncompatibleSchema, MergeError
from cdc_lib.lake.evolution import other_type, refuse_text
from cdc_lib.lake.routing import LakeMerge
from cdc_lib.merge.contribution import Contribution
from cdc_lib.merge.evolve_table import is_indistinct
from cdc_lib.merge.redefinition import redefined_error
from cdc_lib.model.lake_table import LakeColumn, LakeTable
from cdc_lib.model.table_commit import Filled, Superseded


def superseded_rows(
    source: str, lake: LakeMerge, parts: Sequence[Contribution], state: LakeTable | None
) -> list[Superseded]:
    """Return the rows that snapshots replace or statements remove.

    Args:
        source: its name.
        lake: the lake table.
        parts: what its source tables contribute.
        state: it before the merge; None if it did not exist.

    Raises:
        MergeError: they cannot be distinguished from those of other tables.
    """
    superseded = []
    for part in parts:
        rules = part.superseded(source, state)
        if not rules and not part.entries:
            continue
        if is_indistinct(source, lake, part, state):
            raise MergeError(
                "rows of a table must be deleted, because of a statement (such as TRUNCATE) or a late snapshot, and cannot be "
                "distinguished from those of the other tables that share the lake table",
                hint="Add keys that differ (server, schema, table) to the route and begin with a new lake table.",
                table=part.routed.table,
                lake_table=str(lake.name),
            )
        superseded += rules
    return superseded


def filled_rows(
    source: str,
    lake: LakeMerge,
    parts: Sequence[Contribution],
    state: LakeTable | None,
    columns: Sequence[LakeColumn],
) -> Iterator[Filled]:
    """Yield the values of added columns in older rows.

    Args:
        source: its name.
        lake: the lake table.
        parts: what its source tables contribute.
        state: it before the merge; None if it did not exist.
        columns: its columns now.

    Raises:
        TableRedefined: see :func:`fills_of`.
    """
    before = state.columns if state is not None else ()
    for part in parts:
        if part.work.added_defaults and not is_indistinct(source, lake, part, state):
            fills = fills_of(source, part, state, columns)
            yield from (one for one in fills if one.value is not None or one.column_in(before) is not None)


def fills_of(
    source: str, part: Contribution, state: LakeTable | None, columns: Sequence[LakeColumn]
) -> Iterator[Filled]:
    """Yield the values of added columns in older rows of a source table, also in those of the merge.

    Raises:
        TableRedefined: the column cannot hold the value: another one had its name, or its type. A snapshot that the merge brings has
            the values.
    """
    before, rebuild = state.columns if state is not None else (), part.work.rebuild_before
    for one in part.filled(source):
        column = one.column_in(columns) if one.value is not None else None
        if column is not None and one.value is not None:
            try:
                refuse_text(column, one.value, part.routed.table)
                if one.column_in(before) is None and column.name.lower() in part.retyped_after(one.before):
                    raise other_type(column, part.routed.table)
            except IncompatibleSchema as why:
                if rebuild is not None and one.before <= rebuild:
                    continue
                raise redefined_error(why, part.routed.table) from why
        yield one
