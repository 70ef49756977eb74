"""Values at which a table may be cut: between two keys, as literals of the column's type."""

from __future__ import annotations

import pytest

from cdc_lib.model.schema import SourceType
from cdc_lib.snapshot.probes import between

TEXT = SourceType("string", charset="utf8mb4")


def texts(low, high, charset="utf8mb4"):
    source_type = SourceType("string", charset=charset)
    found = between(source_type, low.encode().hex(), high.encode().hex(), (low, high))
    return [bytes.fromhex(one.removeprefix("_utf8mb4 X'").removesuffix("'")).decode() for one in found]


@pytest.mark.parametrize(
    ("source_type", "ends", "middle", "last"),
    [
        (SourceType("int"), ("-9000", "7000"), "-1000", "7000"),
        (SourceType("int", unsigned=True), ("0", f"{2**64 - 1}"), f"{2**63}", f"{2**64 - 1}"),
        (SourceType("decimal", precision=9, scale=2), ("-0.32", "0.32"), "0.00", "0.32"),
        (SourceType("double"), ("1e-2", "3.01"), "1.510000000", "3.010000000"),
        (SourceType("year"), ("1990", "2022"), "2006", "2022"),
        (SourceType("date"), ("2026-01-01", "2026-01-17"), "'2026-01-09'", "'2026-01-17'"),
        (SourceType("datetime"), ("2026-01-01 00:00:00", "2026-01-01 16:00:00"), "'2026-01-01 08:00:00'", "'2026-01-01 16:00:00'"),
        (SourceType("bytes"), ("ab00", "ab10"), "X'ab08'", "X'ab10'"),
    ],
)  # fmt: skip
def test_values_divide_what_lies_between_two_keys(source_type, ends, middle, last):
    """At equal distances; the greater key ends them."""
    found = between(source_type, *ends)
    assert (len(found), found[7], found[-1]) == (16, middle, last)


def test_neighbours_have_the_greater_one_between_them():
    """It begins the rest of the table."""
    assert set(between(SourceType("int"), "4", "5")) == {"5"}
    assert set(between(SourceType("date"), "2026-01-01", "2026-01-02")) == {"'2026-01-01'", "'2026-01-02'"}


def test_a_day_that_no_calendar_has_is_no_error():
    assert between(SourceType("date"), "0000-00-00", "2026-01-17") == ["'2026-01-17'"]


def test_texts_have_one_letter_more_than_both_have_in_common():
    """Whatever the case: a collation may not see it."""
    assert {one[:-1] for one in texts("USER-0001", "user-0999")} == {"user-0"}
    assert {"user-00", "user-05", "user-09"} <= set(texts("USER-0001", "user-0999"))


def test_texts_of_other_scripts_have_letters_between_theirs():
    """Without halves of characters, and only if the column's character set has all of Unicode."""
    found = texts("a", "\uff21")
    assert any("\u4e00" < one < "\u9fff" for one in found)
    assert not any("\ud800" <= one < "\ue000" for one in found)
    assert all(one.isascii() for one in texts("a", "ab", "latin1"))
