"""What a cut counts: the rows of this merge, and those of all merges."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

from cdc_lib.merge.cut import make_cut
from cdc_lib.merge.plan import StoredBatch
from cdc_lib.model.manifest import DataFile
from cdc_lib.model.merge_plan import MergePlan, MergeTotals, TableCut
from cdc_lib.model.row_counts import NO_ROWS, RowCounts
from cdc_lib.model.table_name import TableName
from cdc_lib.model.window import Window
from tests.harness.lake.batches import at
from tests.harness.lake.planned import SCHEMA, manifest

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
TABLE = TableName.parse(SCHEMA.name)
PLAN = MergePlan("shop", 1, "m", at(4), at(100), ())
MINE = TableCut(TABLE, "lake.db.t", 7, 3)
OTHER = TableCut(TableName("db", "idle"), "lake.db.idle", 7, 0)


def batch(*counts: RowCounts | None) -> StoredBatch:
    """A window with a file of each count."""
    made = manifest(window=Window("shop", 1, at(4), at(100)))
    files = tuple(DataFile("part", TABLE, SCHEMA.id, 3, 50, "0", counts=one) for one in counts)
    return StoredBatch("window", replace(made, files=files))


def test_rows_are_counted_by_kind_and_added_to_those_of_earlier_merges():
    """A table without a file has no rows of this merge, and keeps what it had."""
    first = make_cut(PLAN, [batch(RowCounts(2, 1, 0, 0))], [MINE, OTHER], None, NOW, 1.5)
    second = make_cut(PLAN, [batch(RowCounts(0, 0, 3, 0)), batch(RowCounts(1))], [MINE, OTHER], first, NOW, 2.0)
    idle, mine = second.tables
    assert (idle.rows, idle.total_rows, idle.total_bytes) == (NO_ROWS, NO_ROWS, 0)
    assert (mine.rows, mine.total_rows, mine.total_bytes) == (RowCounts(1, 0, 3), RowCounts(3, 1, 3), 150)
    assert second.seconds == 2.0
    assert second.totals == MergeTotals(merges=2, windows=3, chunks=0, seconds=3.5)


def test_rows_that_were_not_counted_are_unknown_and_never_zero():
    """Batches of an earlier release have no counts."""
    (mine,) = make_cut(PLAN, [batch(RowCounts(2), None)], [MINE], None, NOW).tables
    assert mine.rows is None
    assert mine.total_rows == RowCounts(2)
