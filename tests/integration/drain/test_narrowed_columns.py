"""Values that a server cuts to fit another type, without an event for their rows: the table is read again."""

from __future__ import annotations

import pytest

from cdc_lib.status.overview import status_of
from tests.harness.binlog.capture import Capture, row_metadata
from tests.harness.lake.rounds import drain_round


def altered(capture, sql_mode, alter):
    """Run an ALTER in a session of its own, in a window of its own; returns whether the table is read again."""
    before = len(status_of(capture.pipeline).drain.snapshots)
    with capture.server.connect(database=capture.database) as connection, connection.cursor() as cursor:
        cursor.execute(f"SET SESSION sql_mode = '{sql_mode}'")
        cursor.execute(alter)
    drain_round(capture)
    drain_round(capture)
    return len(status_of(capture.pipeline).drain.snapshots) > before


@pytest.mark.parametrize("metadata", ["FULL", "MINIMAL"])
def test_a_statement_without_strict_mode_cuts_values_also_where_no_row_came_before_it(
    any_server, database, tmp_path, metadata
):
    """Where the history knows the former type, wider ones are followed; so are all in strict mode."""
    with row_metadata(any_server, metadata):
        capture = Capture(any_server, database, tmp_path)
        capture.execute("CREATE TABLE t (id INT PRIMARY KEY, a INT UNSIGNED NOT NULL, v VARCHAR(20))")
        capture.execute("INSERT INTO t VALUES (1, 4294967295, 'abcdefghij')")
        drain_round(capture)
        assert not altered(capture, "STRICT_ALL_TABLES", "ALTER TABLE t MODIFY v VARCHAR(30)")
        assert altered(capture, "", "ALTER TABLE t MODIFY a MEDIUMINT NOT NULL")
        assert altered(capture, "", "ALTER TABLE t MODIFY v VARCHAR(5)")
        assert altered(capture, "", "ALTER TABLE t MODIFY v VARCHAR(40)") == (metadata == "FULL")
        assert altered(capture, "", "ALTER TABLE t CONVERT TO CHARACTER SET latin1")
        assert not altered(capture, "STRICT_ALL_TABLES", "ALTER TABLE t CONVERT TO CHARACTER SET utf8mb4")
        assert not altered(capture, "STRICT_ALL_TABLES", "ALTER TABLE t MODIFY v TEXT")
        assert altered(capture, "", "ALTER TABLE t MODIFY v TINYTEXT")
