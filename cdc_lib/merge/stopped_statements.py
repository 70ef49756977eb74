"""Statements at which the source file stops a table: TRUNCATE, DROP TABLE and renames of columns; pure."""

from __future__ import annotations

from collections.abc import Iterable

from cdc_lib.errors import SchemaChangeStopped
from cdc_lib.model.ddl_effect import TableStatement
from cdc_lib.model.manifest import Manifest
from cdc_lib.model.position import Point
from cdc_lib.model.schema_policy import SchemaChangeKind, SchemaPolicy
from cdc_lib.model.table_name import TableName

_ANSWERS: dict[SchemaChangeKind, str] = {
    "truncate": "follow (the lake's rows are removed) or keep (they stay)",
    "drop_table": "follow (the lake's rows are removed) or keep (they stay)",
    "rename": "follow",
}


def refuse_statements(
    table: TableName, policy: SchemaPolicy, manifests: Iterable[Manifest], since: Point | None
) -> None:
    """Refuse the first statement at which the source file stops a table.

    Args:
        table: the source table.
        policy: what it does about statements.
        manifests: of windows, in the stream's order.
        since: statements before this point are merged; None for none.

    Raises:
        SchemaChangeStopped: names the statement, its position and its time.
    """
    for manifest in manifests:
        for statement in manifest.statements:
            key = _stopped_by(policy, statement) if statement.table == table else None
            if key is None or (since is not None and Point.at(manifest.epoch, statement.position) < since):
                continue
            at = f" ({statement.time:%Y-%m-%d %H:%M:%S} UTC)" if statement.time is not None else ""
            raise SchemaChangeStopped(
                f"the source {_description(statement)} at {statement.position}{at}, and the source file stops the table there "
                f"(schema_changes.{key}: stop)",
                hint=f"Set schema_changes.{key} to {_ANSWERS[key]} for this table in the source file, and merge again. "
                "Afterwards it may be stop again, for the next change.",
                table=table,
            )


def _stopped_by(policy: SchemaPolicy, statement: TableStatement) -> SchemaChangeKind | None:
    """Return the key of the source file that stops a table at a statement; None for none."""
    if statement.kind == "truncate" and policy.truncate == "stop":
        return "truncate"
    if statement.kind == "drop" and policy.drop_table == "stop":
        return "drop_table"
    if statement.kind == "rename_columns" and policy.rename == "stop":
        return "rename"
    return None


def _description(statement: TableStatement) -> str:
    if statement.kind == "rename_columns":
        return f"renamed columns ({', '.join(f'{old} to {new}' for old, new in statement.names)})"
    return "ran TRUNCATE" if statement.kind == "truncate" else "dropped the table"
