"""Tools that exchange tables of other definitions in one statement: a keyless table for a keyed one, and back."""

from __future__ import annotations

import pytest

from cdc_lib.status.overview import status_of
from cdc_lib.store.cuts import last_cut
from tests.harness.binlog.capture import row_metadata
from tests.harness.lake.ddl_source import Followed


class Swapped(Followed):
    """Lists of changes, of tables without a key, are compared by what they add up to."""

    def lake_rows(self, table, *columns):
        name = f"{self.capture.database}.{table}"
        if self.lake.state(name).mode != "append":
            return super().lake_rows(table, *columns)
        order = ("_epoch", "_binlog", "_offset", "_row")
        rows = []
        for *values, op in sorted(self.lake.rows(name, *order, *self.columns(table), "_op"), key=lambda row: row[:4]):
            if op == "t":
                rows = []
            elif op == "d":
                rows.remove(tuple(values[4:]))
            else:
                rows.append(tuple(values[4:]))
        return sorted(rows, key=repr)

    def living(self, table):
        """Return the rows that exist at the source as the lake has it; of a list, the last change of each key."""
        name, columns = f"{self.capture.database}.{table}", self.columns(table)
        mode = self.lake.state(name).mode
        if mode == "append":
            by_key = {}
            order = ("_epoch", "_binlog", "_offset", "_row")
            for *values, op in sorted(self.lake.rows(name, *order, *columns, "_op"), key=lambda row: row[:4]):
                if op == "t":
                    by_key = {}
                elif op == "d":
                    by_key.pop(values[4])
                else:
                    by_key[values[4]] = tuple(values[4:])
            return sorted(by_key.values(), key=repr)
        marks = {"soft_delete": ("_is_deleted", False), "scd2": ("_is_current", True)}
        if mode not in marks:
            return self.lake_rows(table)
        column, living = marks[mode]
        return [row[:-1] for row in self.lake.rows(name, *columns, column) if row[-1] == living]


@pytest.fixture
def source(any_server, database, tmp_path, lake):
    source = Swapped(any_server, database, tmp_path, lake, on_error="quarantine")
    source.run(
        "CREATE TABLE a (k INT, v VARCHAR(9))",
        "INSERT INTO a VALUES (1, 'x'), (1, 'x'), (2, 'y')",
        "CREATE TABLE b (k INT PRIMARY KEY, v VARCHAR(9))",
        "INSERT INTO b VALUES (1, 'bx'), (2, 'by')",
        "CREATE TABLE other (id INT PRIMARY KEY)",
    )
    for _ in range(2):
        source.round()
    source.assert_equal("a", "b", "other")
    return source


def settled(source, *tables):
    """Do two rounds: the other table is never late, and all tables are equal at the end, without a person."""
    for _ in range(2):
        source.run("INSERT INTO other SELECT COUNT(*) FROM other AS o")
        source.round()
        source.assert_equal("other")
    for table in tables:
        assert (table, source.lake_rows(table)) == (table, source.source_rows(table))
    assert not status_of(source.capture.pipeline).drain.quarantined_tables


@pytest.mark.parametrize("first", ["a", "b"])
def test_a_table_without_a_key_and_one_with_a_key_take_each_others_place(source, first):
    """In one statement, with rows before and after it in the same window; and back in a later one."""
    second = {"a": "b", "b": "a"}[first]
    source.run(
        f"INSERT INTO {first} VALUES (7, 'before')",
        f"RENAME TABLE {first} TO old, {second} TO {first}",
        f"INSERT INTO {first} VALUES (8, 'after')",
        "INSERT INTO old VALUES (9, 'after')",
    )
    settled(source, first, "old")
    source.run(
        f"INSERT INTO {first} VALUES (17, 'before')",
        f"RENAME TABLE {first} TO {second}, old TO {first}",
        f"INSERT INTO {first} VALUES (18, 'after')",
        f"INSERT INTO {second} VALUES (19, 'after')",
    )
    settled(source, "a", "b")


@pytest.mark.parametrize("pause", [False, True])
def test_two_swaps_between_two_runs_leave_the_tables_as_they_were(source, pause):
    """There and back, in one window and in two."""
    source.run("RENAME TABLE a TO old, b TO a", "INSERT INTO a VALUES (8, 'there')")
    if pause:
        source.drain()
    source.run("RENAME TABLE a TO b, old TO a", "INSERT INTO a VALUES (9, 'back')", "INSERT INTO b VALUES (9, 'back')")
    settled(source, "a", "b")


@pytest.mark.parametrize("first", ["a", "b"])
def test_a_shadow_table_of_another_key_takes_the_place_of_one(source, first):
    """As gh-ost and pt-online-schema-change end: a copy with or without a key, the table's rows, and the swap."""
    key = "PRIMARY KEY" if first == "a" else ""
    source.run(
        f"CREATE TABLE _{first}_new (k INT {key}, v VARCHAR(9))",
        f"INSERT INTO _{first}_new SELECT DISTINCT k, v FROM {first}",
        f"UPDATE _{first}_new SET v = 'new' WHERE k = 1",
        f"RENAME TABLE {first} TO _{first}_old, _{first}_new TO {first}",
        f"INSERT INTO {first} VALUES (8, 'after')",
        f"DROP TABLE _{first}_old",
    )
    settled(source, first)


def dropped(source):
    """Return the tables that the last cut takes for dropped."""
    return {one.table.table for one in last_cut(source.capture.store, "shop").tables if one.dropped is not None}


@pytest.mark.parametrize(
    ("left", "key", "metadata"),
    [
        ("a", "PRIMARY KEY", "MINIMAL"),
        ("a", "", "FULL"),
        ("b", "PRIMARY KEY", "FULL"),
        ("b", "", "MINIMAL"),
    ],
)
def test_a_name_that_a_table_left_is_taken_by_another_table_in_a_later_run(any_server, source, left, key, metadata):
    """By a RENAME, which shows no CREATE: the lake has its rows, also after a CREATE IF NOT EXISTS that does nothing."""
    with row_metadata(any_server, metadata):
        source.run(f"RENAME TABLE {left} TO old")
        settled(source, "old")
        assert dropped(source) == {left}
        source.run(
            f"CREATE TABLE c (k INT {key}, v VARCHAR(9), w INT)",
            "INSERT INTO c VALUES (1, 'c', 1), (3, 'c', 3)",
            "CREATE TABLE _c_gho LIKE c",
            "INSERT INTO _c_gho SELECT * FROM c",
            "RENAME TABLE c TO _c_del, _c_gho TO c",
            f"RENAME TABLE c TO {left}",
        )
        settled(source, left)
        assert left not in dropped(source)
        source.run(f"CREATE TABLE IF NOT EXISTS {left} (k INT)", f"INSERT INTO {left} VALUES (8, 'later', 8)")
        settled(source, left)


@pytest.mark.parametrize(
    ("left", "key", "metadata"), [("a", "PRIMARY KEY", "FULL"), ("b", "", "FULL"), ("b", "PRIMARY KEY", "MINIMAL")]
)
def test_rows_show_that_a_dropped_table_exists_again(any_server, source, left, key, metadata):
    """Where the CREATE is not in the binlog."""
    with row_metadata(any_server, metadata):
        source.run(f"DROP TABLE {left}")
        settled(source)
        assert dropped(source) == {left}
        source.run(
            "SET sql_log_bin = 0",
            f"CREATE TABLE {left} (w VARCHAR(9) {key}, k INT)",
            "SET sql_log_bin = 1",
            f"INSERT INTO {left} VALUES ('x', 4)",
        )
        settled(source, left)
        assert left not in dropped(source)


@pytest.mark.parametrize("kept", [False, True], ids=["default", "keep"])
@pytest.mark.parametrize("later", [False, True], ids=["one run", "two runs"])
def test_a_dropped_table_that_an_unlogged_create_makes_again_begins_without_its_former_rows(
    any_server, database, tmp_path, lake, kept, later
):
    """Also with the same definition: rows after the DROP show that it exists, and those before it are no longer at the source."""
    modes = ("mirror", "soft_delete", "scd2", "append")
    settings = {"modes": [{"tables": f"{database}.{mode}", "mode": mode} for mode in modes]}
    settings |= {"schema_changes": {"drop_table": "keep"}} if kept else {}
    source = Swapped(any_server, database, tmp_path, lake, **settings)
    made = [f"CREATE TABLE {mode} (k INT PRIMARY KEY, v VARCHAR(9))" for mode in modes]
    source.run(*made, *(f"INSERT INTO {mode} VALUES (1, 'x'), (2, 'y')" for mode in modes))
    source.round()
    source.run(f"DROP TABLE {', '.join(modes)}")
    if later:
        source.round()
    inserts = [f"INSERT INTO {mode} VALUES (2, 'new'), (3, 'z')" for mode in modes]
    source.run("SET sql_log_bin = 0", *made, "SET sql_log_bin = 1", *inserts)
    source.round()
    assert dropped(source) == set()
    assert {mode: source.living(mode) for mode in modes} == {mode: source.source_rows(mode) for mode in modes}
    source.run(*(f"UPDATE {mode} SET v = 'later' WHERE k = 2" for mode in modes))
    source.round()
    assert {mode: source.living(mode) for mode in modes} == {mode: source.source_rows(mode) for mode in modes}
