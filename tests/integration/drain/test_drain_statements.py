"""Statements in the binlog of real servers: what touches no captured table never stops anything, what may touch one does."""

from __future__ import annotations

import pytest

from cdc_lib.errors import UnknownEvent
from tests.harness.binlog.capture import Capture
from tests.harness.servers import MariaDbServer
from tests.harness.servers.features import has

ANY = """
CREATE TABLE other (id INT PRIMARY KEY AUTO_INCREMENT, v VARCHAR(50), KEY (v)) COMMENT 'TRUNCATE TABLE a; DROP TABLE a'
CREATE TABLE gone LIKE other
INSERT INTO other (v) VALUES ('DROP TABLE a'), ('x')
ALTER TABLE other ADD COLUMN w INT, DROP COLUMN v
ALTER TABLE other RENAME COLUMN w TO b
ALTER TABLE other RENAME TO a_renamed, ADD COLUMN `a` TEXT
RENAME TABLE a_renamed TO other
TRUNCATE TABLE other
DROP TABLE IF EXISTS gone, missing
CREATE INDEX a ON other (id)
DROP INDEX a ON other
CREATE TABLE parted (id INT PRIMARY KEY) PARTITION BY RANGE (id) (PARTITION a VALUES LESS THAN (5), PARTITION z VALUES LESS THAN MAXVALUE)
ALTER TABLE parted TRUNCATE PARTITION a
ALTER TABLE parted DROP PARTITION a
ALTER TABLE parted ENGINE = InnoDB
OPTIMIZE TABLE other
ANALYZE TABLE other
CREATE VIEW a_view AS SELECT * FROM {captured}.a
CREATE OR REPLACE VIEW a_view AS SELECT id AS truncated FROM {captured}.a
DROP VIEW a_view
CREATE FUNCTION f(x INT) RETURNS INT DETERMINISTIC NO SQL COMMENT 'DROP TABLE a' RETURN x + 1
CREATE PROCEDURE p() COMMENT 'TRUNCATE' BEGIN TRUNCATE TABLE {captured}.a; DELETE FROM {captured}.a; DROP TABLE {captured}.a; END
CREATE DEFINER = CURRENT_USER PROCEDURE `drop table a`() SELECT 'TRUNCATE TABLE a'
ALTER PROCEDURE p SQL SECURITY INVOKER
DROP PROCEDURE p
DROP FUNCTION f
DROP PROCEDURE `drop table a`
CREATE TRIGGER tr BEFORE INSERT ON other FOR EACH ROW SET @x = 'DELETE FROM a'
DROP TRIGGER tr
CREATE EVENT ev ON SCHEDULE EVERY 1 YEAR DISABLE DO TRUNCATE TABLE {captured}.a
ALTER EVENT ev COMMENT 'DROP TABLE a'
DROP EVENT ev
CREATE USER 'truncate'@'%' IDENTIFIED BY 'DROP-table-a-1'
ALTER USER 'truncate'@'%' IDENTIFIED BY 'TRUNCATE-table-a-2'
GRANT SELECT, INSERT, DELETE, DROP ON {captured}.a TO 'truncate'@'%'
GRANT ALL ON {captured}.* TO 'truncate'@'%' WITH GRANT OPTION
REVOKE DROP ON {captured}.a FROM 'truncate'@'%'
RENAME USER 'truncate'@'%' TO 'delete'@'%'
DROP USER 'delete'@'%'
CREATE ROLE 'a'
GRANT SELECT ON {captured}.* TO 'a'
DROP ROLE 'a'
FLUSH TABLES
FLUSH PRIVILEGES
CREATE DATABASE {captured}_2 CHARACTER SET latin1
ALTER DATABASE {captured}_2 CHARACTER SET utf8mb4
DROP DATABASE {captured}_2
CREATE TEMPORARY TABLE a (id INT)
INSERT INTO a VALUES (1)
TRUNCATE TABLE a
DROP TEMPORARY TABLE a
CREATE TABLE filled AS SELECT 1 AS id
CREATE TABLE filled_2 SELECT * FROM {captured}.a
LOCK TABLES other WRITE
UNLOCK TABLES
/* TRUNCATE TABLE a */ INSERT INTO other (id) VALUES (77) -- DROP TABLE a
# DROP TABLE a
"""
MYSQL = """
ALTER TABLE other ADD COLUMN inst INT, ALGORITHM=INSTANT
ALTER TABLE other ALTER COLUMN inst SET DEFAULT 4
CREATE SPATIAL REFERENCE SYSTEM 990001 NAME 'DROP TABLE a' DEFINITION 'GEOGCS["x",DATUM["d",SPHEROID["s",6378137,298.25]],PRIMEM["p",0],UNIT["u",0.0174532925199433],AXIS["Lat",NORTH],AXIS["Lon",EAST]]'
DROP SPATIAL REFERENCE SYSTEM 990001
CREATE UNDO TABLESPACE un1 ADD DATAFILE 'un1.ibu'
ALTER UNDO TABLESPACE un1 SET INACTIVE
CREATE TABLESPACE ts1 ADD DATAFILE 'ts1.ibd'
DROP TABLESPACE ts1
CREATE RESOURCE GROUP rg TYPE = USER
DROP RESOURCE GROUP rg
ALTER USER CURRENT_USER() COMMENT 'TRUNCATE TABLE a'
SET PASSWORD FOR CURRENT_USER() = ''
ANALYZE TABLE other UPDATE HISTOGRAM ON id WITH 8 BUCKETS
CREATE SERVER s FOREIGN DATA WRAPPER mysql OPTIONS (USER 'x', HOST 'DROP TABLE a', DATABASE 'y')
DROP SERVER s
"""
MARIADB = """
CREATE OR REPLACE TABLE other (id INT PRIMARY KEY, v INT) WITH SYSTEM VERSIONING
ALTER TABLE other DROP SYSTEM VERSIONING
CREATE OR REPLACE VIEW v AS SELECT 1
CREATE OR REPLACE PROCEDURE p() TRUNCATE TABLE {captured}.a
CREATE OR REPLACE FUNCTION f() RETURNS INT NO SQL RETURN 1
CREATE SEQUENCE a_seq START WITH 5
ALTER SEQUENCE a_seq RESTART 9
DROP SEQUENCE a_seq
DROP PROCEDURE IF EXISTS p
DROP TABLE IF EXISTS other WAIT 3
ALTER TABLE IF EXISTS missing ADD COLUMN IF NOT EXISTS x INT
CREATE SERVER s FOREIGN DATA WRAPPER mysql OPTIONS (USER 'x', HOST 'DROP TABLE a', DATABASE 'y')
DROP SERVER s
"""


@pytest.fixture
def capture(any_server, database, tmp_path):
    """One captured table, and a second database that nobody captures."""
    capture = Capture(any_server, database, tmp_path)
    capture.execute("CREATE TABLE a (id INT PRIMARY KEY, v VARCHAR(20))")
    any_server.execute(f"CREATE DATABASE {database}_not")
    yield capture
    any_server.execute(f"DROP DATABASE {database}_not")


def lines(text):
    return [line for line in text.splitlines() if line]


def test_statements_that_touch_no_captured_table_stop_nothing(capture):
    """Whatever words stand in their names, comments and bodies; the rows between them arrive."""
    start = capture.head()
    own = MYSQL if capture.server.flavor == "mysql" else MARIADB
    if not has(capture.server, "comments of users"):
        own = own.replace("ALTER USER CURRENT_USER() COMMENT 'TRUNCATE TABLE a'\n", "")
    both = lines(ANY)
    if not has(capture.server, "CREATE TABLE ... SELECT with GTIDs"):
        both = [line for line in both if not line.startswith("CREATE TABLE filled")]
    count = 0
    with capture.server.connect(database=f"{capture.database}_not") as connection, connection.cursor() as cursor:
        for statement in both + lines(own):
            cursor.execute(statement.format(captured=capture.database))
            cursor.fetchall()
            count += 1
            capture.execute(f"INSERT INTO a VALUES ({count}, 'between')")
    manifest = capture.drain(capture.window_from(start))
    assert capture.ops(manifest, "a") == [("c", number) for number in range(1, count + 1)]
    assert not [ddl for ddl in manifest.ddl if "other" in ddl.statement]


PASSING = [
    "INSERT INTO other VALUES (5, 'x')",
    "REPLACE INTO {other}.other SELECT id, v FROM {captured}.a",
    "INSERT LOW_PRIORITY IGNORE INTO other (id, v) VALUES (1, NOW()), (2, UUID()) ON DUPLICATE KEY UPDATE v = RAND()",
    "UPDATE other SET v = CONCAT('x', id) WHERE id IN (1, 2)",
    "DELETE FROM other WHERE id > 0 ORDER BY id LIMIT 1",
    "LOAD DATA INFILE '{file}' INTO TABLE other FIELDS TERMINATED BY ','",
]
STOPPING = [
    "INSERT INTO a VALUES (50, 's')",
    "INSERT INTO {captured}.a VALUES (50, 's')",
    "UPDATE {other}.other o JOIN {captured}.a ON a.id = o.id SET a.v = 'joined'",
    "DELETE {captured}.a FROM {captured}.a JOIN {other}.other o ON a.id = o.id",
    "CALL {other}.writes()",
    "INSERT INTO {other}.other VALUES ({other}.writes_f(), 'x')",
    "LOAD DATA INFILE '{file}' INTO TABLE {captured}.a FIELDS TERMINATED BY ','",
]


@pytest.fixture
def statements(capture, tmp_path):
    """Run statements in a session that writes statements, in a database of choice."""
    file = tmp_path / "rows.csv"
    file.write_text("70,from a file\n71,another\n")
    tmp_path.chmod(0o755)
    other = f"{capture.database}_not"
    captured = capture.database
    body = f"INSERT INTO {captured}.a VALUES (61, 'f');"
    for one in (
        f"CREATE TABLE {other}.other (id INT PRIMARY KEY, v VARCHAR(50))",
        f"INSERT INTO {other}.other VALUES (1, 'old')",
        f"INSERT INTO {captured}.a VALUES (1, 'old')",
        f"CREATE PROCEDURE {other}.writes() INSERT INTO {captured}.a VALUES (60, 'called')",
        f"CREATE FUNCTION {other}.writes_f() RETURNS INT MODIFIES SQL DATA DETERMINISTIC BEGIN {body} RETURN 3; END",
    ):
        if capture.server.flavor == "mysql":
            capture.server.execute("SET GLOBAL log_bin_trust_function_creators = ON")
        capture.execute(one)

    def run(database, *texts):
        with capture.server.connect(database=database) as connection, connection.cursor() as cursor:
            cursor.execute("SET SESSION binlog_format = 'STATEMENT'")
            for text in texts:
                cursor.execute(text.format(captured=captured, other=other, file=file))

    yield run
    capture.server.execute("DROP TABLE IF EXISTS " + f"{other}.other")


def test_statements_that_write_other_tables_pass(capture, statements):
    """As heartbeats and checksum tools do all day."""
    start = capture.head()
    statements(f"{capture.database}_not", *PASSING)
    capture.execute("INSERT INTO a VALUES (2, 'row')")
    window = capture.window_from(start)
    shown = capture.execute(f"SHOW BINLOG EVENTS IN '{start.file}' FROM {start.offset}")
    assert {"Execute_load_query"} <= {row[2] for row in shown}
    assert sum("other" in row[5] and row[2] == "Query" for row in shown) >= 5
    manifest = capture.drain(window)
    assert capture.ops(manifest, "a") == [("c", 2)]


@pytest.mark.parametrize("statement", STOPPING)
def test_statements_that_may_write_a_captured_table_stop_the_window(capture, statements, statement):
    """The error says where, and what to do."""
    start = capture.head()
    statements(capture.database, statement)
    with pytest.raises(UnknownEvent) as caught:
        capture.drain(capture.window_from(start))
    assert "without writing them to the binlog" in str(caught.value)
    assert "binlog_format=ROW" in caught.value.hint
    assert caught.value.context["offset"] > start.offset


def test_a_captured_table_is_known_in_any_case_where_the_server_compares_names_so(tmp_path):
    """With lower_case_table_names=1."""
    with MariaDbServer(settings={"lower-case-table-names": 1}) as server:
        server.execute("CREATE DATABASE shop")
        capture = Capture(server, "shop", tmp_path)
        capture.execute("CREATE TABLE t (id INT PRIMARY KEY)")
        start = capture.head()
        with server.connect() as session, session.cursor() as cursor:
            cursor.execute("SET SESSION binlog_format = 'STATEMENT'")
            cursor.execute("INSERT INTO SHOP.T VALUES (1)")
        with pytest.raises(UnknownEvent, match="without writing them to the binlog") as caught:
            capture.drain(capture.window_from(start))
        assert caught.value.context["table"] == "shop.t"
