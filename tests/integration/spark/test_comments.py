"""Comments of tables and columns at the source are comments of the lake's tables and columns."""

from __future__ import annotations

import pytest

from cdc_lib.lake.catalog import open_table
from tests.harness.lake.verify import Compared

ODD = 'it\'s ${x} \\ "5" ü'


class Commented(Compared):
    """A source whose tables have comments, and its lake."""

    def of(self, table):
        """Return the comment of a lake table, and those of its columns."""
        lake = self.lake
        with open_table(lake.config, f"{self.database}.{table}") as found:
            docs = {field.name: field.doc for field in found.schema().fields if field.doc}
            return found.properties.get("comment", ""), docs

    def carried(self):
        """Return how many commits changed comments."""
        return sum("comments of the source" in line for line in self.lake.said)

    def name(self, table):
        return self.lake.name(f"{self.database}.{table}")


@pytest.fixture
def source(any_server, database, tmp_path, lake):
    """Return what makes the source, with sections of its file."""
    return lambda **settings: Commented(any_server, database, tmp_path, lake, **settings)


def test_comments_follow_the_source_from_the_snapshot_on(source):
    """Statements that change nothing else are followed without a row; a comment that was removed is removed."""
    source, quoted = source(), ODD.replace("\\", "\\\\").replace("'", "''")
    source.execute(
        f"CREATE TABLE t (id INT PRIMARY KEY COMMENT 'the key', v INT COMMENT '{quoted}', w INT) COMMENT='{quoted}'"
    )
    source.execute("INSERT INTO t VALUES (1, 1, 1)")
    source.round()
    source.round()
    assert source.of("t") == (ODD, {"id": "the key", "v": ODD})

    assert source.carried() == 1
    source.execute("UPDATE t SET v = 2")
    source.round()
    source.execute("ALTER TABLE t ADD INDEX (v)")
    source.round()
    assert source.carried() == 1
    source.execute("UPDATE t SET v = 3")
    source.execute("ALTER TABLE t MODIFY w INT COMMENT 'new', MODIFY v INT, COMMENT=''")
    source.round()
    assert source.of("t") == ("", {"id": "the key", "w": "new"})
    assert source.carried() == 2
    source.execute("ALTER TABLE t MODIFY w INT COMMENT 'newer'")  # no row
    source.round()
    assert source.of("t") == ("", {"id": "the key", "w": "newer"})
    source.execute("ALTER TABLE t ADD COLUMN x INT COMMENT 'added' AFTER id")
    source.round()
    source.execute("INSERT INTO t VALUES (2, 5, 2, 2)")
    source.round()
    assert source.of("t") == ("", {"id": "the key", "w": "newer", "x": "added"})
    source.execute("ALTER TABLE t CHANGE w y INT COMMENT 'renamed'")
    source.round()
    source.execute("UPDATE t SET y = 9")
    source.round()
    assert source.of("t") == ("", {"id": "the key", "y": "renamed", "x": "added"})
    assert source.table("t").clean


def test_comments_of_the_lake_stay_where_the_source_has_none_or_is_not_asked(source, database):
    source = source(comments=[f"{database}.t", "x.other"], columns=[{"tables": f"{database}.t", "exclude": ["v"]}])
    for name in ("t", "other"):
        source.execute(f"CREATE TABLE {name} (id INT PRIMARY KEY, v INT COMMENT 'secret', w INT)")
        source.execute(f"INSERT INTO {name} VALUES (1, 1, 1)")
    source.round()
    source.round()
    assert [source.of(name) for name in ("t", "other")] == [("", {}), ("", {})]
    source.lake.spark.sql(f"ALTER TABLE {source.name('t')} ALTER COLUMN w COMMENT 'by hand'")
    source.execute("ALTER TABLE t COMMENT='orders'")
    source.execute("UPDATE t SET w = 2")
    source.round()
    assert source.of("t") == ("orders", {"w": "by hand"})


def test_tables_that_share_a_lake_table_do_not_change_its_comments_in_turns(source, database):
    source = source(routes=[{"tables": f"{database}.t*", "into": f"{database}.t"}])
    for number in (1, 2):
        source.execute(
            f"CREATE TABLE t{number} (id INT PRIMARY KEY, v INT COMMENT 'v of {number}') COMMENT='t{number}'"
        )
        source.execute(f"INSERT INTO t{number} VALUES ({number}, 1)")
    source.round()
    source.round()
    assert source.of("t") == ("t1", {"v": "v of 1"})
    source.execute("ALTER TABLE t2 COMMENT='again'")
    source.execute("UPDATE t2 SET v = 2")
    source.round()
    assert source.of("t") == ("t1", {"v": "v of 1"})
