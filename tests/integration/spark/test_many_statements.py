"""Many DDL statements on one table in one window, and during its snapshot: the lake equals the source after them."""

from __future__ import annotations

import pytest

from tests.harness.binlog.capture import first_chunk, row_metadata
from tests.harness.lake.ddl_source import Followed

MANY = (
    "ALTER TABLE t ADD COLUMN f INT NOT NULL DEFAULT 3 FIRST, ADD COLUMN g VARCHAR(9) DEFAULT 'g' AFTER id, ADD h INT AFTER g",
    "ALTER TABLE t MODIFY e ENUM('one','two','three') CHARACTER SET utf8mb4",
    "ALTER TABLE t MODIFY s SET('a','b','c','d') CHARACTER SET utf8mb4",
    "ALTER TABLE t MODIFY e ENUM('three','two','one') CHARACTER SET utf8mb4 FIRST",
    "ALTER TABLE t MODIFY v VARCHAR(40) CHARACTER SET latin1",
    "ALTER TABLE t CONVERT TO CHARACTER SET utf8mb4",
    "ALTER TABLE t DROP COLUMN h, ADD COLUMN k BIGINT DEFAULT 9 AFTER s",
    "ALTER TABLE t MODIFY n BIGINT, ALTER COLUMN g SET DEFAULT 'x'",
    "ALTER TABLE t ADD INDEX by_v (v), COMMENT 'ten'",
    "CREATE TABLE copy LIKE t",
    "ALTER TABLE copy DROP COLUMN k",
    "INSERT INTO copy (id, v, e, s, n, f, g) SELECT id, v, e, s, n, f, g FROM t",
)
CREATE = (
    "CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(20) CHARACTER SET cp1250, n INT, "
    "e ENUM('one','two') CHARACTER SET utf8mb4, s SET('a','b') CHARACTER SET utf8mb4)"
)


@pytest.fixture(params=["FULL", "MINIMAL"])
def source(request, any_server, database, tmp_path, lake):
    with row_metadata(any_server, request.param):
        source = Followed(any_server, database, tmp_path, lake)
        source.run(CREATE, *(f"INSERT INTO t VALUES ({n}, 'ż{n}', {n}, 'two', 'a,b')" for n in range(1, 6)))
        yield source


def test_twelve_statements_in_a_window_and_one_during_the_snapshot(source):
    """Rows between them are decoded with the definition of their position."""
    pipeline = source.capture.pipeline
    units = pipeline.plan(by="test")
    (task,) = [unit for unit in units if getattr(unit, "table", "") == "t"]
    first_chunk(source.capture.reader, task, source.capture.facts().identity)
    source.run("ALTER TABLE t ADD COLUMN mid INT DEFAULT 4 AFTER v", "UPDATE t SET mid = 5 WHERE id IN (2, 4)")
    for unit in units:
        pipeline.drain(unit)
    pipeline.ack_drain(by="test")
    source.round()
    source.assert_equal("t")
    for number, statement in enumerate(MANY):
        new = f"INSERT INTO t (id, v, n, e, s) VALUES ({10 + number}, 'é', 1, 'one', 'b')"
        source.run(statement, new, f"UPDATE t SET n = n + 1, v = 'é{number}' WHERE id % 3 = {number % 3}")
    source.run("DELETE FROM t WHERE id = 3", "CREATE TABLE made (PRIMARY KEY (id)) AS SELECT id, e, s FROM t")
    source.round(twice=True)
    source.round()
    source.assert_equal("t", "copy", "made")
