"""The tables that a window leaves out, and the hidden columns that it must not show."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Self

from cdc_lib.binlog.ddl.masked_rows import Hiding, MaskedRows
from cdc_lib.config import SourceConfig
from cdc_lib.config.shape import hidden_elsewhere, is_hidden, is_shaped, shown_under
from cdc_lib.model.cursor import Cursor
from cdc_lib.model.quarantine import Fault
from cdc_lib.model.table_name import TableName
from cdc_lib.model.window import Window


@dataclass(frozen=True, slots=True)
class Exclusions:
    """The tables that a window leaves out, or may leave out.

    Args:
        skipped: tables quarantined when the window was planned: their rows are not decoded.
        replaced: tables whose rows a new snapshot replaces: they are left out if they are at fault. The window cannot have been
            drained with them before, so that its bytes stay the same.
        masks_lost: those of the skipped tables that lost a mask, and whose rows each may have.
    """

    skipped: Collection[TableName] = ()
    replaced: Collection[TableName] = ()
    masks_lost: Mapping[TableName, Collection[TableName]] = field(default_factory=dict)

    @classmethod
    def of(cls, cursor: Cursor, window: Window) -> Self:
        """Return those that a drain cursor knows of."""
        skipped = cursor.skipped_tables(window)
        lost = {one.table: one.fault.rows_of for one in cursor.quarantined_tables if one.fault is not None}
        return cls(skipped, cursor.replaced(window), {table: lost[table] for table in skipped if lost.get(table)})


def hiding_of(config: SourceConfig) -> Hiding | None:
    """Return what a source file masks or leaves out; None if nothing."""
    if not (config.masks or config.columns):
        return None
    return Hiding(
        partial(shown_under, config),
        lambda table, column: is_hidden(config, *table, column),
        lambda table: is_shaped(config, *table),
        partial(hidden_elsewhere, config),
        config.tables.captures,
    )


def masked_rows(config: SourceConfig, leaving: Exclusions, excluded: Mapping[TableName, Fault | None]) -> MaskedRows:
    """Return what follows whose rows tables have, with what is known at the start of a reading."""
    masked = MaskedRows(hiding_of(config), known={table.pair for table in leaving.skipped})
    lost = {table: fault.rows_of for table, fault in excluded.items() if fault is not None and fault.rows_of}
    for table, rows_of in {**lost, **leaving.masks_lost}.items():
        masked.lost(table.pair, [one.pair for one in rows_of])
    return masked
