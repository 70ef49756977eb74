from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from html.parser import HTMLParser

from cdc_lib.cli.verify.tables import exit_status
from cdc_lib.model.position import Position
from cdc_lib.model.verify import CellDifference, Report, RowDifference, TableReport, UncomparedColumn
from cdc_lib.verify.report_html import page

AT = datetime(2026, 1, 1, tzinfo=UTC)
POSITION = Position("binlog.000007", 4)
CELLS = (CellDifference("note", "<script>alert(1)</script>", None), CellDifference("total", "1", "2"))
WRONG = TableReport(
    "shop.orders", "lake.shop.orders", source_rows=10, different=1, missing=1, position=POSITION,
    rows=(RowDifference("different", {"id": "5"}, CELLS), RowDifference("missing", {"id": "7"})),
    uncompared=(UncomparedColumn("card", "it is masked in the lake"),),
)  # fmt: skip
REPORT = Report(
    "shop", 1, POSITION, "", AT, AT,
    (WRONG, TableReport("shop.views", "lake.shop.views", skipped="it is quarantined"), TableReport("a.b", "lake.a.b")),
)  # fmt: skip


class Tags(HTMLParser):
    """Looks whether every element that is opened is closed, and what the page refers to."""

    void = frozenset({"meta", "br"})

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: list[str] = []
        self.references: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append(tag)
        self.references += [value or "" for name, value in attrs if name in ("src", "href")]
        if tag not in self.void:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_the_page_is_valid_and_self_contained():
    """No script, and no other resource."""
    tags = Tags()
    tags.feed(page(REPORT))
    assert tags.open == []
    assert tags.references == []
    assert "script" not in tags.seen


def test_the_page_shows_different_rows_and_uncompared_columns():
    """Values are escaped."""
    text = page(REPORT)
    for words in ("1 table with drift", "id = <code>5</code>", "&lt;script&gt;", "<i>NULL</i>", "not in the lake",
                  "masked in the lake", "it is quarantined", "binlog.000007:4"):  # fmt: skip
        assert words in text


def test_a_report_without_drift_says_so():
    """At the top."""
    assert "no drift" in page(Report("shop", 1, POSITION, "", AT, AT, (TableReport("a.b", "lake.a.b"),)))


def test_a_report_without_a_compared_table_is_no_success():
    """Nothing is known of its tables; beside a compared table, a skipped one is a line of the report."""
    wrong, skipped, equal = REPORT.tables
    nothing = replace(REPORT, tables=(skipped,))
    assert "no drift" not in page(nothing)
    reports = (nothing, replace(REPORT, tables=(equal, skipped)), replace(REPORT, tables=(wrong, equal)))
    assert [exit_status(one) for one in reports] == [1, 0, 1]
