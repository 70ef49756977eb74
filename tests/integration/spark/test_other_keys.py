"""Tables whose primary key becomes another one."""

from __future__ import annotations

from spark_jobs.iceberg.loading import identity_of
from tests.harness.lake.ddl_source import Followed


def test_a_table_continues_with_its_new_primary_key(any_server, database, tmp_path, lake):
    """After a new snapshot, automatically: rows that the old key would have taken for one are not, and none is there twice."""
    source = Followed(any_server, database, tmp_path, lake)
    source.run("CREATE TABLE t (id INT PRIMARY KEY, a VARCHAR(20) NOT NULL, n INT)")
    source.run("INSERT INTO t VALUES (1, 'x', 1), (2, 'y', 2), (3, 'z', 3)")
    source.round()
    source.run(
        "UPDATE t SET n = 20 WHERE id = 2",
        "ALTER TABLE t DROP PRIMARY KEY, ADD COLUMN part INT NOT NULL DEFAULT 1, ADD PRIMARY KEY (a, part)",
        "INSERT INTO t VALUES (1, 'x', 9, 2), (1, 'w', 10, 1)",
        "UPDATE t SET id = 7 WHERE a = 'z'",
        "DELETE FROM t WHERE a = 'y'",
    )
    for _ in range(3):
        source.round(twice=True)
    source.assert_equal("t")
    assert source.lake.state(f"{database}.t").primary_key == ("a", "part")
    assert identity_of(source.lake.target(f"{database}.t")._java()) == ([], [])  # the former key may be null now
    source.run(
        "UPDATE t SET n = 11 WHERE a = 'x'", "INSERT INTO t VALUES (1, 'y', 2, 1)", "DELETE FROM t WHERE a = 'w'"
    )
    source.round(twice=True)
    source.assert_equal("t")
    assert source.lake.rows(f"{database}.t", "a", "part") == [("x", 1), ("x", 2), ("y", 1), ("z", 1)]
