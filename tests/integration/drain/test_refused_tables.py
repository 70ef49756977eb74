"""With ``on_error: quarantine`` a table on which the source file cannot be followed is quarantined alone."""

from __future__ import annotations

import pytest
from pymysql.err import OperationalError

from tests.harness.binlog.capture import Capture
from tests.harness.shop.quarantine import cursor, rounds


def quarantined(capture):
    return {record.table.pair[1]: record.fault.reason for record in cursor(capture).quarantined_tables}


@pytest.mark.parametrize("start", ["latest", "snapshot"])
def test_a_new_table_with_a_reserved_column_is_quarantined_alone(any_server, database, tmp_path, start):
    """Whether its rows come by the binlog or by its snapshot."""
    capture = Capture(any_server, database, tmp_path, on_error="quarantine", start=start)
    capture.execute("CREATE TABLE other (id INT PRIMARY KEY)")
    capture.execute("INSERT INTO other VALUES (1)")
    rounds(capture)
    capture.execute("CREATE TABLE v (id INT PRIMARY KEY, `_op` VARCHAR(9))")
    capture.execute("INSERT INTO v VALUES (1, 'x')")
    capture.execute("INSERT INTO other VALUES (2)")
    before = cursor(capture).position
    rounds(capture, 2)
    assert before < cursor(capture).position
    assert quarantined(capture) == {"v": "column _op has a name that is reserved in the lake"}


PAIRS = [
    ("\u03c3", "\u03c2"),
    ("\u017f", "s"),
    ("\u212a", "k"),
    ("\u0130", "i"),
    ("\u0131", "i"),
    ("\u1e9e", "\u00df"),
    ("\u03b8", "\u03d1"),
]


@pytest.mark.parametrize("start", ["latest", "snapshot"])
def test_columns_that_only_spark_takes_for_one_quarantine_their_table_alone(any_server, database, tmp_path, start):
    """Of every pair that the server holds apart, before a merge sees the table."""
    capture = Capture(any_server, database, tmp_path, on_error="quarantine", start=start)
    capture.execute("CREATE TABLE other (id INT PRIMARY KEY)")
    rounds(capture)
    made = {}
    for number, (one, two) in enumerate(PAIRS):
        try:
            capture.execute(f"CREATE TABLE t{number} (id INT PRIMARY KEY, `{one}` INT, `{two}` INT)")
        except OperationalError:
            continue
        capture.execute(f"INSERT INTO t{number} VALUES (1, 2, 3)")
        made[f"t{number}"] = f"columns {one} and {two} have names that Spark takes for one"
    capture.execute("INSERT INTO other VALUES (2)")
    before = cursor(capture).position
    rounds(capture, 2)
    assert before < cursor(capture).position
    assert made
    assert quarantined(capture) == made


def test_a_masked_column_that_is_renamed_quarantines_its_table_alone(any_server, database, tmp_path, monkeypatch):
    """No value of it is stored without its mask."""
    masks = [{"tables": f"{database}.v", "columns": ["mail"], "mask": "redact"}]
    capture = Capture(any_server, database, tmp_path, on_error="quarantine", start="latest", masks=masks)
    capture.execute("CREATE TABLE v (id INT PRIMARY KEY, mail VARCHAR(9))")
    capture.execute("CREATE TABLE other (id INT PRIMARY KEY)")
    rounds(capture)
    capture.execute("ALTER TABLE v CHANGE mail email VARCHAR(9)")
    capture.execute("INSERT INTO v VALUES (1, 'x')")
    capture.execute("INSERT INTO other VALUES (2)")
    before = cursor(capture).position
    rounds(capture, 2)
    assert before < cursor(capture).position
    assert set(quarantined(capture)) == {"v"}


def test_a_refused_table_that_gets_another_name_is_quarantined_alone(any_server, database, tmp_path):
    """The plan starts a snapshot under the new name, which the source file cannot be followed on either."""
    capture = Capture(any_server, database, tmp_path, on_error="quarantine")
    capture.execute("CREATE TABLE other (id INT PRIMARY KEY)")
    capture.execute("CREATE TABLE v (id INT PRIMARY KEY, `_op` VARCHAR(9))")
    rounds(capture)
    capture.execute("RENAME TABLE v TO w")
    capture.execute("INSERT INTO other VALUES (2)")
    before = cursor(capture).position
    rounds(capture, 2)
    assert before < cursor(capture).position
    assert quarantined(capture)["w"] == "column _op has a name that is reserved in the lake"
