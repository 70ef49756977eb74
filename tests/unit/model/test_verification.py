"""What comparisons with the source say of a cut's tables and of the versions of a row."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from cdc_lib.model.changed_rows import AfterMerge, ChangedRows, WrongRow
from cdc_lib.model.merge_plan import Cut, TableCut
from cdc_lib.model.position import Point, Position
from cdc_lib.model.table_name import TableName
from cdc_lib.model.verification import checks_of_version, said_of_cut, verification_of
from cdc_lib.model.verify import CleanCheck, Verified

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
TABLE, LAKE = TableName("shop", "orders"), "lake.shop.orders"


def at(offset):
    return Position("binlog.000001", offset)


def check(offset, hours=0, epoch=1, **more):
    return CleanCheck(epoch, at(offset), "", NOON + timedelta(hours=hours), **more)


def verified(*checks, hours=9, **counts):
    found = dict.fromkeys(("missing", "extra", "different", "in_flight", "unexamined"), 0) | counts
    return Verified("shop", TABLE, LAKE, 1, at(900), "", NOON + timedelta(hours=hours), 9, **found, clean_checks=checks)


def cut(offset=300, epoch=1, **more):
    return Cut("shop", f"m{offset}", epoch, at(offset), None, NOON, (TableCut(TABLE, LAKE, 7, 1, **more),))


def changed(offset=300, *wrong, **more):
    return ChangedRows(
        TABLE, LAKE, f"m{offset}", 1, at(offset), "", NOON, changes=5, compared=4, differences=wrong, **more
    )


def wrong(offset, key="7", hours=0):
    return WrongRow("different", {"id": key}, ("v",), "b", "m", 1, at(offset), NOON + timedelta(hours=hours))


def known(of, *verified, after=None):
    (one,) = verification_of(of, verified, AfterMerge("shop", "m", NOON, "", (after,)) if after else None)[TABLE]
    return one


@pytest.mark.parametrize(
    ("checks", "of", "offset", "where", "said"),
    [
        ([300], cut(), 300, "at", "1 at"),
        ([200, 300, 400], cut(), 300, "at", "1 at"),
        ([100, 200, 400], cut(), 200, "before", "1 before"),
        ([400, 500], cut(), 400, "after", "1 after"),
        ([200, 300], cut(as_of=at(250)), 200, "before", "1 before"),
        ([400], cut(epoch=2), 400, "before", "1 before"),
        ([], cut(), None, "", "none"),
    ],
    ids=["at", "nearest", "before", "after", "in quarantine", "an epoch before", "none"],
)  # fmt: skip
def test_a_cut_knows_the_nearest_comparison_without_drift(checks, of, offset, where, said):
    """The last one at its position or before it, else the first after it; a quarantined table is as of an earlier position."""
    one = known(of, verified(*map(check, checks)))
    assert (one.equal and one.equal.position.offset, one.where) == (offset, where)
    assert said_of_cut([one]) == said


def test_a_line_says_where_a_table_was_equal_and_what_is_wrong_since():
    """Rows that were wrong before the last comparison of the whole table are in its figures, or repaired."""
    assert (
        known(cut(), verified(check(300, 1))).text == "equal at binlog.000001:300, checked at 2026-01-01 13:00:00 UTC"
    )
    later = known(cut(), verified(replace(check(400, in_flight=2), gtid_set="a:1-5")))
    assert later.text == (
        "equal at binlog.000001:400 (GTIDs a:1-5), checked at 2026-01-01 12:00:00 UTC, 2 rows in flight, after this cut"
    )
    drift = known(
        cut(),
        verified(check(200), missing=1, different=2),
        after=changed(300, wrong(300, hours=1), wrong(300, hours=10)),
    )
    assert (drift.wrong, said_of_cut([drift])) == (4, "1 before, 1 with wrong rows")
    assert drift.text.endswith("UTC; 4 rows wrong since")
    assert known(cut()).text == "never found equal"


def test_the_rows_of_a_merge_belong_to_its_cut():
    """Another cut says nothing of them, and neither does a comparison that was skipped."""
    of = known(cut(), after=changed(in_flight=1)).changed_rows
    assert (of.changes, of.compared, of.sampled, of.in_flight, of.wrong) == (5, 4, False, 1, 0)
    assert known(cut(200), after=changed()).changed_rows is None
    assert known(cut(), after=changed(skipped="it has no key")).changed_rows is None


@pytest.mark.parametrize(
    ("version", "later", "expected"),
    [
        (100, 200, []),
        (100, 300, [("verify", 300)]),
        (100, 301, [("verify", 300)]),
        (299, None, [("verify", 300), ("verify", 500)]),
        (300, None, [("verify", 500)]),
        (500, None, []),
    ],
)
def test_a_comparison_covers_the_version_that_a_row_had_at_its_position(version, later, expected):
    """All changes before the position were in the table, and none after it."""
    next_point = None if later is None else Point(1, 1, later)
    found = checks_of_version(Point(1, 1, version), next_point, "m", ["7"], verified(check(300), check(500)), None)
    assert [(one.by, int(one.position.partition(":")[2])) for one in found] == expected


def test_a_version_names_the_comparison_of_its_merge_and_of_its_row():
    """All rows or a sample; nothing if one was wrong, except of the row itself while it had this version."""

    def found(after, merge="m300", key="7", point=250, later=None):
        next_point = None if later is None else Point(1, 1, later)
        return [
            (one.by, one.note) for one in checks_of_version(Point(1, 1, point), next_point, merge, [key], None, after)
        ]

    assert found(changed()) == [("after_merge", "")]
    assert found(changed(in_flight=1)) == [("after_merge", "1 row in flight")]
    assert found(changed(sampled=True)) == [("sample", "4 rows compared")]
    assert found(changed(), merge="m200") == found(changed(), merge="") == found(None) == []
    one = changed(300, wrong(300), wrong=1)
    assert found(one) == [("wrong", "different: v")]
    assert found(one, key="8") == found(one, point=300) == found(one, later=260) == []
