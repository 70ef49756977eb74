"""Statements at which the source file stops a table, or a person is asked: TRUNCATE, DROP TABLE and renames; pure."""

from __future__ import annotations

from collections.abc import Iterable

from cdc_lib.errors import MergeError
from cdc_lib.merge.stopped_change import StoppedChange
from cdc_lib.model.ddl_effect import TableStatement, TableStatementKind
from cdc_lib.model.manifest import Manifest
from cdc_lib.model.position import Point
from cdc_lib.model.schema_policy import SchemaPolicy
from cdc_lib.model.schema_question import SchemaChangeKind
from cdc_lib.model.table_name import TableName

_KINDS: dict[TableStatementKind, SchemaChangeKind] = {
    "truncate": "truncate",
    "drop": "drop_table",
    "rename_columns": "rename",
}
"""The key of the source file for each statement that has one."""


def refuse_statements(
    table: TableName, policy: SchemaPolicy, manifests: Iterable[Manifest], since: Point | None
) -> None:
    """Refuse the first statement at which a table stops.

    Args:
        table: the source table.
        policy: what it does about statements, with its answers.
        manifests: of windows, in the stream's order.
        since: statements before this point are merged; None for none.

    Raises:
        SchemaChangeStopped: the source file stops the table there; names the statement, its position and its time.
        SchemaChangeAsked: nobody has answered yet; names the same.
    """
    for manifest in manifests:
        for statement in manifest.statements:
            kind, point = _KINDS.get(statement.kind), Point.at(manifest.epoch, statement.position)
            if statement.table != table or kind is None or (since is not None and point < since):
                continue
            behaviour = policy.at(kind, point)
            if behaviour in ("stop", "ask"):
                change = _change(statement, kind, manifest.epoch)
                error: MergeError = change.stopped() if behaviour == "stop" else change.asked()
                raise error


def _change(statement: TableStatement, kind: SchemaChangeKind, epoch: int) -> StoppedChange:
    at = f" ({statement.time:%Y-%m-%d %H:%M:%S} UTC)" if statement.time is not None else ""
    what = f"{_description(statement)} at {statement.position}{at}"
    return StoppedChange(statement.table, kind, epoch, statement.position, what)


def _description(statement: TableStatement) -> str:
    if statement.kind == "rename_columns":
        return f"renamed columns ({', '.join(f'{old} to {new}' for old, new in statement.names)})"
    return "ran TRUNCATE" if statement.kind == "truncate" else "dropped the table"
