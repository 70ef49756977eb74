"""The commands that need a server, against a real one; those of a whole run are in tests/integration/spark/test_whole_run.py."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from cdc_lib.cli.main import app

SOURCE = """
server: {{host: {server.host}, port: {server.port}, user: {server.cdc_user}, password_env: CLI_TEST_PASSWORD}}
tables: ["{database}.*"]
store: {{url: "file://{folder}/store"}}
lake: {{type: jdbc, uri: "jdbc:sqlite:{folder}/cat.db?busy_timeout=30000", warehouse: "file://{folder}/lake"}}
"""


@pytest.fixture
def database_of_orders(mysql_server, mysql_database):
    """A database with a table of three rows."""
    mysql_server.execute("CREATE TABLE orders (id INT PRIMARY KEY, what VARCHAR(20))", database=mysql_database)
    mysql_server.execute("INSERT INTO orders VALUES (1, 'tea'), (2, 'milk'), (3, NULL)", database=mysql_database)
    return mysql_database


@pytest.fixture
def sources(tmp_path, mysql_server, database_of_orders, monkeypatch):
    """A folder with one source, ``orders``."""
    monkeypatch.setenv("CLI_TEST_PASSWORD", mysql_server.cdc_password)
    folder = tmp_path / "sources"
    folder.mkdir()
    text = SOURCE.format(server=mysql_server, database=database_of_orders, folder=tmp_path)
    (folder / "orders.yaml").write_text(text)
    return folder


@pytest.fixture
def cdc(sources, mysql_server):
    """Call ``cdc``, which must succeed by default, and return its output."""

    def _cdc(*arguments, code=0):
        result = CliRunner().invoke(app, ["--sources", str(sources), *arguments], input="n\n")
        assert result.exit_code == code, result.output + repr(result.exception)
        assert mysql_server.cdc_password not in result.output
        return result.output

    return _cdc


def cursors(cdc):
    """The cursors of the source, by consumer."""
    return {one["consumer"]: one for one in json.loads(cdc("cursor", "show", "orders", "--json"))}


def test_planning_again_shows_the_same_units(cdc):
    """What is in flight is adopted."""
    first = cdc("step", "plan", "orders")
    assert "orders" in first
    assert cdc("step", "plan", "orders") == first
    units = json.loads(cdc("step", "plan", "orders", "--json"))
    assert [one["unit"] in first for one in units] == [True] * len(units)
    assert {one["kind"] for one in units} <= {"window", "snapshot"}


def test_the_stages_one_by_one_move_the_drain_cursor_only_over_what_is_durable(cdc):
    """An ack before the drain is refused and moves nothing; one after it does; one more is a no-op."""
    cdc("step", "plan", "orders")
    before = cursors(cdc)["drain"]
    cdc("step", "ack", "drain", "orders", code=1)
    early = cursors(cdc)["drain"]
    assert (early["position"], early["in_flight"]) == (before["position"], before["in_flight"])
    cdc("step", "drain", "orders")
    cdc("step", "ack", "drain", "orders")
    after = cursors(cdc)["drain"]
    assert after["generation"] > before["generation"]
    assert not after["in_flight"]
    cdc("step", "ack", "drain", "orders")
    assert cursors(cdc)["drain"]["position"] == after["position"]


def test_a_unit_that_is_not_in_flight_cannot_be_drained(cdc):
    """The message names those that are."""
    cdc("step", "plan", "orders")
    assert "not in flight: nonsense" in cdc("step", "drain", "orders", "nonsense", code=2)


def test_a_new_source_is_written_and_checked_at_its_server(cdc, sources, mysql_server, mysql_database, tmp_path):
    """The check finds nothing wrong, and the next command is named."""
    server = ("--host", mysql_server.host, "--port", str(mysql_server.port), "--user", mysql_server.cdc_user)
    places = (
        "--store",
        f"file://{tmp_path}/s2",
        "--warehouse",
        f"file://{tmp_path}/l2",
        "--catalog",
        f"jdbc:sqlite:{tmp_path}/c2.db",
    )
    log_in = ("--password-env", "CLI_TEST_PASSWORD")
    text = cdc("init", "second", *server, *log_in, "--tables", f"{mysql_database}.*", *places, "--yes")
    assert "0 errors" in text
    assert "next: cdc run second" in text
    assert "0 errors" in cdc("doctor")


def test_the_doctor_finds_no_problem_on_a_configured_server(cdc):
    """Its findings name what was looked at."""
    lines = json.loads(cdc("doctor", "--json"))
    assert lines
    assert {line["level"] for line in lines} <= {"ok", "warning"}
    assert "0 errors" in cdc("doctor")


def test_the_doctor_gives_the_statement_that_fixes_a_server(cdc, mysql_server):
    """And ends with 1, for scripts."""
    mysql_server.execute("SET GLOBAL binlog_format = MIXED")
    try:
        text = cdc("doctor", code=1)
        assert "binlog_format" in text
        assert "= 'ROW';" in text
    finally:
        mysql_server.execute("SET GLOBAL binlog_format = ROW")


def test_a_wrong_password_is_reported_without_showing_it(cdc, monkeypatch):
    """And without a traceback."""
    monkeypatch.setenv("CLI_TEST_PASSWORD", "hunter2")
    text = cdc("step", "plan", "orders", code=1)
    assert "hunter2" not in text
    assert "Traceback" not in text


def test_a_quarantined_table_is_listed_and_resumed(cdc, sources, mysql_server, mysql_database):
    """Drain, ack, status and doctor name it, and one command brings it back."""
    file = sources / "orders.yaml"
    file.write_text(file.read_text() + "start: latest\non_error: quarantine\n")
    cdc("step", "plan", "orders")
    with mysql_server.connect(database=mysql_database) as session, session.cursor() as sql:
        sql.execute("SET SESSION binlog_format = 'STATEMENT'")
        sql.execute("DELETE FROM orders WHERE id = 1")
        session.commit()
    table = f"{mysql_database}.orders"
    assert f"{table} is left out" in cdc("step", "drain", "orders")
    assert f"quarantined: {table}" in cdc("step", "ack", "drain", "orders")
    (status,) = json.loads(cdc("status", "orders", "--json"))
    (lagging,) = status["lagging"]
    assert (lagging["table"], lagging["last"]["fault"]["code"]) == (table, "unknown_event")
    assert "cdc snapshot orders" in cdc("status", "orders")  # which ends the quarantine as well
    (listed,) = json.loads(cdc("quarantine", "list", "orders", "--json"))
    assert (listed["table"], listed["code"], listed["state"]) == (table, "unknown_event", "quarantined")
    assert "cdc snapshot orders" in cdc("doctor", "--json")
    assert "still" in cdc("cursor", "show", "orders")
    assert "followed again" in cdc("quarantine", "resume", "orders", table)
    assert "released, and read again" in cdc("status", "orders")
    assert json.loads(cdc("quarantine", "list", "orders", "--json"))[0]["state"] == "resumed"
    assert "released by cdc quarantine resume" in cdc("cursor", "show", "orders")
    assert "not quarantined" in cdc("quarantine", "resume", "orders", table, code=2)


def test_a_table_is_read_again_only_after_confirmation(cdc, mysql_database):
    """It says what will happen, and afterwards who requested it and why; no fault is shown."""
    cdc("step", "plan", "orders")
    table = f"{mysql_database}.orders"
    asked = cdc("snapshot", "orders", table)
    assert f"{table}: the rows that the lake holds are replaced" in asked
    assert "the snapshot in progress is cancelled" in asked
    assert "nothing was changed" in asked
    assert cursors(cdc)["drain"]["quarantine"] == []
    assert f"{table} is read again after" in cdc("snapshot", "orders", table, "--why", "rows are missing", "--yes")
    (record,) = cursors(cdc)["drain"]["quarantine"]
    assert (record["fault"], record["why"]) == (None, "rows are missing")
    assert "cdc snapshot by" in record["by"]
    status = cdc("status", "orders")
    assert f"{table} is read again since" in status
    assert "rows are missing" in status
    assert "quarantined" not in status
    assert "to be read again from" in cdc("cursor", "show", "orders")
    assert "cancelled" in cdc("cursor", "show", "orders")
    assert table not in cdc("doctor", "--json")
    wrong = cdc("snapshot", "orders", table, "shop.nothing", "--yes", code=2)
    assert "not captured: shop.nothing" in wrong
    assert f"Captured of orders: {table}." in wrong


def test_a_partial_snapshot_is_requested_and_cancelled(cdc, mysql_server, mysql_database):
    """It says what will become of rows; who asked is in the status; what is not clear is refused."""
    cdc("step", "plan", "orders")
    table = f"{mysql_database}.orders"
    part = ("snapshot", "orders", table, "--key-from", "2", "--key-to", "9", "--yes")
    assert f"another snapshot of {table} is not merged yet" in cdc(*part, code=2)
    cdc("step", "drain", "orders")
    cdc("step", "ack", "drain", "orders")
    assert "not merged yet" in cdc(*part, code=2)
    for wrong in ((table, "--key-from", "1", "--where", "id = 1"), ("--key-to", "1"), (table, "--cancel", table), ()):
        assert "it is not clear what to read" in cdc("snapshot", "orders", *wrong, code=2)
    assert "no partial snapshot" in cdc("snapshot", "orders", "--cancel", table, code=2)


def test_parts_are_asked_for_of_a_table_that_is_followed(cdc, sources, mysql_database):
    """Where its source began without a snapshot, the part is all that is read."""
    file = sources / "orders.yaml"
    file.write_text(file.read_text() + "start: latest\n")
    cdc("step", "plan", "orders")
    table = f"{mysql_database}.orders"
    asked = cdc("snapshot", "orders", table, "--key-from", "2", "--why", "lost rows")
    assert "rows of the lake between these keys that the source no longer has go" in asked
    assert "nothing was changed" in asked
    assert "rows that the source no longer has stay" in cdc("snapshot", "orders", table, "--where", "what IS NULL")
    assert "cannot be used" in cdc("snapshot", "orders", table, "--where", "sleep(1) = 0", "--yes", code=2)
    assert "cannot be compared with column id" in cdc("snapshot", "orders", table, "--key-to", "x", "--yes", code=2)
    assert "read and merged by the next runs" in cdc("snapshot", "orders", table, "--key-from", "2", "--yes")
    assert f"rows of {table} from 2 to the last" in cdc("step", "plan", "orders")
    assert "2 rows" in cdc("step", "drain", "orders")
    cdc("step", "ack", "drain", "orders")
    assert "read, to be merged" in cdc("status", "orders")
    assert "is cancelled" in cdc("snapshot", "orders", "--cancel", table)
    assert "read again" not in cdc("status", "orders")
    assert cursors(cdc)["drain"]["snapshots"][0]["selection"]["lower"] == ["2"]


def test_a_position_is_shown_and_the_cursor_moves_only_after_confirmation(cdc):
    """And back again; both are kept with who and why."""
    cdc("step", "plan", "orders")
    start = cursors(cdc)["drain"]["position"]
    at = f"{start['file']}:{start['offset']}"
    found = json.loads(cdc("cursor", "locate", "orders", "--position", at, "--json"))
    assert found["checkpoint"]["position"] == start
    assert found["bytes_to_cursor"] == 0
    assert "from the cursor" in cdc("cursor", "locate", "orders", "--position", at)
    generation = cursors(cdc)["drain"]["generation"]
    assert "nothing was changed" in cdc("cursor", "rewind", "orders", "--position", at)
    assert cursors(cdc)["drain"]["generation"] == generation
    assert "in epoch 2" in cdc(
        "cursor", "rewind", "orders", "--position", f"{start['file']}:4", "--why", "a try", "--yes"
    )
    (switch,) = cursors(cdc)["drain"]["epoch_changes"]
    assert (switch["kind"], switch["why"], switch["previous_end"]["position"]) == ("rewind", "a try", start)
    assert "a try" in cdc("status", "orders")
    assert "a try" in cdc("cursor", "show", "orders")
    cdc("cursor", "rewind", "orders", "--undo", "--yes")
    assert cursors(cdc)["drain"]["position"] == start
