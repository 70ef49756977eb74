"""Which table a statement writes; without a sure answer there is none."""

from __future__ import annotations

import pytest

from cdc_lib.binlog.ddl.dml import written_tables

SURE = {
    "INSERT INTO t VALUES (1)": ("db", "t"),
    "insert t values(1)": ("db", "t"),
    "INSERT INTO t (a, b) VALUES (1, NOW())": ("db", "t"),
    "INSERT INTO `x`.`a b` (a) SELECT id FROM db.captured": ("x", "a b"),
    "INSERT LOW_PRIORITY IGNORE INTO x.t SET a = 1": ("x", "t"),
    "INSERT DELAYED INTO t VALUES (1)": ("db", "t"),
    "INSERT INTO t PARTITION (p0) VALUES (1) ON DUPLICATE KEY UPDATE a = VALUES(a)": ("db", "t"),
    "/* app */ REPLACE INTO t VALUES (1)": ("db", "t"),
    "INSERT INTO mysql.rds_heartbeat2(id, value) values (1,17) ON DUPLICATE KEY UPDATE value = 17": (
        "mysql",
        "rds_heartbeat2",
    ),
    "REPLACE INTO `percona`.`checksums` (db, tbl, cnt) SELECT 'a', 'b', COUNT(*) AS cnt, COALESCE(LOWER(CONV(BIT_XOR("
    "CAST(CRC32(CONCAT_WS('#', `id`, ISNULL(`v`))) AS UNSIGNED)), 10, 16)), 0) AS crc FROM `shop`.`a` FORCE INDEX("
    "`PRIMARY`) WHERE ((`id` >= '1')) AND ((`id` <= '9')) /*checksum chunk*/": ("percona", "checksums"),
    "UPDATE t SET a = 1 WHERE b IN (1, 2)": ("db", "t"),
    "UPDATE LOW_PRIORITY t SET a = 1": ("db", "t"),
    "UPDATE x.t AS y SET y.a = 1 LIMIT 3": ("x", "t"),
    "UPDATE x.t y SET y.a = (SELECT MAX(id) FROM db.captured)": ("x", "t"),
    "UPDATE .u SET u.a = 1": ("db", "u"),
    "INSERT INTO . u VALUES (1)": ("db", "u"),
    "UPDATE db.set SET a = 1": ("db", "set"),
    "DELETE FROM t": ("db", "t"),
    "DELETE QUICK FROM x.t WHERE a < 1 ORDER BY b LIMIT 3;": ("x", "t"),
    "LOAD DATA LOCAL INFILE 'into table u' INTO TABLE x.t FIELDS TERMINATED BY ',' (a, b)": ("x", "t"),
    "LOAD XML INFILE 'f' INTO TABLE t": ("db", "t"),
}


@pytest.mark.parametrize("statement", SURE)
def test_the_one_table_that_a_plain_statement_writes_is_named(statement):
    """What it reads does not matter."""
    assert written_tables(statement, "db") == (SURE[statement],)


@pytest.mark.parametrize(
    "statement",
    [
        "CALL p()",
        "SELECT f(1)",
        "DO f(1)",
        "WITH x AS (SELECT 7 AS id) DELETE FROM a WHERE id IN (SELECT id FROM x)",
        "INSERT INTO t VALUES (f(1))",
        "INSERT INTO t VALUES (`f`(1))",
        "INSERT INTO t VALUES (f (1))",
        "INSERT INTO t VALUES (db.now(1))",
        "INSERT INTO t SELECT * FROM u WHERE g(u.id)",
        "UPDATE t SET a = f(a)",
        "UPDATE t, u SET u.a = 1",
        "UPDATE t JOIN u USING (id) SET u.a = 1",
        "UPDATE t x JOIN u ON u.id = x.id SET u.a = 1",
        "UPDATE t x, u SET u.a = 1",
        "UPDATE (SELECT 1) x, u SET u.a = 1",
        "UPDATE t FORCE INDEX (x) JOIN u ON u.id = t.id SET u.a = 1",
        "UPDATE t PARTITION (p0) JOIN u ON u.id = t.id SET u.a = 1",
        "UPDATE t NATURAL JOIN u SET u.a = 1",
        "UPDATE ..u SET u.a = 1",
        "INSERT INTO a.b.u VALUES (1)",
        "DELETE u FROM t JOIN u ON u.id = t.id",
        "DELETE t, u FROM t JOIN u ON u.id = t.id",
        "DELETE FROM t, u USING t JOIN u ON u.id = t.id",
        "DELETE FROM u USING t JOIN u ON u.id = t.id",
        "INSERT INTO t VALUES (1); DELETE FROM u",
        "LOAD DATA INFILE 'f'",
        "LOAD DATA INFILE 'f' INTO TABLE t SET a = f(1)",
        "UPDATE",
        "INSERT INTO",
        "DELETE FROM",
        "",
        "gibberish (",
    ],
)
def test_what_is_out_of_the_ordinary_has_no_answer(statement):
    """It may write any table."""
    assert written_tables(statement, "db") is None
