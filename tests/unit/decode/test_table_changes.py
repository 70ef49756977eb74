"""What statements give to rows that are there, or why a table must be read for it."""

from __future__ import annotations

import pytest

from cdc_lib.decode.ddl import meaning
from cdc_lib.decode.statement import Statement
from cdc_lib.decode.table_changes import TableChanges
from cdc_lib.decode.table_statements import Naming
from cdc_lib.errors import TableReplaced, UnknownEvent
from cdc_lib.model.position import Position

AT = Position("binlog.000001", 100)


def of(text, captured="t", *, shaped=False, kept="rows"):
    names = {("db", name) for name in captured.split()}
    naming = Naming(swaps=True, kept=lambda *_: kept, shaped=lambda *_: shaped)
    means = meaning(text, "db")
    followed = [table for table in means.tables if table in names]
    changes = TableChanges(naming, mariadb=False, captured=lambda *name: name in names)
    found = changes.of(means, followed, Statement(text, "db"), AT, {"file": AT.file, "offset": AT.offset})
    return [(one.kind, one.table, [(f.column, f.value) for f in one.fills], bool(one.unclear)) for one in found]


def test_a_column_with_a_value_is_told():
    """Of the table itself, and of the shadow that a tool makes of it."""
    assert of("ALTER TABLE t ADD x INT DEFAULT 5") == [("fill", "db.t", [("x", "5")], False)]
    assert of("ALTER TABLE _t_gho ADD x INT DEFAULT 5") == [("shadow_fill", "db.t", [("x", "5")], False)]
    assert of("CREATE TABLE _t_new LIKE t") == [("shadow", "db.t", [], False)]
    assert of("ALTER TABLE t ADD x INT, ADD INDEX (x)") == []
    assert of("ALTER TABLE other ADD x INT DEFAULT 5") == []
    assert of("CREATE INDEX added ON t (x)") == []


@pytest.mark.parametrize(
    "text",
    ["ALTER TABLE t ADD x INT DEFAULT (1 + 1)", "ALTER TABLE t RENAME COLUMN v TO w", "ALTER TABLE t CHANGE v w INT"],
)
def test_what_is_not_told_asks_for_reading_the_table(text):
    """The error names the table and no value; a list of changes stays as it is; a shadow counts from its swap on."""
    with pytest.raises(TableReplaced) as caught:
        of(text)
    assert caught.value.context["table"] == "db.t"
    assert "1 + 1" not in str(caught.value)
    assert of(text, kept="list") == []
    assert of(text.replace(" t ", " _t_gho ")) == [("shadow_fill", "db.t", [], True)]


def test_a_value_is_not_kept_where_columns_are_not():
    """It might be one of those that are masked or left out."""
    with pytest.raises(TableReplaced, match="masked"):
        of("ALTER TABLE t ADD x INT DEFAULT 5", shaped=True)
    assert of("ALTER TABLE _t_gho ADD x INT DEFAULT 5", shaped=True) == [("shadow_fill", "db.t", [], True)]


def test_where_no_snapshot_can_be_taken_a_new_column_stays_null():
    """But one with another name would lose what there is."""
    assert of("ALTER TABLE t ADD x INT DEFAULT (1 + 1)", kept="fixed") == []
    with pytest.raises(TableReplaced):
        of("ALTER TABLE t RENAME COLUMN v TO w", kept="fixed")


def test_rows_of_another_table_ask_for_reading_it():
    """All tables that got some, captured ones alone."""
    with pytest.raises(TableReplaced) as caught:
        of("RENAME TABLE t TO x, u TO t, x TO u", "t u")
    assert caught.value.context["table"] == "db.t, db.u"
    assert of("RENAME TABLE t TO _t_del, _t_gho TO t") == [("swap", "db.t", [], False)]


def test_rows_that_go_or_come_with_a_partition_ask_for_reading_the_tables():
    """Both of an exchange; of a list of changes only where rows come; what no snapshot can replace stops the window."""
    taken, swapped = "ALTER TABLE t DROP PARTITION p0", "ALTER TABLE t EXCHANGE PARTITION p0 WITH TABLE x"
    for text, names in ((taken, "db.t"), (swapped, "db.t, db.x")):
        with pytest.raises(TableReplaced) as caught:
            of(text, "t x")
        assert caught.value.context["table"] == names
        with pytest.raises(UnknownEvent, match="the binlog does not show") as refused:
            of(text, "t x", kept="fixed")
        assert refused.value.context["table"] == names
    assert of(taken, kept="list") == []
    with pytest.raises(TableReplaced):
        of(swapped, kept="list")
    assert of("ALTER TABLE t REORGANIZE PARTITION p0, p1 INTO (PARTITION p VALUES LESS THAN (2026))") == []
