"""Tables that become others under their name: another key, none, a first one, other types. The lake follows, without a person."""

from __future__ import annotations

import pytest

from cdc_lib.config.layouts import LayoutRule
from cdc_lib.config.modes import ModeRule
from cdc_lib.errors import IncompatibleSchema
from cdc_lib.model.table_name import TableName
from cdc_lib.store.cuts import last_cut
from spark_jobs.iceberg import lake_table
from tests.harness.ddl_source import Followed
from tests.harness.reading import opened

pytestmark = pytest.mark.turns(1)

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
    assert not source.capture.pipeline.status().drain.quarantined_tables
    assert TableName(source.capture.database, "big") in {
        one.table for one in source.capture.pipeline.status().last_cut.tables
    }


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


def test_a_merge_that_ends_before_its_commit_leaves_the_table_as_it_was(source, monkeypatch):
    """And the next one gives it the definition and the rows."""
    name = f"{source.capture.database}.key2key"
    create, insert = AGAIN["key2key"]
    before, rows = source.lake.state(name), source.lake.rows(name, "k", "j")
    source.run("DROP TABLE key2key", create, insert)
    source.drain()

    class MachineGone(BaseException):
        """Ends the job, as a signal does: it is no fault of a table."""

    def ends(*_):
        raise MachineGone

    with monkeypatch.context() as patched:
        patched.setattr(lake_table, "publish_beginning", ends)
        with pytest.raises(MachineGone):
            source.merge()
    assert source.lake.state(name) == before
    assert source.lake.rows(name, "k", "j") == rows
    source.round(twice=True)
    source.assert_equal("key2key", "other")


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


@pytest.mark.parametrize("mode", ["soft_delete", "scd2", "append"])
def test_a_lake_table_that_keeps_history_begins_again_when_a_person_says_so(any_server, database, tmp_path, lake, mode):
    """Until then it waits, and the error names the command."""
    modes = [ModeRule(tables=f"{database}.t", mode=mode).model_dump(exclude_defaults=True)]
    source = Followed(any_server, database, tmp_path, lake, modes=modes)
    source.run("CREATE TABLE t (k INT PRIMARY KEY, v INT)", "INSERT INTO t VALUES (1, 1), (2, 2)")
    source.round()
    source.run("DELETE FROM t WHERE k = 2")
    source.round()
    before = source.lake.rows(f"{database}.t", "k", "v")
    source.run(
        "DROP TABLE t", "CREATE TABLE t (k VARCHAR(9) PRIMARY KEY, v DATETIME)", "INSERT INTO t VALUES ('x', NULL)"
    )
    with pytest.raises(IncompatibleSchema) as refused:
        source.round()
    assert f"{database}.t --replace" in refused.value.hint
    assert source.lake.rows(f"{database}.t", "k", "v") == before
    source.capture.pipeline.resnapshot([f"{database}.t"], by="test", why="test", replaces=True)
    for _ in range(3):
        source.round()
    assert source.lake.rows(f"{database}.t", "k", "v") == [("x", None)] or mode == "append"
    assert source.lake.state(f"{database}.t").mode == mode
    source.run("UPDATE t SET v = '2024-01-01'")
    source.round(twice=True)
    assert not source.capture.pipeline.status().drain.quarantined_tables
