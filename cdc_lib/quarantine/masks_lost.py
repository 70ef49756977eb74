"""Which tables lost a mask in the statements that are not drained yet: a snapshot, or a later window, would store their values.

Windows drain in any order, and a snapshot starts before the window with the statement that gave a table its rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from cdc_lib.binlog.ddl.ddl import Meaning, meaning
from cdc_lib.binlog.ddl.masked_rows import Hiding, MaskedRows
from cdc_lib.binlog.ddl.statement import Statement
from cdc_lib.binlog.framing.scan_progress import ErrorContext
from cdc_lib.binlog.rows.captured_tables import fault_of
from cdc_lib.binlog.statement_reader import Dated
from cdc_lib.errors import MaskLost
from cdc_lib.model.cursor import Cursor
from cdc_lib.model.observation import TablesObservation
from cdc_lib.model.quarantine import QuarantinedTable
from cdc_lib.model.table_name import TableName
from cdc_lib.mysql.connection import Session
from cdc_lib.mysql.information_schema import InformationSchema
from cdc_lib.mysql.planned_server import facts_of_planned
from cdc_lib.mysql.server_facts import ServerFacts
from cdc_lib.quarantine.records import FaultyTable
from cdc_lib.source import Source


def masks_lost(hiding: Hiding, cursor: Cursor, statements: Sequence[Dated], *, fold: bool) -> list[FaultyTable]:
    """Return the tables to quarantine.

    A statement that a record covers is decided: the table is quarantined, or a person resumed it after the statement. A table that
    is quarantined may get rows of more tables.

    Args:
        hiding: what the source file hides.
        cursor: the drain cursor.
        statements: from its position on.
        fold: whether names are compared without their case.
    """
    lost = [one for one in cursor.quarantine if one.fault is not None and one.fault.code == MaskLost.code]
    masked, found = MaskedRows(hiding), dict[TableName, FaultyTable]()
    for one in lost:
        if one.is_open and one.fault is not None:
            masked.lost(one.table.pair, [table.pair for table in one.fault.rows_of])
    for position, statement in statements:
        means = meaning(statement.text, statement.database, statement.quotings[0])
        context: ErrorContext = {"source": cursor.source, "file": position.file, "offset": position.offset}
        decided = {one.table for one in lost if one.covers(cursor.epoch, position)}
        while (error := _error(masked, means.folded() if fold else means, statement, context)) is not None:
            fault = fault_of(error, position)
            table = TableName.parse(str(error.context["table"]))
            masked.lost(table.pair, [one.pair for one in fault.rows_of])
            if table not in decided:
                found[table] = FaultyTable(table, fault, cursor.position, None)
    for one in lost:
        more = masked.rows_of(one.table.pair) if one.is_open else set[TableName]()
        if one.fault is not None and not more <= set(one.fault.rows_of):
            fault = replace(one.fault, rows_of=(*one.fault.rows_of, *sorted(more - set(one.fault.rows_of))))
            found.setdefault(one.table, FaultyTable(one.table, fault, cursor.position, None))
    return list(found.values())


@dataclass(frozen=True, slots=True)
class MaskGuard:
    """Asks, while a SELECT holds a table, whether the table got rows of a masked one after the plan.

    The server's answer of when tables were defined says in most cases that nothing happened; else the binlog is read.

    Args:
        source: the source.
        hiding: what the source file hides.
        table: that is read.
        cursor: the drain cursor, loaded after ``seen``: what a later plan has seen is decided in it.
        seen: when plans found tables defined; None if nothing is known.
        statements: those of the binlog from the cursor's position on.
    """

    source: Source
    hiding: Hiding
    table: TableName
    cursor: Cursor
    seen: TablesObservation | None
    statements: Callable[[ServerFacts], Sequence[Dated]]

    def lost(self) -> tuple[QuarantinedTable, ...]:
        """Return the table with its fault; empty if its rows are those that the plan knew.

        Raises:
            ServerChanged: another server answers.
        """
        connection = self.source.connect()
        try:
            facts = facts_of_planned(connection, self.source.config.server, self.cursor.identity, self.source.name)
            if self._is_as_planned(connection):
                return ()
        finally:
            connection.close()
        found = masks_lost(self.hiding, self.cursor, self.statements(facts), fold=facts.folds_names)
        return tuple(QuarantinedTable(one.table, one.fault) for one in found if one.table == self.table)

    def _is_as_planned(self, connection: Session) -> bool:
        """Whether neither the table nor one that hides columns was made, renamed or changed.

        MySQL keeps the time through a RENAME: of two tables with equal times, each may be the other.
        """
        before = dict(self.seen.defined) if self.seen is not None else {}
        hiding = {name for name in before if self.hiding.shapes(TableName.parse(name).pair)} - {str(self.table)}
        databases = {self.table.database, *(TableName.parse(name).database for name in hiding)}
        now = {str(name): at for name, at in InformationSchema(connection).defined(databases).items()}
        own = before.get(str(self.table))
        same = all(now.get(name) == before[name] for name in hiding)
        return (
            own is not None and own == now.get(str(self.table)) and same and all(before[name] != own for name in hiding)
        )


def _error(masked: MaskedRows, means: Meaning, statement: Statement, context: ErrorContext) -> MaskLost | None:
    """Return the error of the next table that a statement costs a mask; None once the statement is taken."""
    try:
        masked.take(means, statement, context)
    except MaskLost as error:
        return error
    return None
