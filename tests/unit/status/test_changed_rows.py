from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from cdc_lib.model.changed_rows import AfterMerge, ChangedRows, WrongRow
from cdc_lib.model.merge_plan import Cut
from cdc_lib.model.position import Position
from cdc_lib.model.table_name import TableName
from cdc_lib.model.verify import Verified
from cdc_lib.status.changed_rows import changed_row_findings, equal_tables
from cdc_lib.verify.after_merge import said

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
HERE = Position("binlog.000005", 9)
TABLE, LAKE = TableName("shop", "orders"), "lake.shop.orders"
WRONG = WrongRow("different", {"id": "7"}, ("v",), "shop/batches/b/manifest.json", "m", 1, HERE, NOON)
EQUAL = ChangedRows(TABLE, LAKE, "m", 1, HERE, "", NOON, compared=5, equal_position=HERE, equal_epoch=1, equal_at=NOON)
CUT = Cut("shop", "m", 1, HERE, None, NOON, ())


def after(one=EQUAL, not_checked=""):
    return AfterMerge("shop", "m", NOON, not_checked, (one,))


def whole(hours, **counts):
    found = {"missing": 0, "extra": 0, "different": 0, "in_flight": 0, "unexamined": 0} | counts
    at = NOON + timedelta(hours=hours)
    clean = {} if counts else {"clean_position": HERE, "clean_epoch": 1, "clean_at": at}
    return Verified("shop", TABLE, LAKE, 1, HERE, "", at, 9, **found, **clean)


def test_a_wrong_row_is_an_error_until_the_whole_table_is_found_equal():
    """Later equal rows of the table do not settle it; neither does a comparison from before it, or one with drift."""
    wrong = after(replace(EQUAL, differences=(WRONG,)))
    for verified in ([], [whole(-1)], [whole(1, missing=1)]):
        assert equal_tables(wrong, verified) == []
        (finding,) = changed_row_findings("shop", wrong, verified, CUT)
        assert finding.level == "error"
        for word in ("shop.orders", "id=7", "different in v", "shop/batches/b/manifest.json", "binlog.000005:9"):
            assert word in finding.what
        assert finding.hint == "cdc verify shop shop.orders --repair"
    assert list(changed_row_findings("shop", wrong, [whole(1)], CUT)) == []
    assert equal_tables(wrong, [whole(1)]) == list(wrong.tables)


@pytest.mark.parametrize(("cut", "levels"), [(CUT, ["warning"]), (replace(CUT, merge_id="later"), []), (None, [])])
def test_why_nothing_was_compared_is_a_warning_until_the_next_merge(cut, levels):
    """Which may be one of a source file that turns the comparison off."""
    found = list(changed_row_findings("shop", after(not_checked="no way"), [], cut))
    assert [one.level for one in found] == levels
    assert all("no way" in one.what for one in found)


def test_a_table_that_was_never_compared_is_not_equal():
    """Without a row that could be compared nothing is said."""
    assert equal_tables(after(replace(EQUAL, equal_at=None)), []) == []
    assert equal_tables(None, []) == []


@pytest.mark.parametrize(
    ("counts", "compared", "found"),
    [
        ({}, "all 5 rows", "5 equal"),
        ({"in_flight": 2}, "all 5 rows", "3 equal, 2 changed again at the source, compared after a later merge"),
        (
            {"compared": 1, "in_flight": 1},
            "the one row",
            "1 changed again at the source, compared after a later merge",
        ),
        (
            {"compared": 1000, "in_flight": 1, "sampled": True},
            "1,000 at random of the rows",
            "999 equal, 1 changed again at the source, compared after a later merge",
        ),
    ],
)
def test_rows_that_changed_again_are_neither_equal_nor_wrong(counts, compared, found):
    """They are a line of the log, and no warning."""
    text = f"shop.orders: compared {compared} that this merge changed with the source: {found}"
    assert list(said(after(replace(EQUAL, **counts)))) == [(False, text)]
