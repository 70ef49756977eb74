"""Changes of columns at which the source file stops a table, or a person is asked; pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from cdc_lib.errors import MergeError, SchemaChangeStopped
from cdc_lib.lake.routing import RoutedTable
from cdc_lib.merge.column_policy import ColumnDecision
from cdc_lib.merge.column_statements import ColumnStatement, names_word, statement_of, statements_on
from cdc_lib.merge.plan import MergeInput
from cdc_lib.merge.stopped_change import StoppedChange
from cdc_lib.model.lake_table import LakeTable, Marker
from cdc_lib.model.lake_types import holds, widens
from cdc_lib.model.schema import TableSchema
from cdc_lib.model.schema_policy import SchemaPolicy
from cdc_lib.model.schema_question import SchemaChangeKind

_SHOWN = 120
"""Characters of a statement that an error shows."""

_RETYPES = re.compile(r"\b(MODIFY|CHANGE)\b", re.IGNORECASE)


def refuse_columns(
    policy: SchemaPolicy,
    routed: RoutedTable,
    decision: ColumnDecision,
    inputs: Sequence[MergeInput],
    others: Sequence[str],
) -> None:
    """Refuse added or dropped columns at which the table stops, and those that cannot be dropped.

    Args:
        policy: of the source table, with its answers.
        routed: the source table.
        decision: about its columns.
        inputs: what is merged of it.
        others: other source tables whose rows the lake table holds.

    Raises:
        SchemaChangeStopped: the source file stops the table at an added or dropped column.
        SchemaChangeAsked: an added or dropped column waits for an answer.
    """
    _refuse(policy, "add_column", routed, decision.added, inputs, "added")
    _refuse(policy, "drop_column", routed, decision.dropped, inputs, "dropped")
    followed = [name for name in decision.dropped if name.lower() in decision.left_out]
    if followed and others:
        statement = statement_of(routed, followed, inputs)
        raise SchemaChangeStopped(
            f"the source dropped {_listed(followed)}, and {', '.join(others)} share the lake table",
            hint="Set schema_changes.drop_column: keep for the table in the source file, and merge again.",
            table=routed.table,
            change="drop_column",
            epoch=statement.epoch,
            position=str(statement.position),
        )


def refuse_wider(
    policy: SchemaPolicy,
    routed: RoutedTable,
    schemas: Iterable[TableSchema],
    inputs: Sequence[MergeInput],
    state: LakeTable,
) -> None:
    """Refuse a column that needs a wider type in the lake, if the table stops there.

    Args:
        policy: of the source table, with its answers.
        routed: the source table.
        schemas: of its rows, under the lake's column names.
        inputs: what is merged of it.
        state: the lake table.

    Raises:
        SchemaChangeStopped: the source file stops the table at a column that needs a wider type.
        SchemaChangeAsked: such a column waits for an answer.
    """
    if policy.widen == "follow":
        return
    for name, old, new in _retyped(schemas, state):
        if not holds(old, new) and widens(old, new):
            _refuse(policy, "widen", routed, [name], inputs, f"changed {{}}, which is {old} in the lake, to {new}")


def refuse_narrower(
    policy: SchemaPolicy,
    routed: RoutedTable,
    schemas: Sequence[TableSchema],
    inputs: Sequence[MergeInput],
    state: LakeTable,
) -> None:
    """Refuse a statement after which a column's type is narrower than the lake's, if the table stops there.

    Only MODIFY and CHANGE count, and only those that are not merged yet: a column that was narrower before stops nothing.

    Args:
        policy: of the source table, with its answers.
        routed: the source table.
        schemas: of its rows, under the lake's column names, the newest last.
        inputs: what is merged of it.
        state: the lake table.

    Raises:
        SchemaChangeStopped: the source file stops the table at such a statement.
        SchemaChangeAsked: such a statement waits for an answer.
    """
    if policy.narrow == "keep":
        return
    merged_to = state.markers.get(routed.table, Marker()).merged_to
    retyping = [
        one
        for one in statements_on(routed, inputs)
        if _RETYPES.search(one.text) and (merged_to is None or one.point >= merged_to)
    ]
    for name, old, new in _retyped(schemas[-1:], state):
        named = [one for one in retyping if names_word(one.text, name)]
        if named and old != new and holds(old, new):
            what = f"changed column {name}, which is {old} in the lake, to {new}"
            _raise_if_stopped(policy, "narrow", routed, [name], what, named[-1])


def _retyped(schemas: Iterable[TableSchema], state: LakeTable) -> Iterable[tuple[str, str, str]]:
    """Yield the columns of rows that the lake has, with the lake's type and that of the rows."""
    have = {column.name.lower(): column.type for column in state.columns}
    for column in (column for schema in schemas for column in schema.columns):
        old = have.get(column.name.lower())
        if old is not None:
            yield column.name, old, column.type.lake_type


def _refuse(
    policy: SchemaPolicy,
    kind: SchemaChangeKind,
    routed: RoutedTable,
    columns: Sequence[str],
    inputs: Sequence[MergeInput],
    verb: str,
) -> None:
    """Refuse the columns of the first statement that is not decided; where the source file stops the table, all of them."""
    if not columns or not inputs or policy.of(kind) not in ("stop", "ask"):
        return
    if policy.of(kind) == "stop":
        groups = {statement_of(routed, columns, inputs): list(columns)}
    else:
        groups = {}
        for name in columns:
            groups.setdefault(statement_of(routed, [name], inputs), []).append(name)
    for statement, names in sorted(groups.items(), key=lambda group: group[0].point):
        what = verb.format(_listed(names)) if "{}" in verb else f"{verb} {_listed(names)}"
        _raise_if_stopped(policy, kind, routed, names, what, statement)


def _raise_if_stopped(
    policy: SchemaPolicy,
    kind: SchemaChangeKind,
    routed: RoutedTable,
    columns: Sequence[str],
    what: str,
    statement: ColumnStatement,
) -> None:
    behaviour = policy.at(kind, statement.point)
    if behaviour not in ("stop", "ask"):
        return
    at = f" at {statement.position} ({statement.text[:_SHOWN]!r})" if statement.text else ""
    change = StoppedChange(routed.table, kind, statement.epoch, statement.position, f"{what}{at}", columns[0])
    error: MergeError = change.stopped() if behaviour == "stop" else change.asked()
    raise error


def _listed(columns: Sequence[str]) -> str:
    return f"column{'s' if len(columns) > 1 else ''} {', '.join(columns)}"
