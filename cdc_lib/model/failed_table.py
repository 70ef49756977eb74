"""The tables that the last merge could not merge, stored so that no log has to be read."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from cdc_lib.errors import CdcError, SchemaChangeAsked, SchemaChangeStopped
from cdc_lib.model.position import Position
from cdc_lib.model.schema_question import DECISIONS, SchemaQuestion
from cdc_lib.model.table_name import TableName


@dataclass(frozen=True, slots=True)
class StoppedTable:
    """A lake table that could not be merged, for a reason that trying again does not repair.

    Args:
        tables: ``database.table`` of the source tables whose rows go there.
        lake_table: its full name.
        code: of the error, see :mod:`cdc_lib.errors`; a newer release may have written one that is not known here.
        what: what is wrong.
        hint: what to do.
        question: the statement at which the table waits for an answer; None if it stopped for another reason.
        since: when a merge first stopped there (UTC); None for the last merge.
    """

    tables: tuple[TableName, ...]
    lake_table: str
    code: str
    what: str
    hint: str
    question: SchemaQuestion | None = None
    since: datetime | None = None

    @classmethod
    def by(
        cls, error: CdcError, tables: tuple[TableName, ...], lake_table: str, since: datetime | None = None
    ) -> StoppedTable:
        """Return the table that an error stopped."""
        return cls(tables, lake_table, error.code, error.message, error.hint, question_of(error), since)


@dataclass(frozen=True, slots=True)
class Stopped:
    """The tables that stopped in the last merge of a source.

    Args:
        source: name of the source.
        merge_id: of the merge.
        at: when it ended (UTC).
        tables: those that stopped.
    """

    source: str
    merge_id: str
    at: datetime
    tables: tuple[StoppedTable, ...]


def question_of(error: CdcError) -> SchemaQuestion | None:
    """Return the question that an error asks; None for another error, and for one that counts several."""
    return statement_of(error) if isinstance(error, SchemaChangeAsked) else None


def statement_of(error: CdcError) -> SchemaQuestion | None:
    """Return the statement at which a table stopped; None for another error, and for one that counts several."""
    found = {name: error.context.get(name) for name in ("table", "change", "epoch", "position")}
    kind = next((kind for kind in DECISIONS if kind == found["change"]), None)
    stopped = isinstance(error, SchemaChangeAsked | SchemaChangeStopped)
    if not stopped or kind is None or not isinstance(found["epoch"], int):
        return None
    table, position = TableName.parse(str(found["table"])), Position.parse(str(found["position"]))
    return SchemaQuestion(table, kind, found["epoch"], position)
