"""Which tables lost a mask in the statements that are not drained yet: a snapshot, or a later window, would store their values.

Windows drain in any order, and a snapshot starts before the window with the statement that gave a table its rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from cdc_lib.binlog.ddl.ddl import Meaning, meaning
from cdc_lib.binlog.ddl.masked_rows import Hiding, MaskedRows
from cdc_lib.binlog.ddl.statement import Statement
from cdc_lib.binlog.framing.scan_progress import ErrorContext
from cdc_lib.binlog.rows.captured_tables import fault_of
from cdc_lib.binlog.statement_reader import Dated
from cdc_lib.errors import MaskLost
from cdc_lib.model.cursor import Cursor
from cdc_lib.model.table_name import TableName
from cdc_lib.quarantine.records import FaultyTable


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


def _error(masked: MaskedRows, means: Meaning, statement: Statement, context: ErrorContext) -> MaskLost | None:
    """Return the error of the next table that a statement costs a mask; None once the statement is taken."""
    try:
        masked.take(means, statement, context)
    except MaskLost as error:
        return error
    return None
