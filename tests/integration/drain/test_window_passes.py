"""How often a window is read when tables of it are left out, and over how many connections: not once for each table."""

from __future__ import annotations

from collections import Counter

import pytest

from cdc_lib.drain import origin
from cdc_lib.schema_history import versions
from cdc_lib.source import Source
from tests.harness.binlog.capture import row_metadata
from tests.harness.shop.quarantine import BAD_TEXT, LOSSY, as_statement, capturing, planned

TABLES = 30
CONNECTIONS = 2
"""Beside those of the dumps: one for the facts of the server, and one for all questions about tables, in all readings of a window."""


@pytest.fixture
def asked(monkeypatch):
    """Count dumps and log-ins; the server answers them all."""
    found = Counter()
    for module, name in ((origin, "binlog_dump"), (Source, "connect"), (versions, "connect")):
        ask = getattr(module, name)

        def counted(*arguments, ask=ask, name=name):
            found[name] += 1
            return ask(*arguments)

        monkeypatch.setattr(module, name, counted)
    return found


@pytest.fixture(params=["FULL", "MINIMAL"])
def capture(request, any_server, database, tmp_path):
    with row_metadata(any_server, request.param):
        capture = capturing(any_server, database, tmp_path)
        for n in range(TABLES):
            capture.execute(f"CREATE TABLE t{n} (id INT PRIMARY KEY, v VARCHAR(9) CHARACTER SET cp1250)")
        for unit in capture.pipeline.plan(by="test"):
            capture.pipeline.drain(unit)
        capture.pipeline.ack_drain(by="test")
        yield capture


def names(capture, result):
    return {one.table.removeprefix(f"{capture.database}.") for one in result.quarantined}


@pytest.mark.needs("expressions as defaults of added columns with GTIDs")
def test_all_tables_that_are_altered_are_found_in_one_reading(capture, asked):
    """Each asks for a new snapshot of its table; the second reading is the last."""
    for n in range(TABLES):
        capture.execute(f"INSERT INTO t{n} VALUES (1, 'x')")
        capture.execute(f"ALTER TABLE t{n} ADD COLUMN w INT DEFAULT (1 + 1)")
        capture.execute(f"INSERT INTO t{n} VALUES (2, 'x', 5)")
    capture.execute("INSERT INTO good VALUES (1, 'x')")
    window = planned(capture)
    asked.clear()
    assert names(capture, capture.pipeline.drain(window)) == {f"t{n}" for n in range(TABLES)}
    assert asked["binlog_dump"] == 2
    assert asked["connect"] <= CONNECTIONS


@pytest.mark.needs("expressions as defaults of added columns with GTIDs")
def test_faults_of_many_kinds_are_found_in_one_reading(capture, asked):
    """Values, statements that change rows, statements that take some, of tables that are read in any order."""
    for n in range(10):
        capture.execute(f"INSERT INTO t{n} VALUES (1, _cp1250 X'6181C462')")
        as_statement(capture, f"INSERT INTO t{n + 10} VALUES (1, 'x')")
        capture.execute(f"ALTER TABLE t{n + 20} ADD COLUMN w INT DEFAULT (1 + 1)")
        capture.execute(f"INSERT INTO t{n} VALUES (2, _cp1250 X'6181C462')")
    capture.execute(BAD_TEXT)
    capture.execute(LOSSY)
    capture.execute("INSERT INTO good VALUES (1, 'x')")
    window = planned(capture)
    asked.clear()
    result = capture.pipeline.drain(window)
    assert names(capture, result) == {"bad", *(f"t{n}" for n in range(TABLES))}
    kinds = Counter(one.fault.code for one in result.quarantined)
    assert kinds == {"unsupported_value": 11, "unknown_event": 10, "table_replaced": 10}
    assert asked["binlog_dump"] == 2
    assert asked["connect"] <= CONNECTIONS


def test_one_statement_about_many_tables_is_looked_at_until_all_are_found(capture, asked):
    """It names tables one after another, and each is at fault for a reason of its own."""
    renamed = ", ".join(f"t{n} TO gone{n}, t{n + 10} TO t{n}" for n in range(10))
    capture.execute(f"RENAME TABLE {renamed}")
    capture.execute("INSERT INTO good VALUES (1, 'x')")
    window = planned(capture)
    asked.clear()
    found = names(capture, capture.pipeline.drain(window))
    assert {f"t{n}" for n in range(10)} <= found
    assert asked["binlog_dump"] == 2
    assert asked["connect"] <= CONNECTIONS
