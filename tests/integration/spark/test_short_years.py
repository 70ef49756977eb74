"""YEAR(2) of MariaDB: SELECT shows two digits and the binlog has four; the lake always has four."""

from __future__ import annotations

import pytest

from tests.harness.binlog.capture import row_metadata
from tests.harness.lake.verify import Compared


@pytest.mark.parametrize("metadata", ["FULL", "MINIMAL"])
def test_snapshot_and_binlog_give_the_same_year(mariadb_server, mariadb_database, tmp_path, lake, metadata):
    """Of both centuries, zero and NULL; verify finds no drift."""
    with row_metadata(mariadb_server, metadata):
        source = Compared(mariadb_server, mariadb_database, tmp_path, lake)
        source.execute("CREATE TABLE a (id INT PRIMARY KEY, y YEAR(2), z YEAR)")
        rows = ("99, 1999", "70, 1970", "69, 2069", "0, 2000", "'00', 2000", "NULL, 0")
        for way in (0, 10):
            for number, row in enumerate(rows):
                source.execute(f"INSERT INTO a VALUES ({way + number}, {row})")
            source.round()
        years = {key: (y, z) for key, y, z in source.lake.rows(f"{source.database}.a", "id", "y", "z")}
        expected = [(1999, 1999), (1970, 1970), (2069, 2069), (2000, 2000), (2000, 2000), (None, 0)]
        assert [years[n] for n in range(6)] == [years[10 + n] for n in range(6)] == expected
        report = source.table("a")
        assert (report.skipped, report.missing, report.extra, report.different) == ("", 0, 0, 0)
