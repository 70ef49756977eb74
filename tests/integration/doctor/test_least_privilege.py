"""Each documented grant is needed, and `cdc doctor` asks for exactly the one that is missing."""

from __future__ import annotations

import json
import re

import pytest
from typer.testing import CliRunner

from cdc_lib.cli.main import app
from cdc_lib.doctor import visit
from tests.harness.binlog import xa
from tests.harness.docs.documented_grants import PASSWORD, USER, documented, make_user

SOURCE = """
server: {{host: {server.host}, port: {server.port}, user: {user}, password_env: LEAST_PASSWORD}}
tables: ["{database}.*"]
store: {{url: "file://{folder}/store"}}
lake: {{type: jdbc, uri: "jdbc:sqlite:{folder}/cat.db?busy_timeout=30000", warehouse: "file://{folder}/lake"}}
"""


@pytest.fixture
def server(any_server, database):
    """A server with a table, whose XA transactions are all decided, and a user with the documented grants."""
    any_server.execute("CREATE TABLE a (id INT PRIMARY KEY)", database=database)
    xa.prepare(any_server, database, "'least'", "INSERT INTO a VALUES (1)")
    xa.commit(any_server, "'least'")
    make_user(any_server, documented(any_server.flavor))
    yield any_server
    any_server.execute(f"DROP USER {USER}@'%'")


@pytest.fixture
def doctor(server, database, tmp_path, monkeypatch):
    """Call the doctor as that user; returns its exit status and the statements that its errors print."""
    monkeypatch.setenv("LEAST_PASSWORD", PASSWORD)
    for name in ("PATIENCE", "ALTOGETHER"):
        monkeypatch.setattr(visit, name, 60.0)  # the machine may be busy
    folder = tmp_path / "sources"
    folder.mkdir()
    (folder / "shop.yaml").write_text(SOURCE.format(server=server, user=USER, database=database, folder=tmp_path))

    def _doctor():
        result = CliRunner().invoke(app, ["--sources", str(folder), "doctor", "--json"])
        errors = [one for one in json.loads(result.stdout) if one["level"] == "error"]
        return result.exit_code, sorted({one["hint"] for one in errors if one["hint"].startswith("GRANT ")}), errors

    return _doctor


def test_the_documented_grants_are_enough(doctor):
    assert doctor() == (0, [], [])


def test_the_documented_grants_are_those_of_the_tests_own_user(any_server):
    """So that every other test on a server runs with them and no others."""
    assert sorted(documented(any_server.flavor)) == sorted(any_server.cdc_privileges.split(", "))


@pytest.mark.parametrize("number", range(4))
def test_a_grant_that_is_missing_is_asked_for_and_no_other(server, database, doctor, number):
    """Running the printed statement makes everything right again; SELECT is asked for on the database that is captured."""
    privileges = documented(server.flavor)
    if number == len(privileges):
        pytest.skip(f"{server.flavor} needs {number} grants")
    server.execute(f"REVOKE {privileges[number]} ON *.* FROM {USER}@'%'")
    code, statements, _ = doctor()
    where = f"`{database}`.*" if privileges[number] == "SELECT" else "*.*"
    assert (code != 0, statements) == (True, [f"GRANT {privileges[number]} ON {where} TO '{USER}'@'%';"])
    server.execute(statements[0])
    assert doctor() == (0, [], [])


def test_without_any_grant_all_are_asked_for(server, doctor):
    """What can be seen without a grant is enough to print them all; XA transactions are looked at when the user may look."""
    for privilege in documented(server.flavor):
        server.execute(f"REVOKE {privilege} ON *.* FROM {USER}@'%'")
    _, statements, _ = doctor()
    asked = {one.strip() for text in statements for one in re.match("GRANT (.+) ON ", text)[1].split(",")}
    assert asked >= set(documented(server.flavor)) - {"XA_RECOVER_ADMIN"}
