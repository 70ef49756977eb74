"""Random tables under random statements: what was drained, folded by its order, is what SELECT shows."""

from __future__ import annotations

import secrets
import tempfile
from collections import Counter
from pathlib import Path

import pymysql
import pytest
from hypothesis import HealthCheck, Phase, given, note, settings

from tests.harness.binlog import peer
from tests.harness.binlog.capture import Capture
from tests.harness.binlog.folding import UTC, folded, plain, selected
from tests.harness.generated.random_statements import Script, scripts

pytestmark = pytest.mark.filterwarnings("ignore:.*is deprecated, use:DeprecationWarning")  # of mysql-replication
_SETTINGS = settings(deadline=None, print_blob=True, suppress_health_check=list(HealthCheck), database=None)
_WITHOUT_SHRINKING = (Phase.explicit, Phase.generate)
"""A smaller script is found by ``-m slow``: each step towards it takes a database."""


def run(server, database: str, script: Script) -> int:
    """Execute the statements in one session; returns how many the server refused."""
    refused = 0
    with server.connect(database=database, init_command=UTC) as session, session.cursor() as cursor:
        for statement in script.statements:
            try:
                cursor.execute(statement)
            except pymysql.Error:
                if statement.startswith(("CREATE", "ALTER")):
                    raise
                refused += 1
    return refused


def check(server, script: Script) -> None:
    """Run a script in a database of its own, drain it, and compare each table."""
    database = f"oracle_{secrets.token_hex(6)}"
    server.execute(f"CREATE DATABASE {database} CHARACTER SET utf8mb4")
    try:
        with tempfile.TemporaryDirectory() as folder:
            capture = Capture(server, database, Path(folder), drain={"row_group_rows": 7})
            start = capture.head()
            note(f"refused: {run(server, database, script)}")
            window = capture.window_from(start)
            manifest = capture.drain(window)
            if not script.compressed:  # mysql-replication leaves such transactions out
                second_opinion(capture, window, manifest, script)
            for table in script.tables:
                drained = folded(table, capture.rows(manifest, table.name))
                shown = selected(server, database, table)
                assert (drained - shown, shown - drained) == (Counter(), Counter()), table.name
    finally:
        server.execute(f"DROP DATABASE {database}")


def second_opinion(capture, window, manifest, script: Script) -> None:
    """Compare change by change with mysql-replication, which reads row by row, in the columns that it can be believed in."""
    drained = {table.name: capture.rows(manifest, table.name) for table in script.tables}
    for table, op, values in peer.changes(capture.server, window, {table.name: table for table in script.tables}):
        ours = drained[table].pop(0)
        assert ours["_op"] == op
        kinds = {name: kind for name, kind in script.columns(table).items() if name in values and peer.is_right(kind)}
        theirs = {name: repr(peer.comparable(kind, values[name])) for name, kind in kinds.items()}
        assert {name: repr(plain(ours[name])) for name in kinds} == theirs
    assert not any(drained.values()), "changes that mysql-replication does not have"


@pytest.fixture(params=["mysql", "mariadb"])
def server(request):
    return request.getfixturevalue(f"{request.param}_server")


def test_changes_folded_by_their_order_are_what_select_shows(server):
    """For tables of any columns and keys, with transactions, savepoints, several tables and added columns."""

    @settings(_SETTINGS, max_examples=25, phases=_WITHOUT_SHRINKING)
    @given(scripts())
    def some(script):
        check(server, script)

    some()


@pytest.mark.slow
@pytest.mark.timeout(7200)
def test_many_more_changes_folded_by_their_order_are_what_select_shows(server):
    """The same for an hour's worth of scripts, made small where one is wrong."""

    @settings(_SETTINGS, max_examples=2000, derandomize=False)
    @given(scripts(most_tables=6, most_statements=60))
    def many(script):
        check(server, script)

    many()
