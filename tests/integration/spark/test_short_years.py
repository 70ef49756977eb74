"""YEAR(2) of MariaDB: SELECT shows two digits and the binlog has four; the lake always has four."""

from __future__ import annotations

import pytest

from cdc_lib.errors import ConfigError
from tests.harness.binlog.capture import Capture, row_metadata
from tests.harness.lake.verify import Compared
from tests.harness.shop.quarantine import cursor, rounds


@pytest.mark.parametrize("metadata", ["FULL", "MINIMAL"])
def test_snapshot_and_binlog_give_the_same_year(mariadb_server, mariadb_database, tmp_path, lake, metadata):
    """Of both centuries, zero and NULL; verify finds no drift."""
    with row_metadata(mariadb_server, metadata):
        source = Compared(mariadb_server, mariadb_database, tmp_path, lake)
        source.execute("CREATE TABLE a (id INT PRIMARY KEY, y YEAR(2), z YEAR)")
        rows = (
            "99, 1999",
            "70, 1970",
            "69, 2069",
            "0, 2000",
            "'00', 2000",
            "NULL, 0",
            "1901, 1901",
            "2155, 2155",
            "1900, 0",
        )
        for way in (0, 10):
            for number, row in enumerate(rows):
                source.execute(f"INSERT IGNORE INTO a VALUES ({way + number}, {row})")
            source.round()
        years = {key: (y, z) for key, y, z in source.lake.rows(f"{source.database}.a", "id", "y", "z")}
        expected = [(1999, 1999), (1970, 1970), (2069, 2069), (2000, 2000), (2000, 2000), (None, 0)]
        expected += [(1901, 1901), (2155, 2155), (0, 0)]
        assert [years[n] for n in range(9)] == [years[10 + n] for n in range(9)] == expected
        report = source.table("a")
        assert (report.skipped, report.missing, report.extra, report.different) == ("", 0, 0, 0)


def test_a_key_with_short_years_is_refused_with_what_to_do(mariadb_server, mariadb_database, tmp_path):
    """SELECT shows 1901 and 2001 as one, and finds neither in the order of the key."""
    stopped = Capture(mariadb_server, mariadb_database, tmp_path / "stop")
    quarantining = Capture(mariadb_server, mariadb_database, tmp_path / "quarantine", on_error="quarantine")
    quarantining.execute("CREATE TABLE a (y YEAR(2) NOT NULL, PRIMARY KEY (y))")
    quarantining.execute("CREATE TABLE b (id INT PRIMARY KEY)")
    quarantining.execute("INSERT INTO a VALUES (1901), (2001)")
    with pytest.raises(ConfigError, match=r"column y .* YEAR\(2\).* MODIFY y YEAR\(4\) NOT NULL"):
        rounds(stopped)
    rounds(quarantining, 2)
    assert [one.table for one in cursor(quarantining).quarantined_tables] == [f"{mariadb_database}.a"]
    quarantining.execute("ALTER TABLE a MODIFY y YEAR(4) NOT NULL")
    rounds(stopped)
    assert {task.table for task in cursor(stopped).snapshots if task.complete} == {"a", "b"}
