"""Tables that become others under their name: another key, none, a first one, other types. The lake follows, without a person."""

from __future__ import annotations

import pytest

from cdc_lib import requests
from cdc_lib.config.layouts import LayoutRule
from cdc_lib.config.modes import ModeRule
from cdc_lib.errors import IncompatibleSchema
from cdc_lib.model.table_name import TableName
from cdc_lib.status.overview import status_of
from cdc_lib.store.cuts import last_cut
from spark_jobs.iceberg import lake_table
from spark_jobs.iceberg.row_files import RowFiles
from spark_jobs.merging import run
from spark_jobs.merging.table_merge import TableMerge, merge_table
from spark_jobs.runtime.session import table_session
from tests.harness.lake.ddl_source import Followed
from tests.harness.lake.reading import opened

AGAIN = {
    "less2key": ("CREATE TABLE less2key (k VARCHAR(9) PRIMARY KEY, v INT)", "INSERT INTO less2key VALUES ('a', 10), ('c', 3)"),
    "key2less": ("CREATE TABLE key2less (k INT, v INT)", "INSERT INTO key2less VALUES (1, 10), (1, 10)"),
    "key2key": ("CREATE TABLE key2key (k INT, j INT PRIMARY KEY)", "INSERT INTO key2key VALUES (5, 10), (5, 11)"),
    "typechg": ("CREATE TABLE typechg (k VARCHAR(20) PRIMARY KEY, v DATETIME)", "INSERT INTO typechg VALUES ('x', '2024-01-01')"),
}  # fmt: skip


@pytest.fixture
def source(any_server, database, tmp_path, lake):
    """Tables of which each becomes another one, and one that stays."""
    source = Followed(any_server, database, tmp_path, lake, on_error="quarantine")
    source.run(
        "CREATE TABLE less2key (k VARCHAR(9) NOT NULL, v INT)",
        "INSERT INTO less2key VALUES ('a', 1), ('b', 2)",
        "CREATE TABLE key2less (k INT PRIMARY KEY, v INT)",
        "INSERT INTO key2less VALUES (1, 1), (2, 2)",
        "CREATE TABLE key2key (k INT PRIMARY KEY, j INT)",
        "INSERT INTO key2key VALUES (1, 1), (2, 2)",
        "CREATE TABLE typechg (k INT PRIMARY KEY, v INT)",
        "INSERT INTO typechg VALUES (1, 1)",
        "CREATE TABLE other (id INT PRIMARY KEY)",
    )
    source.round()
    return source


def test_a_table_that_is_dropped_and_created_follows_its_new_definition(source):
    """In one merge with its rows, and when they come with a later one; also if the merge is done twice."""
    before = {table: source.lake.state(f"{source.capture.database}.{table}") for table in AGAIN}
    for table, (create, insert) in AGAIN.items():
        source.run(f"INSERT INTO {table} SELECT * FROM {table} LIMIT 0", f"DROP TABLE {table}", create, insert)
    source.run("INSERT INTO other VALUES (1)")
    source.round(twice=True)
    source.assert_equal(*AGAIN, "other")
    for table, then in before.items():
        now = source.lake.state(f"{source.capture.database}.{table}")
        assert (now.uuid, now.mode) == (then.uuid, "append" if table == "key2less" else "mirror")
    source.run("INSERT INTO other VALUES (2)", "INSERT INTO key2less VALUES (3, 3)", "UPDATE key2key SET k = 6")
    source.round()
    source.assert_equal(*AGAIN, "other")


def test_rows_of_the_new_definition_may_come_in_a_later_merge(source):
    """The table is empty in between."""
    for table, (create, _) in AGAIN.items():
        source.run(f"DROP TABLE {table}", create)
    source.run("INSERT INTO other VALUES (1)")
    source.round()
    source.assert_equal("other")
    source.run(*(insert for _, insert in AGAIN.values()))
    source.round()
    source.assert_equal(*AGAIN, "other")


def test_a_table_that_an_alter_redefines_is_read_again(source):
    """A first key, a type that nothing can be promoted to, a column that is dropped and added with another type."""
    source.run(
        "CREATE TABLE big (id INT PRIMARY KEY, n BIGINT)",
        "INSERT INTO big VALUES (1, 9223372036854775807)",
        "CREATE TABLE col (id INT PRIMARY KEY, c INT)",
        "INSERT INTO col VALUES (1, 1)",
    )
    source.round()
    source.round()
    source.assert_equal("big", "col")
    source.run(
        "DELETE FROM less2key WHERE v = 2",
        "ALTER TABLE less2key ADD PRIMARY KEY (k)",
        "INSERT INTO less2key VALUES ('c', 3)",
        "ALTER TABLE big MODIFY n DECIMAL(30, 5)",
        "INSERT INTO big VALUES (2, 1.5)",
        "ALTER TABLE col DROP COLUMN c, ADD COLUMN c VARCHAR(9) DEFAULT 'new'",
        "INSERT INTO col VALUES (2, 'c2')",
        "INSERT INTO other VALUES (1)",
    )
    source.round()
    source.assert_equal("other")
    assert any("read again: column" in line for line in source.lake.said)  # the first key is seen before the merge
    source.round()
    source.assert_equal("less2key", "big", "col", "other")
    assert source.lake.state(f"{source.capture.database}.less2key").primary_key == ("k",)
    assert not status_of(source.capture.pipeline).drain.quarantined_tables
    assert TableName(source.capture.database, "big") in {
        one.table for one in status_of(source.capture.pipeline).cut.tables
    }


@pytest.mark.parametrize("rounds", [0, 1])
def test_the_default_of_a_column_that_another_one_replaced_stops_nothing(source, rounds):
    """It waits for a row that brings its column, and none comes before the other column of that name, of another type."""
    again = "DROP COLUMN c, ADD COLUMN c DECIMAL(38, 10) NOT NULL DEFAULT 1.5"
    tables = {
        "text": ("VARCHAR(9) DEFAULT 'x'", again),
        "word": ("ENUM('a', 'b') NOT NULL DEFAULT 'b'", again),
        "day": ("DATE DEFAULT '2024-01-02'", again),
        "none": ("VARCHAR(9) DEFAULT '7'", "DROP COLUMN c, ADD COLUMN c DECIMAL(38, 10)"),
        "place": ("ENUM('a', 'b') NOT NULL DEFAULT 'b'", "MODIFY c DECIMAL(38, 10)"),
        "round": ("DECIMAL(5, 2) NOT NULL DEFAULT 1.55", "MODIFY c DECIMAL(5, 1)"),
        "same": ("DECIMAL(5, 1) NOT NULL DEFAULT 1.5", "MODIFY c DECIMAL(5, 1) NOT NULL DEFAULT 2.5"),
    }
    source.run(*(f"CREATE TABLE {table} (id INT PRIMARY KEY, v INT)" for table in tables))
    source.run(*(f"INSERT INTO {table} VALUES (1, 1), (3, 3)" for table in tables))
    source.round()
    source.round()
    source.run(*(f"ALTER TABLE {table} ADD COLUMN c {column}" for table, (column, _) in tables.items()))
    for _ in range(rounds):
        source.round()
    for table, (_, change) in tables.items():
        source.run(f"ALTER TABLE {table} {change}", f"INSERT INTO {table} VALUES (2, 2, 2.5)")
        source.run(f"UPDATE {table} SET v = 4 WHERE id = 1")
    for _ in range(3):
        source.round()
    source.assert_equal(*tables)
    assert not status_of(source.capture.pipeline).drain.quarantined_tables


def test_a_default_that_the_lakes_column_cannot_hold_reads_the_table_again(source):
    """Another column had its name. No row comes after the statement, and a table may have none at all."""
    columns = {
        "word": "VARCHAR(9) DEFAULT 'it''s'",
        "long": "DECIMAL(20, 2) DEFAULT 123456789012345.5",
        "day": "DATE DEFAULT '2024-01-02'",
        "bytes": "TINYINT NOT NULL",
    }
    tables = {f"{name}_{rows}": column for name, column in columns.items() for rows in ("none", "some")}
    types = {table: "VARBINARY(9)" if table.startswith("bytes") else "INT" for table in tables}
    source.run(*(f"CREATE TABLE {table} (id INT PRIMARY KEY, c {kind})" for table, kind in types.items()))
    source.run(*(f"INSERT INTO {table} VALUES (1, 1)" for table in tables if table.endswith("some")))
    source.round()
    source.round()
    source.run(*(f"ALTER TABLE {table} DROP COLUMN c, ADD COLUMN c {column}" for table, column in tables.items()))
    source.round()
    for kind in ("int", "binary"):
        assert any(f"read again: column c is {kind} in the lake" in line for line in source.lake.said)
    source.round()
    source.assert_equal(*tables)
    assert not status_of(source.capture.pipeline).drain.quarantined_tables


def test_a_list_that_was_left_as_it_is_at_a_drop_is_empty_after_the_next_create(source):
    """The rows before the DROP had another type, so the merge of the DROP changed nothing."""
    source.run("CREATE TABLE t (i INT, j INT)", "INSERT INTO t VALUES (1, 1), (1, 2)")
    source.round()
    source.round()
    source.run("DROP TABLE t", "CREATE TABLE t (i CHAR(9))", "INSERT INTO t VALUES ('a')", "DROP TABLE t")
    source.round()
    assert any("left as it is, because the source dropped the table" in line for line in source.lake.said)
    source.run("CREATE TABLE t (i INT)", "INSERT INTO t VALUES (7), (8)")
    source.round()
    entries = source.lake.rows(f"{source.capture.database}.t", "_offset", "_op", "i")
    emptied = max(at for at, op, _ in entries if op == "t")
    assert [(op, i) for at, op, i in entries if at > emptied] == [("c", 7), ("c", 8)]


def test_the_state_of_before_is_read_as_of_its_cut(source):
    """With its columns, its key and its mode, without Spark."""
    database, store = source.capture.database, source.capture.store
    before = last_cut(store, source.capture.config.source)
    for table, (create, insert) in AGAIN.items():
        source.run(f"DROP TABLE {table}", create, insert)
    source.round()
    now = last_cut(store, source.capture.config.source)
    with opened(source.lake) as reading:
        readers = {table: reading.table(f"{database}.{table}", cut=before) for table in AGAIN}
        assert {table: reader.mode for table, reader in readers.items()} == {
            "less2key": "append", "key2less": "mirror", "key2key": "mirror", "typechg": "mirror"
        }  # fmt: skip
        assert readers["key2less"].get(2)["v"] == 2
        assert readers["key2key"].get(1)["j"] == 1
        assert readers["typechg"].get(1)["v"] == 1
        assert sorted(row["v"] for row in readers["less2key"].rows().read_all().to_pylist()) == [1, 2]
        assert reading.table(f"{database}.key2key", cut=now).get(11)["k"] == 5
        assert reading.table(f"{database}.less2key", cut=now).get("c")["v"] == 3


class MachineGone(BaseException):
    """Ends the job, as a signal does: it is no fault of a table."""


def before(step):
    def ends(*_, **__):
        raise MachineGone(step.__name__)

    return ends


def after(step):
    def ends(*args, **named):
        step(*args, **named)
        raise MachineGone(step.__name__)

    return ends


DEATHS = {
    "before anything is staged": (lake_table, "redefined", before, False),
    "with the definition staged": (lake_table, "redefined", after, False),
    "after the data files": (RowFiles, "write", after, False),
    "before the commit": (lake_table, "publish_beginning", before, False),
    "after the commit": (lake_table, "publish_beginning", after, True),
    "before the cut": (run, "publish_cut", before, True),
    "after the cut": (run, "publish_cut", after, True),
}
"""Where a merge ends: a function of a module, whether before or after it, and whether a table is committed by then."""


def dies_merging(source, monkeypatch, death):
    """Merge what is drained, and die."""
    module, name, ends, _ = DEATHS[death]
    with monkeypatch.context() as patched:
        patched.setattr(module, name, ends(getattr(module, name)))
        with pytest.raises(MachineGone, match=name):
            source.merge()


@pytest.mark.parametrize("death", DEATHS)
def test_a_merge_that_dies_leaves_each_table_as_it_was_or_as_it_becomes(source, monkeypatch, death):
    """And the next one, a retry of the same plan, gives all of them their definition and rows once."""
    names = {table: f"{source.capture.database}.{table}" for table in AGAIN}
    states = {table: source.lake.state(name) for table, name in names.items()}
    for table, (create, insert) in AGAIN.items():
        source.run(f"DROP TABLE {table}", create, insert)
    source.drain()
    dies_merging(source, monkeypatch, death)
    changed = [table for table, name in names.items() if source.lake.state(name) != states[table]]
    assert bool(changed) == DEATHS[death][3]
    source.assert_equal(*changed)
    source.round(twice=True)
    source.assert_equal(*AGAIN, "other")
    source.run("INSERT INTO key2less VALUES (3, 3)", "UPDATE key2key SET k = 6", "DELETE FROM less2key WHERE k = 'a'")
    source.round()
    source.assert_equal(*AGAIN, "other")


def test_two_merges_beside_each_other_begin_a_table_again_once(source, monkeypatch):
    """The slower one finds the definition that it was about to give the table: nothing is quarantined, and no table is read again."""
    for table, (create, insert) in AGAIN.items():
        source.run(f"DROP TABLE {table}", create, insert)
    source.drain()
    merged, overtaken = TableMerge._merged, set()

    def other_merge_comes_first(self, target, state):
        try:
            return merged(self, target, state)
        except IncompatibleSchema:
            if self.lake not in overtaken:
                overtaken.add(self.lake)
                assert merge_table(self.job, table_session(self.session, self.job.config), self.lake)
            raise

    with monkeypatch.context() as patched:
        patched.setattr(TableMerge, "_merged", other_merge_comes_first)
        source.merge()
    assert len(overtaken) == len(AGAIN)
    assert not status_of(source.capture.pipeline).drain.quarantined_tables
    source.assert_equal(*AGAIN, "other")
    source.run("INSERT INTO key2less VALUES (3, 3)", "UPDATE key2key SET k = 6", "DELETE FROM less2key WHERE k = 'a'")
    source.round()
    source.assert_equal(*AGAIN, "other")


def test_partitions_follow_a_table_that_begins_again(any_server, database, tmp_path, lake):
    """Later merges delete rows as ever."""
    layouts = [LayoutRule(tables=f"{database}.*", partition_by=["c"]).model_dump(exclude_defaults=True)]
    source = Followed(any_server, database, tmp_path, lake, layouts=layouts)
    source.run("CREATE TABLE t (id INT PRIMARY KEY, c INT)", "INSERT INTO t VALUES (1, 1), (2, 2)")
    source.round()
    source.run("UPDATE t SET id = 3 WHERE id = 1")
    source.round()
    source.run(
        "DROP TABLE t",
        "CREATE TABLE t (id DATETIME, c INT, v VARCHAR(9) PRIMARY KEY)",
        "INSERT INTO t VALUES (NULL, 1, 'a'), ('2024-01-01', 2, 'b')",
    )
    source.round(twice=True)
    source.assert_equal("t")
    source.run("DELETE FROM t WHERE v = 'a'", "UPDATE t SET c = 3")
    source.round()
    source.assert_equal("t")


HISTORY = {"soft_delete": ("_is_deleted", False), "scd2": ("_is_current", True), "append": ("_op", "r")}
"""Of each mode that keeps history: a column, and its value in a row that a snapshot brought."""


def keeping(any_server, database, tmp_path, lake, mode):
    """Return a source with a table whose lake table keeps a deleted row, which the source no longer has."""
    modes = [ModeRule(tables=f"{database}.t", mode=mode).model_dump(exclude_defaults=True)]
    source = Followed(any_server, database, tmp_path, lake, modes=modes)
    source.run("CREATE TABLE t (k INT PRIMARY KEY, v INT)", "INSERT INTO t VALUES (1, 1), (2, 2)")
    source.round()
    source.run("DELETE FROM t WHERE k = 2")
    source.round()
    return source


def replaced(source, death=None, monkeypatch=None):
    """Let a person ask for a snapshot that replaces the lake table, and do three rounds; the first merge with it dies."""
    requests.resnapshot(source.capture.pipeline, [f"{source.capture.database}.t"], by="test", why="test", replaces=True)
    if death is not None:
        source.drain()
        source.drain()
        dies_merging(source, monkeypatch, death)
    for _ in range(3):
        source.round()
    assert not status_of(source.capture.pipeline).drain.quarantined_tables


def history(source, *columns):
    """Return rows of the lake table, without the one entry that says where a list of changes begins again."""
    rows = source.lake.rows(f"{source.capture.database}.t", *columns)
    starts = [row for row in rows if row[-1] == "t"]
    assert len(starts) == ("_op" in columns)
    return [row for row in rows if row not in starts]


@pytest.mark.parametrize("mode", HISTORY)
def test_a_lake_table_that_keeps_history_begins_again_when_a_person_says_so(any_server, database, tmp_path, lake, mode):
    """Until then it waits, and the error names the command; then it has the rows of the source, and keeps history from there."""
    source, name, (column, value) = keeping(any_server, database, tmp_path, lake, mode), f"{database}.t", HISTORY[mode]
    before = source.lake.rows(name, "k", "v")
    source.run(
        "DROP TABLE t", "CREATE TABLE t (k VARCHAR(9) PRIMARY KEY, v DATETIME)", "INSERT INTO t VALUES ('x', NULL)"
    )
    with pytest.raises(IncompatibleSchema) as refused:
        source.round()
    assert f"{name} --replace" in refused.value.hint
    assert source.lake.rows(name, "k", "v") == before
    replaced(source)
    assert source.lake.state(name).mode == mode
    assert history(source, "k", "v", column) == [("x", None, value)]
    source.run("INSERT INTO t VALUES ('y', NULL)", "DELETE FROM t WHERE k = 'x'")
    source.round(twice=True)
    found = history(source, "k", column)
    assert found == {
        "soft_delete": [("x", True), ("y", False)],
        "scd2": [("x", False), ("y", True)],
        "append": [("x", "d"), ("x", "r"), ("y", "c")],
    }[mode]  # fmt: skip


@pytest.mark.parametrize("death", [None, "before the commit", "after the commit"])
@pytest.mark.parametrize("mode", HISTORY)
def test_a_lake_table_of_the_same_definition_begins_again_as_well(
    any_server, database, tmp_path, lake, monkeypatch, mode, death
):
    """Its history is that of the source from the new snapshot on, once, wherever the first merge with the snapshot dies."""
    source, name, (column, value) = keeping(any_server, database, tmp_path, lake, mode), f"{database}.t", HISTORY[mode]
    assert len(source.lake.rows(name, "k")) > 1
    replaced(source, death, monkeypatch)
    assert history(source, "k", "v", column) == [(1, 1, value)]
    source.run("UPDATE t SET v = 5")
    source.round(twice=True)
    found = history(source, "v", column)
    assert found == {
        "soft_delete": [(5, False)], "scd2": [(1, False), (5, True)], "append": [(1, "r"), (5, "u")]
    }[mode]  # fmt: skip
