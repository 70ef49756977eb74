"""The statements of gh-ost and pt-online-schema-change: the lake follows as if they were one ALTER."""

from __future__ import annotations

import pytest

from cdc_lib.status.overview import status_of
from tests.harness.binlog.capture import row_metadata
from tests.harness.lake.ddl_source import Followed


@pytest.fixture(params=["FULL", "MINIMAL"])
def source(request, any_server, database, tmp_path, lake):
    with row_metadata(any_server, request.param):
        source = Followed(any_server, database, tmp_path, lake)
        source.run("CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(20), old INT)")
        source.run("INSERT INTO t VALUES (1, 'a', 1), (2, 'b', 2), (3, 'c', 3)")
        source.round()
        yield source


def lake_tables(source):
    return {row[1] for row in source.lake.spark.sql(f"SHOW TABLES IN lake.`{source.capture.database}`").collect()}


def test_gh_ost(source):
    """It copies over several windows, with changes in between; its shadow tables are never in the lake."""
    snapshots = status_of(source.capture.pipeline).drain.snapshots
    source.run(
        "create /* gh-ost */ table `_t_ghc` (id bigint auto_increment, hint varchar(64), value varchar(4096), primary key (id))",
        "create /* gh-ost */ table `_t_gho` like `t`",
        "alter /* gh-ost */ table `_t_gho` MODIFY id BIGINT, ADD COLUMN w INT AFTER v, DROP COLUMN old, DEFAULT CHARSET=utf8mb4",
        "insert /* gh-ost */ into `_t_ghc` (hint, value) values ('state', 'GhostTableMigrated')",
        "UPDATE t SET v = 'meanwhile' WHERE id = 2",
    )
    source.round()
    source.run(
        "insert /* gh-ost `t` */ ignore into `_t_gho` (id, v) (select id, v from `t` lock in share mode)",
        "INSERT INTO t VALUES (4, 'd', 4)",
        "replace /* gh-ost */ into `_t_gho` (id, v) values (4, 'd')",
        "DELETE FROM t WHERE id = 3",
        "delete /* gh-ost */ from `_t_gho` where id = 3",
    )
    source.round()
    source.run(
        "create /* gh-ost */ table `_t_del` (id int auto_increment primary key) engine=InnoDB comment='ghost-cut-over-sentry'",
        "drop /* gh-ost */ table if exists `_t_del`",
        "rename /* gh-ost */ table `t` to `_t_del`, `_t_gho` to `t`",
        "UPDATE t SET w = 7 WHERE id = 1",
        "INSERT INTO t (id, v, w) VALUES (5000000000, 'wide', 8)",
    )
    source.round(twice=True)
    source.run("drop /* gh-ost */ table if exists `_t_ghc`", "drop /* gh-ost */ table if exists `_t_del`")
    source.run("INSERT INTO t (id, v, w) VALUES (6, 'f', 6)")
    source.round()
    source.assert_equal("t")
    assert lake_tables(source) == {"t"}
    assert status_of(source.capture.pipeline).drain.snapshots == snapshots


def test_pt_online_schema_change(source):
    """With its triggers; also a second time, with another underscore in the name."""
    for front in ("_", "__"):
        new, old = f"{front}t_new", f"{front}t_old"
        source.run(
            f"CREATE TABLE `{new}` LIKE `t`",
            f"ALTER TABLE `{new}` ADD COLUMN x{len(front)} VARCHAR(9)",
            f"CREATE TRIGGER `pt_osc_del` AFTER DELETE ON t FOR EACH ROW DELETE IGNORE FROM `{new}` WHERE `{new}`.id <=> OLD.id",
            f"CREATE TRIGGER `pt_osc_ins` AFTER INSERT ON t FOR EACH ROW REPLACE INTO `{new}` (id, v, old) VALUES (NEW.id, NEW.v, NEW.old)",
            f"INSERT LOW_PRIORITY IGNORE INTO `{new}` (id, v, old) SELECT id, v, old FROM t LOCK IN SHARE MODE",
            f"INSERT INTO t (id, v, old) VALUES ({40 + len(front)}, 'd', 4)",
            f"DELETE FROM t WHERE id = {len(front)}",
        )
        source.round()
        source.run(
            f"RENAME TABLE t TO `{old}`, `{new}` TO t",
            f"DROP TABLE IF EXISTS `{old}`",
            f"UPDATE t SET x{len(front)} = 'new' WHERE id = 3",
        )
        source.round()
        source.assert_equal("t")
    assert lake_tables(source) == {"t"}


@pytest.mark.parametrize(
    "change",
    ["RENAME COLUMN old TO other", "ADD COLUMN w VARCHAR(40) DEFAULT (CONCAT('x', 1 + 1))", "ADD COLUMN IF NOT EXISTS w INT DEFAULT 7"],
    ids=["rename", "expression", "if_not_exists"],
)  # fmt: skip
def test_values_that_the_statements_do_not_show_come_by_a_new_snapshot_without_a_person(source, change):
    """Its swap is merged later than it was drained; other tables are not late."""
    if "IF NOT EXISTS" in change and source.flavor == "mysql":
        pytest.skip("MySQL has no ADD COLUMN IF NOT EXISTS")
    source.run("CREATE TABLE other (id INT PRIMARY KEY)")
    source.round()
    source.run("CREATE TABLE _t_gho LIKE t", f"ALTER TABLE _t_gho {change}")
    source.round()
    names = "id, v" if "RENAME" in change else "id, v, old"
    source.run(
        f"INSERT IGNORE INTO _t_gho ({names}) SELECT {names} FROM t",
        "RENAME TABLE t TO _t_del, _t_gho TO t",
        "DROP TABLE _t_del",
        "INSERT INTO other VALUES (1)",
    )
    source.round()
    source.assert_equal("other")
    assert [line for line in source.lake.said if "read again: an online schema change" in line]
    source.round()
    source.run("INSERT INTO t (id, v) VALUES (9, 'after')", "UPDATE t SET v = 'new' WHERE id = 1")
    source.round()
    assert not status_of(source.capture.pipeline).drain.quarantined_tables
    columns = source.columns("t")
    assert source.lake_rows("t", *columns) == source.source_rows("t")


def test_without_the_setting_shadow_tables_are_ordinary_tables(any_server, database, tmp_path, lake):
    """If they are captured, the swap is a RENAME: the table gets a new snapshot."""
    tables = {"include": [f"{database}.*"], "online_schema_change": False}
    source = Followed(any_server, database, tmp_path, lake, tables=tables)
    source.run(
        "CREATE TABLE t (id INT PRIMARY KEY)",
        "CREATE TABLE _t_new (id INT PRIMARY KEY)",
        "INSERT INTO _t_new VALUES (1)",
    )
    source.round()
    source.run("INSERT INTO t VALUES (2)", "RENAME TABLE t TO _t_old, _t_new TO t")
    source.round()
    source.round()
    source.assert_equal("t", "_t_old")
    assert source.lake_rows("_t_new", "id") == [(1,)]
