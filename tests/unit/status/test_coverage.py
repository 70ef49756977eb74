"""What comparisons of key ranges say of a source."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from cdc_lib.config.verify import VerifyConfig
from cdc_lib.model.changed_rows import WrongRow
from cdc_lib.model.coverage import Coverage, CoveredRange, FoundWrong
from cdc_lib.model.merge_plan import Cut, TableCut
from cdc_lib.model.position import Position
from cdc_lib.model.table_name import TableName
from cdc_lib.model.verify import Verified
from cdc_lib.status.coverage import YOUNG, coverage_findings, covered_rows, summary_of

NOW = datetime(2026, 1, 20, 12, tzinfo=UTC)
WEEK, DAY = timedelta(days=7), timedelta(days=1)
HERE = Position("binlog.000005", 9)
TABLE, LAKE = TableName("shop", "orders"), "lake.shop.orders"
SETTINGS = VerifyConfig(cover_every=WEEK)
CUT = Cut("shop", "m", 1, HERE, None, NOW, (TableCut(TABLE, LAKE, 7, 0),))


def ranges(*days):
    """Return ranges of ten rows that were compared so many days ago; None for one that was not."""
    ends = [*range(len(days) - 1), None][: len(days)]
    return tuple(
        CoveredRange(
            None if end is None else (str(end),), None if end is None else (str(end),), 10,
            None if ago is None else NOW - ago * DAY, 1, None if ago is None else HERE,
        )
        for end, ago in zip(ends, days, strict=True)
    )  # fmt: skip


def table(*days, table=TABLE, lake=LAKE, **changed):
    return replace(Coverage("shop", table, lake, NOW - 30 * DAY, NOW, ranges=ranges(*days)), **changed)


def findings(*coverages, verified=(), settings=SETTINGS, since=None):
    return list(coverage_findings("shop", settings, coverages, verified, CUT, NOW, since))


def test_the_oldest_range_and_the_part_within_the_period_are_what_is_known():
    """A range that was never compared waits since coverage began."""
    assert covered_rows(table(1, 6, 8), None, WEEK, NOW) == covered_rows(table(1, 6, 8), None, WEEK, NOW)
    known = covered_rows(table(1, 6, 8), None, WEEK, NOW)
    assert (round(known.ratio, 2), known.oldest_at, known.position, known.overdue) == (0.67, NOW - 8 * DAY, HERE, True)
    fresh = covered_rows(table(1, 6), None, WEEK, NOW)
    assert (fresh.ratio, fresh.oldest_at, fresh.overdue, fresh.wrong) == (1.0, NOW - 6 * DAY, False, 0)
    begun = covered_rows(table(1, None), None, WEEK, NOW)
    assert (begun.ratio, begun.oldest_at, begun.position) == (0.5, NOW - 30 * DAY, None)
    assert covered_rows(table(1), None, None, NOW) is covered_rows(None, None, WEEK, NOW) is None
    whole = summary_of([table(1, 6), table(8, table=TableName("shop", "x"), lake="x")], WEEK, NOW)
    assert (whole.tables, round(whole.ratio, 2), str(whole.oldest.table)) == (2, 0.67, "shop.x")
    assert summary_of([table(1, skipped="it has no key")], WEEK, NOW) is None


def test_ranges_that_wait_too_long_are_a_warning_and_so_is_a_source_of_which_none_was_compared():
    """With the DAG that compares them; nothing is said while all are within the period, or without a period."""
    assert findings(table(1, 6)) == []
    (late,) = findings(table(1, 8))
    assert (late.level, "shop.orders waits since 2026-01-12" in late.what, "cdc_shop.cover" in late.hint) == (
        "warning",
        True,
        True,
    )
    (none,) = findings()
    assert none.what == "no key range was compared with the source yet (verify.cover_every)"
    assert findings(since=NOW - YOUNG) == [none]
    assert findings(since=NOW - YOUNG / 2) == []
    assert findings(table(1, 8), settings=VerifyConfig()) == []
    assert findings(table(skipped="it has no key", lake=LAKE)) == []
    assert len(findings(table(1, 8), table(1, 9, table=TableName("shop", "gone")))) == 1


def test_a_wrong_row_is_an_error_until_it_or_the_whole_table_is_found_equal():
    """With the command that repairs it."""
    row = WrongRow("different", {"id": "7"}, ("v",), "", "m", 1, HERE, NOW)
    wrong = table(1, wrong=(FoundWrong(("7",), row),))
    whole = Verified("shop", TABLE, LAKE, 1, HERE, "", NOW, 9, 0, 0, 0, 0, 0)
    (found,) = findings(wrong, verified=[replace(whole, clean_at=NOW - DAY)])
    assert (found.level, found.hint) == ("error", "cdc verify shop shop.orders --repair")
    assert "id=7 is different in v" in found.what
    assert covered_rows(wrong, None, WEEK, NOW).wrong == 1
    assert findings(wrong, verified=[replace(whole, clean_at=NOW + DAY)]) == []


@pytest.mark.parametrize(
    ("settings", "fault"),
    [
        ({"cover_every": "1h"}, "at least twice"),
        ({"cover_every": "7d", "cover_schedule": "0 0 30 2 *"}, "never comes"),
        ({"cover_every": "7d", "cover_hours": "22-06"}, "two times of the day"),
        ({"cover_every": "1d", "cover_hours": "22:00-06:00"}, "at least 2d"),
        ({"cover_schedule": "every day"}, "five fields"),
    ],
)
def test_a_period_in_which_no_run_could_cover_the_whole_is_refused(settings, fault):
    """Before a DAG promises it."""
    with pytest.raises(ValueError, match=fault):
        VerifyConfig(**settings)
