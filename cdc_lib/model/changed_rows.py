"""Results of comparing the rows that merges changed with the source, as stored after each merge."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from cdc_lib.model.position import Point, Position
from cdc_lib.model.table_name import TableName
from cdc_lib.model.verify import Difference, Verified

KEPT_DIFFERENCES = 100
"""Wrong rows of one table that are kept as a record: the newest ones."""


@dataclass(frozen=True, slots=True)
class OpenRow:
    """A row that differed while the lake lacked changes which the source had: the lake's half of its look comes later.

    Args:
        key: texts of the key's cells.
        batch: key of the manifest of the last batch that changed it.
        merge_id: the merge of that batch.
        low: every change before it was visible at the source.
        high: end of the source's binlog after the read.
        source: digest of the source's row; empty if there was none.
        before: digest of the source's row at the look before, at which the lake had no row although it had every change;
            None without such a look.
    """

    key: tuple[str, ...]
    batch: str
    merge_id: str
    low: Point
    high: Point
    source: str
    before: str | None = None


@dataclass(frozen=True, slots=True)
class WrongRow:
    """A row that a merge changed and that is not what the source has: a record without the row's values.

    Args:
        kind: kind of the difference.
        key: the key's columns and their values.
        columns: ``different``: names of the columns that differ.
        batch: key of the manifest of the last batch that changed it.
        merge_id: the merge of that batch.
        epoch: of the position.
        position: of the cut whose rows were compared.
        at: wall clock (UTC).
    """

    kind: Difference
    key: dict[str, str | None]
    columns: tuple[str, ...]
    batch: str
    merge_id: str
    epoch: int
    position: Position
    at: datetime

    @property
    def text(self) -> str:
        """The row's key, and what is wrong with it."""
        key = ", ".join(f"{name}={value}" for name, value in self.key.items())
        columns = f" in {', '.join(self.columns)}" if self.columns else ""
        return f"{key} is {self.kind}{columns}"


@dataclass(frozen=True, slots=True)
class ChangedRows:
    """The last comparison of the rows that a merge changed in one table: some of its rows, never the whole table.

    Args:
        table: ``database.table`` at the source.
        lake_table: full name in the catalog.
        merge_id: the merge after which it was compared.
        epoch: of the position.
        position: of the merge's cut.
        gtid_set: GTIDs of all transactions before it; empty if they are not known.
        at: wall clock (UTC).
        skipped: why no row was compared; empty if rows were.
        changes: changes of the table in the merge's batches.
        compared: number of rows that were compared.
        sampled: whether the merge changed more rows than these, so that they are a random sample.
        in_flight: rows that differ because of a change that may not be merged yet; they are compared again after the next merge.
        wrong: rows that this comparison found to be wrong.
        open_rows: the rows in flight.
        differences: record of the wrong rows of this and of earlier comparisons, oldest first.
        equal_position: position of the last cut of which all compared rows were equal or in flight; None before the first.
        equal_epoch: epoch of that position.
        equal_gtid_set: GTIDs of all transactions before it; empty if they are not known.
        equal_at: time of that comparison.
    """

    table: TableName
    lake_table: str
    merge_id: str
    epoch: int
    position: Position
    gtid_set: str
    at: datetime
    skipped: str = ""
    changes: int = 0
    compared: int = 0
    sampled: bool = False
    in_flight: int = 0
    wrong: int = 0
    open_rows: tuple[OpenRow, ...] = ()
    differences: tuple[WrongRow, ...] = ()
    equal_position: Position | None = None
    equal_epoch: int = 0
    equal_gtid_set: str = ""
    equal_at: datetime | None = None

    @property
    def equal(self) -> int:
        """Number of rows that equal the source's."""
        return self.compared - self.in_flight - self.wrong

    def unresolved(self, verified: Verified | None) -> tuple[WrongRow, ...]:
        """Return the wrong rows since the last comparison of the whole table without drift.

        Args:
            verified: the last comparison of the whole table; None before the first.
        """
        clean_at = verified.clean_at if verified is not None else None
        return tuple(one for one in self.differences if clean_at is None or one.at > clean_at)


@dataclass(frozen=True, slots=True)
class AfterMerge:
    """What is known of the rows that merges of a source changed.

    Args:
        source: its name.
        merge_id: the last merge after which rows were to be compared.
        at: wall clock (UTC).
        not_checked: why nothing was compared after that merge; empty if something was.
        tables: the last comparison of each pair of source table and lake table.
    """

    source: str
    merge_id: str
    at: datetime
    not_checked: str
    tables: tuple[ChangedRows, ...]

    @property
    def by_table(self) -> dict[tuple[TableName, str], ChangedRows]:
        """The same by source table and lake table."""
        return {(one.table, one.lake_table): one for one in self.tables}


def unresolved(
    after: AfterMerge | None, verified: Iterable[Verified]
) -> list[tuple[ChangedRows, tuple[WrongRow, ...]]]:
    """Return the tables with wrong rows since their last comparison without drift, and these rows.

    Args:
        after: what is known of changed rows; None before the first merge.
        verified: the last comparison of each whole table.
    """
    whole = {(one.table, one.lake_table): one for one in verified}
    tables = after.tables if after is not None else ()
    found = [(one, one.unresolved(whole.get((one.table, one.lake_table)))) for one in tables]
    return [(one, rows) for one, rows in found if rows]
