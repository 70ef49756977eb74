"""The errors of a table that stops at a schema change, and the question that an error asks; pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from cdc_lib.errors import SchemaChangeAsked, SchemaChangeStopped
from cdc_lib.model.position import Position
from cdc_lib.model.schema_question import DECISIONS, Decision, SchemaChangeKind
from cdc_lib.model.table_name import TableName

_ROWS: Mapping[Decision, str] = {
    "follow": "follow (the lake's rows are removed)",
    "keep": "keep (they stay)",
}
"""What a decision means about statements that remove rows."""


@dataclass(frozen=True, slots=True)
class StoppedChange:
    """A schema change at which a table stops; :func:`cdc_lib.model.failed_table.statement_of` reads it from its errors.

    Args:
        table: the source table.
        kind: the kind of change.
        epoch: of the position.
        position: of the statement.
        what: what the source did, with position and statement as far as they are known.
        column: the first changed column; None for a change of rows.
    """

    table: TableName
    kind: SchemaChangeKind
    epoch: int
    position: Position
    what: str
    column: str | None = None

    def stopped(self) -> SchemaChangeStopped:
        """Return the error where the source file has ``stop``."""
        return SchemaChangeStopped(
            f"the source {self.what}, and the source file stops the table there (schema_changes.{self.kind}: stop)",
            hint=f"Set schema_changes.{self.kind} to {self._decisions()} for this table in the source file, and merge again. "
            "Afterwards it may be stop again, for the next change.",
            table=self.table,
            column=self.column,
            change=self.kind,
            epoch=self.epoch,
            position=str(self.position),
        )

    def asked(self) -> SchemaChangeAsked:
        """Return the error where the source file has ``ask``."""
        return SchemaChangeAsked(
            f"the source {self.what}, and the table waits for an answer (schema_changes.{self.kind}: ask)",
            hint=f"Answer {self._decisions()}: cdc schema answer {{source}} {self.table.in_shell} "
            f"{'|'.join(DECISIONS[self.kind])}; in Airflow, run the DAG cdc_{{source}}.answer. The next merge continues there.",
            table=self.table,
            column=self.column,
            change=self.kind,
            epoch=self.epoch,
            position=str(self.position),
        )

    def _decisions(self) -> str:
        removes = self.kind in ("truncate", "drop_table")
        return " or ".join(_ROWS[one] if removes else one for one in DECISIONS[self.kind])
