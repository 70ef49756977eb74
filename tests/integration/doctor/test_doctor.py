"""`cdc doctor` on real servers: what would keep a run from working, with the statement that corrects it."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from cdc_lib.cli.main import app

SOURCE = """
server: {{host: {server.host}, port: {server.port}, user: {user}, password_env: DOCTOR_TEST_PASSWORD}}
tables: {tables}
store: {{url: "file://{folder}/store"}}
lake: {{type: jdbc, uri: "jdbc:sqlite:{folder}/catalog/cat.db?busy_timeout=30000", warehouse: "file://{folder}/lake"}}
{more}
"""


@pytest.fixture(params=["mysql", "mariadb"])
def server(request):
    """A server of each kind."""
    return request.getfixturevalue(f"{request.param}_server")


@pytest.fixture
def database(request, server):
    """A database of its own with a table that has a key and one that has none."""
    name = request.getfixturevalue(f"{server.flavor}_database")
    server.execute("CREATE TABLE orders (id INT PRIMARY KEY, what VARCHAR(20))", database=name)
    server.execute("CREATE TABLE notes (what VARCHAR(20))", database=name)
    return name


@pytest.fixture
def user(server):
    """A user without any privilege."""
    server.execute("CREATE USER bare@'%' IDENTIFIED BY 'hunter2'")
    yield "bare"
    server.execute("DROP USER bare@'%'")


@pytest.fixture
def doctor(tmp_path, server, database, monkeypatch):
    """Call the doctor over one source file; returns its findings by level, and the exit status."""

    def _doctor(tables="*", more="", user=server.cdc_user, password=server.cdc_password, **changed):
        monkeypatch.setenv("DOCTOR_TEST_PASSWORD", password)
        folder = tmp_path / "sources"
        folder.mkdir(exist_ok=True)
        named = ", ".join(f'"{database}.{one}"' for one in tables.split())
        text = SOURCE.format(server=server, user=user, tables=f"[{named}]", folder=tmp_path, more=more)
        for old, new in changed.items():
            text = text.replace(old, new)
        (folder / "shop.yaml").write_text(text)
        result = CliRunner().invoke(app, ["--sources", str(folder), "doctor", "--json"])
        assert result.exception is None or isinstance(result.exception, SystemExit), repr(result.exception)
        assert password not in result.output
        lines = json.loads(result.stdout)
        return {level: [(one["what"], one["hint"]) for one in lines if one["level"] == level] for level in LEVELS}

    return _doctor


LEVELS = ("ok", "warning", "error")


def text(findings):
    """What findings say, in one text."""
    return "\n".join(f"{what} => {hint}" for what, hint in findings)


def test_a_source_that_can_run_has_no_error_and_names_its_table_without_a_key(doctor, database):
    """Each check came to its end."""
    found = doctor()
    assert found["error"] == []
    assert f"{database}.notes" in text(found["warning"])
    assert f"ALTER TABLE {database}.notes ADD PRIMARY KEY" in text(found["warning"])
    assert f"{database}.orders" not in text(found["warning"])
    for looked_at in ("privileges that are needed", "Java", "catalog", "warehouse", "store"):
        assert looked_at in text(found["ok"])


def xa_grants(found):
    """The statement that is printed when the server has had an XA transaction, as other tests' server has."""
    return [fix for what, fix in found["error"] if "XA transactions" in what]


def test_running_the_printed_grants_gives_the_user_all_it_needs(doctor, server, user, database):
    """Each missing privilege is a statement that can be run as it is; afterwards nothing is wrong."""
    found = doctor(user=user, password="hunter2")
    statements = [hint for what, hint in found["error"] if "lacks a privilege" in what]
    assert len(statements) == 2
    assert f"GRANT SELECT ON `{database}`.* TO 'bare'@'%';" in statements
    for statement in statements:
        server.execute(statement)
    for statement in xa_grants(doctor(user=user, password="hunter2")):
        server.execute(statement)
    assert doctor(user=user, password="hunter2")["error"] == []


def test_a_grant_on_the_table_alone_is_enough(doctor, server, user, database):
    """And is what is asked for where the file names the table."""
    found = doctor(tables="orders", user=user, password="hunter2")
    statements = [hint for what, hint in found["error"] if "lacks a privilege" in what]
    assert f"GRANT SELECT ON `{database}`.`orders` TO 'bare'@'%';" in statements
    for statement in statements:
        server.execute(statement)
    for statement in xa_grants(doctor(tables="orders", user=user, password="hunter2")):
        server.execute(statement)
    assert doctor(tables="orders", user=user, password="hunter2")["error"] == []


def test_a_privilege_that_a_role_brings_is_seen(doctor, server, user, database):
    """Nobody is asked for what they have."""
    monitor = "BINLOG MONITOR" if server.flavor == "mariadb" else "REPLICATION CLIENT"
    server.execute("CREATE ROLE taker")
    try:
        server.execute(f"GRANT SELECT, REPLICATION SLAVE, {monitor} ON *.* TO taker")
        server.execute(f"GRANT taker TO {user}@'%'")
        default = "SET DEFAULT ROLE taker FOR" if server.flavor == "mariadb" else "SET DEFAULT ROLE taker TO"
        server.execute(f"{default} {user}@'%'")
        assert "lacks" not in text(doctor(user=user, password="hunter2")["error"])
    finally:
        server.execute("DROP ROLE taker")


def test_a_missing_table_and_a_pattern_without_tables_are_reported(doctor, database):
    """A run over them would say that there is nothing to drain."""
    found = doctor(tables="orders oders crm_*")
    assert f"the table {database}.oders under tables.include does not exist" in text(found["error"])
    assert f"{database}.crm_* under tables.include names no table" in text(found["warning"])


@pytest.mark.parametrize("command", [("step", "plan"), ("run",)])
def test_a_plan_of_patterns_that_name_nothing_is_refused(doctor, tmp_path, command):
    """It said that there was nothing to drain, and ended well."""
    doctor(tables="nothing_*")
    result = CliRunner().invoke(app, ["--sources", str(tmp_path / "sources"), *command, "shop"])
    assert result.exit_code == 2
    assert "no table of the server is captured by" in result.stderr
    assert "GRANT SELECT" in result.stderr


@pytest.mark.parametrize(
    ("where", "says"),
    [("what = 'x' and and id", "an operand is missing"), ("whta = 'x'", "there is no column whta; there are id, what")],
)
def test_a_wrong_filter_is_reported_without_spark(doctor, database, where, says):
    """It took a whole snapshot and Spark to say so, three times."""
    more = f'filters: [{{tables: "{database}.orders", where: "{where}"}}]'
    assert says in text(doctor(more=more)["error"])


def test_a_filter_on_a_column_that_is_there_is_fine(doctor, database):
    """However its name is written."""
    assert doctor(more=f'filters: [{{tables: "{database}.orders", where: "WHAT <> \'x\'"}}]')["error"] == []


@pytest.mark.parametrize("start", ["{position: 'nothing.000001:4'}", "{timestamp: 1999-01-01T00:00:00Z}"])
def test_a_start_that_the_server_does_not_have_is_reported_before_the_first_run(doctor, start):
    """With what can be written instead."""
    assert "the source cannot begin at" in text(doctor(more=f"start: {start}")["error"])


def test_a_catalog_and_a_store_that_cannot_be_written_are_reported(doctor, tmp_path):
    """A file is where their folder should be."""
    (tmp_path / "catalog").write_text("")
    (tmp_path / "store").write_text("")
    found = text(doctor()["error"])
    assert "catalog/cat.db cannot be made" in found
    assert f"the store file://{tmp_path}/store cannot be used" in found
    assert "mkdir -p" in found


def test_a_missing_java_is_reported(doctor, tmp_path, monkeypatch):
    """With what to install."""
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert "openjdk-17" in text(doctor()["error"])
