"""What statements give to rows that are there, or why a table must be read for it."""

from __future__ import annotations

import pytest

from cdc_lib.binlog.ddl.ddl import meaning
from cdc_lib.binlog.ddl.effects import Naming
from cdc_lib.binlog.ddl.statement import Statement
from cdc_lib.binlog.ddl.table_changes import TableChanges
from cdc_lib.errors import TableReplaced, UnknownEvent
from cdc_lib.model.position import Position

AT = Position("binlog.000001", 100)


def of(text, captured="t", *, shaped=False, kept="rows", stored=dict, shares=False):
    names = {("db", name) for name in captured.split()}
    naming = Naming(
        swaps=True,
        kept=lambda *_: kept,
        shaped=lambda *_: shaped,
        stored=lambda *name: stored().get(name[2], ""),
        shares=lambda *_: shares,
    )
    means = meaning(text, "db")
    followed = [table for table in means.tables if table in names]
    changes = TableChanges(naming, mariadb=False, captured=lambda *name: name in names)
    found = changes.of(means, followed, Statement(text, "db"), AT, {"file": AT.file, "offset": AT.offset})
    pairs = [one.names or tuple((f.column, f.value) for f in one.added_defaults) for one in found]
    return [(one.kind, one.table, list(pair), bool(one.unclear)) for one, pair in zip(found, pairs, strict=True)]


def test_a_column_with_a_default_value_is_returned():
    """Of the table itself, and of the shadow that a tool makes of it."""
    assert of("ALTER TABLE t ADD x INT DEFAULT 5") == [("add_default", "db.t", [("x", "5")], False)]
    assert of("ALTER TABLE _t_gho ADD x INT DEFAULT 5") == [("shadow_add_default", "db.t", [("x", "5")], False)]
    assert of("CREATE TABLE _t_new LIKE t") == [("shadow", "db.t", [], False)]
    assert of("ALTER TABLE t ADD x INT, ADD INDEX (x)") == [("add_default", "db.t", [("x", None)], False)]
    assert of("ALTER TABLE other ADD x INT DEFAULT 5") == []
    assert of("CREATE INDEX added ON t (x)") == []


@pytest.mark.parametrize(
    "text",
    ["ALTER TABLE t ADD x INT DEFAULT (1 + 1)", "ALTER TABLE t RENAME COLUMN IF EXISTS v TO w"],
)
def test_an_unknown_value_needs_a_new_snapshot_of_the_table(text):
    """The error names the table and no value; a shadow counts from its swap on."""
    with pytest.raises(TableReplaced) as caught:
        of(text)
    assert caught.value.context["table"] == "db.t"
    assert "1 + 1" not in str(caught.value)
    assert of(text.replace(" t ", " _t_gho ")) == [("shadow_add_default", "db.t", [], True)]


@pytest.mark.parametrize("clauses", ["ADD UNIQUE (x)", "ADD x INT UNIQUE", "DROP PRIMARY KEY, ADD PRIMARY KEY (x)"])
def test_a_shadow_with_another_unique_key_may_lack_rows(clauses):
    """Tools copy rows with INSERT IGNORE: of rows that the key takes for one, the first stays."""
    assert of(f"ALTER TABLE _t_gho {clauses}") == [("shadow_add_default", "db.t", [], True)]
    assert of("ALTER TABLE _t_gho ADD INDEX `unique` (x)") == []


def test_a_value_is_not_kept_where_columns_are_not():
    """It might be one of those that are masked or left out."""
    with pytest.raises(TableReplaced, match="masked"):
        of("ALTER TABLE t ADD x INT DEFAULT 5", shaped=True)
    assert of("ALTER TABLE _t_gho ADD x INT DEFAULT 5", shaped=True) == [("shadow_add_default", "db.t", [], True)]


def test_where_no_snapshot_can_be_taken_a_new_column_stays_null():
    """But one with another name would lose what there is."""
    assert of("ALTER TABLE t ADD x INT DEFAULT (1 + 1)", kept="fixed") == []
    with pytest.raises(TableReplaced):
        of("ALTER TABLE t RENAME COLUMN IF EXISTS v TO w", kept="fixed")


def test_renamed_columns_are_returned():
    """Before what the same statement adds; a shadow counts from its swap on; nobody asks how the table is kept."""
    swap = "ALTER TABLE t RENAME COLUMN v TO w, CHANGE w v INT, ADD x INT DEFAULT 5"
    assert of(swap, kept="asked") == [
        ("rename_columns", "db.t", [("v", "w"), ("w", "v")], False),
        ("add_default", "db.t", [("x", "5")], False),
    ]
    assert of("ALTER TABLE t RENAME COLUMN v TO V") == []
    assert of("ALTER TABLE _t_gho RENAME COLUMN v TO w") == [("shadow_add_default", "db.t", [], True)]
    statement = "ALTER TABLE t RENAME COLUMN v TO w, ADD x INT DEFAULT (1 + 1)"
    with pytest.raises(TableReplaced):
        of(statement)


def test_a_table_that_shares_its_lake_table_needs_a_new_snapshot():
    """The other tables' rows stand in the lake's column of the old name."""
    with pytest.raises(TableReplaced, match="share the lake table"):
        of("ALTER TABLE t RENAME COLUMN v TO w", shares=True)


@pytest.mark.parametrize("stored", [{"v": None}, {"v": "hash"}, {"w": None}, {"v": "hash", "w": "redact"}])
def test_a_column_that_would_be_stored_otherwise_stops_the_table(stored):
    """What is left out or masked must not continue in the clear under another name."""
    with pytest.raises(UnknownEvent, match="stores w differently from v") as caught:
        of("ALTER TABLE t RENAME COLUMN v TO w", stored=lambda: stored)
    assert caught.value.context["table"] == "db.t"


def test_a_column_that_is_stored_alike_keeps_its_mask():
    """Both after one mask; of what is left out under both names nothing is recorded."""
    rename = "ALTER TABLE t RENAME COLUMN v TO w"
    assert of(rename, stored=lambda: {"v": "hash", "w": "hash"})[0][2] == [("v", "w")]
    assert of(rename, stored=lambda: {"v": None, "w": None}) == []


def test_rows_of_another_table_ask_for_reading_it():
    """All tables that got some, captured ones alone."""
    with pytest.raises(TableReplaced) as caught:
        of("RENAME TABLE t TO x, u TO t, x TO u", "t u")
    assert caught.value.context["table"] == "db.t, db.u"
    assert of("RENAME TABLE t TO _t_del, _t_gho TO t") == [("swap", "db.t", [], False)]


def test_rows_added_or_removed_with_a_partition_need_a_new_snapshot():
    """Both of an exchange; what no snapshot can replace stops the window."""
    taken, swapped = "ALTER TABLE t DROP PARTITION p0", "ALTER TABLE t EXCHANGE PARTITION p0 WITH TABLE x"
    for text, names in ((taken, "db.t"), (swapped, "db.t, db.x")):
        with pytest.raises(TableReplaced) as caught:
            of(text, "t x")
        assert caught.value.context["table"] == names
        with pytest.raises(UnknownEvent, match="the binlog does not show") as refused:
            of(text, "t x", kept="fixed")
        assert refused.value.context["table"] == names
    assert of("ALTER TABLE t REORGANIZE PARTITION p0, p1 INTO (PARTITION p VALUES LESS THAN (2026))") == []


def test_another_primary_key_asks_for_reading_the_table():
    """Also one that comes with a column; where no snapshot can be taken the merge says what to do."""
    for text in (
        "ALTER TABLE t DROP PRIMARY KEY, ADD PRIMARY KEY (v)",
        "ALTER TABLE t ADD x INT AUTO_INCREMENT PRIMARY KEY",
    ):
        with pytest.raises(TableReplaced, match="another primary key"):
            of(text)
    assert of("ALTER TABLE t DROP PRIMARY KEY, ADD PRIMARY KEY (v)", kept="fixed") == []
    assert of("ALTER TABLE t COMMENT 'PRIMARY KEY', ADD KEY (v)") == []
