"""Config messages of docs/operations.md: each is caused at a real server, and the corrected file or command works."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from cdc_lib.cli.main import app

PAGE = (Path(__file__).parents[2] / "docs" / "operations.md").read_text()


class Shop:
    """The source ``shop`` with the tables ``orders`` and ``notes``, the latter without a key."""

    def __init__(self, server, database, folder):
        self.server, self.database, self.folder = server, database, folder
        (folder / "sources").mkdir()
        server.execute("CREATE TABLE orders (id INT PRIMARY KEY, v VARCHAR(20))", database=database)
        server.execute("CREATE TABLE notes (v VARCHAR(20))", database=database)
        server.execute("INSERT INTO orders VALUES (1, 'a')", database=database)

    def settings(self, **changed):
        return {
            "server": {
                "host": self.server.host, "port": self.server.port, "user": "cdc", "password_env": "OPERATIONS_PASSWORD"
            },
            "tables": [f"{self.database}.*"],
            "store": {"url": f"file://{self.folder}/store"},
            "lake": {
                "type": "jdbc", "uri": f"jdbc:sqlite:{self.folder}/cat.db", "warehouse": f"file://{self.folder}/lake"
            },
            **changed,
        }  # fmt: skip

    def write(self, content, name="shop"):
        text = content if isinstance(content, str) else yaml.safe_dump(content)
        (self.folder / "sources" / f"{name}.yaml").write_text(text.replace("DB", self.database))

    def cdc(self, command):
        """Run a command; DB is replaced by the database of this test."""
        words = [word.strip("'\"") for word in command.replace("DB", self.database).split()[1:]]
        return CliRunner().invoke(app, ["--sources", str(self.folder / "sources"), *words], input="y\n")


@pytest.fixture
def shop(mariadb_server, mariadb_database, tmp_path, monkeypatch):
    monkeypatch.setenv("OPERATIONS_PASSWORD", mariadb_server.cdc_password)
    monkeypatch.setenv("OPERATIONS_SHORT", "short")
    return Shop(mariadb_server, mariadb_database, tmp_path)


def _refused(shop, command, message):
    """The message is on the page, with its mark, and is printed; the exit status is that of a wrong file or command."""
    rows = [line.split(" | ")[0] for line in PAGE.splitlines() if line.startswith("| `")]
    assert any(message in row and row.endswith("●") for row in rows)
    result = shop.cdc(command)
    printed = " ".join(result.output.split())
    for part in message.split("…"):
        assert part.strip() in printed, printed
    assert result.exit_code == 2, printed


def _continues(shop, **settings):
    """With a correct file the next drain and its ack succeed."""
    shop.write(shop.settings(**settings))
    for command in ("cdc step drain shop", "cdc step ack drain shop"):
        result = shop.cdc(command)
        assert result.exit_code == 0, result.output


FILES = {
    "tls": ({"server": {"tls": {"ca": "/nowhere/ca.pem"}}}, "a file of server.tls cannot be read:"),
    "variable": ({"server": {"password_env": "OPERATIONS_UNSET"}}, "the environment variable"),
    "short_key": (
        {
            "masks": [{"tables": "DB.orders", "columns": ["v"], "mask": "hash"}], "start": "latest",
            "mask_key_env": "OPERATIONS_SHORT",
        },
        "the key of the hashes has",
    ),
    "key_left_out": ({"columns": [{"tables": "DB.orders", "exclude": ["id"]}]}, "belongs to the primary key and cannot be left out"),
    "nothing_kept": ({"columns": [{"tables": "DB.notes", "exclude": ["*"]}]}, "no column of the table is kept"),
    "mask_of_nothing": (
        {"masks": [{"tables": "DB.orders", "columns": ["w"], "mask": "redact"}]},
        "which the table does not have: under another name it would be stored as it is",
    ),
    "mask_that_makes_equal": (
        {"masks": [{"tables": "DB.orders", "columns": ["id"], "mask": "redact"}], "start": "latest"},
        "of the primary key would make different rows equal",
    ),
    "masked_key_and_snapshot": (
        {
            "masks": [{"tables": "DB.orders", "columns": ["id"], "mask": "hash"}], "mask_key_env": "OPERATIONS_PASSWORD",
            "start": "snapshot",
        },
        "of the primary key has a mask, but the manifests of a snapshot contain",
    ),
    "namespace": ({"tables": ["DB.*", "other.*"], "lake": {"namespace": "one"}}, "lake.namespace"),
    "archive": (
        {"raw_archive": True, "columns": [{"tables": "DB.orders", "exclude": ["v"]}]},
        "raw_archive keeps what the server sends as it is:",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", FILES)
def test_a_wrong_setting_is_reported_and_the_corrected_file_works(shop, name):
    """No cursor moves meanwhile."""
    changed, message = FILES[name]
    given = shop.settings()
    for key, value in changed.items():
        given[key] = {**given[key], **value} if isinstance(value, dict) else value
    shop.write(yaml.safe_dump(given))
    _refused(shop, "cdc step drain shop", message)
    _continues(shop)


def test_the_doctor_reports_a_predicate_on_an_unknown_column_before_a_merge_fails(shop):
    """The rest of the source is still checked."""
    assert "| `the predicate … cannot be used: …` ●" in PAGE
    shop.write(shop.settings(filters=[{"tables": "DB.orders", "where": "w = 1"}]))
    result = shop.cdc("cdc doctor --json")
    errors = [line["what"] for line in json.loads(result.stdout) if line["level"] == "error"]
    assert result.exit_code == 1
    assert len(errors) == 1
    assert "the predicate 'w = 1' cannot be used:" in errors[0]
    _continues(shop)


TEXTS = {
    "twice": ("on_error: stop\non_error: stop\n", "is given twice, on lines"),
    "alias": ("tables: &all [*all]\n", "an alias contains itself, so the file would have no end"),
    "deep": ("tables: " + "[" * 200 + "]" * 200 + "\n", "values are nested more than"),
    "date": (
        "on_error: 2026-02-30\n",
        "a value looks like a date or a number, but is not a valid one (such as 2026-02-30)",
    ),
    "large": ("# " + "x" * 3_000_000 + "\n", "the file is larger than"),
    "key": ("on_eror: stop\n", "wrong with the source"),
}


@pytest.mark.parametrize("name", TEXTS)
def test_invalid_yaml_text_is_reported_and_the_corrected_file_works(shop, name):
    """Texts that YAML would read as another type."""
    text, message = TEXTS[name]
    shop.write(text)
    _refused(shop, "cdc step drain shop", message)
    _continues(shop)


def test_two_sources_with_the_same_server_id_at_one_server_are_refused(shop):
    """Each needs a different id, or none."""
    numbered = shop.settings()
    numbered["server"]["server_id"] = 4711
    for name in ("shop", "other"):
        shop.write(numbered, name)
    _refused(shop, "cdc step drain shop", "server.server_id is the same in")
    (shop.folder / "sources" / "other.yaml").unlink()
    _continues(shop)


COMMANDS = {
    "no_source": ("cdc step plan shpo", "there is no source"),
    "no_place": ("cdc cursor locate shop", "name exactly one position"),
    "no_server": ("cdc cursor failover shop --to db9.example.com:3306", "is not a server of"),
    "no_unit": ("cdc step drain shop 000001-x", "not in flight:"),
    "not_aside": ("cdc quarantine resume shop DB.orders", "is not quarantined"),
    "not_captured": ("cdc snapshot shop DB.none", "not captured:"),
    "no_key": ("cdc snapshot shop DB.notes --key-from 1", "has no primary key, so single rows cannot be read again"),
    "not_a_key": ("cdc snapshot shop DB.orders --key-from x", "cannot be compared with column"),
    "no_condition": ("cdc snapshot shop DB.orders --where SLEEP(9)", "the condition"),
    "unclear": ("cdc snapshot shop", "it is not clear what to read"),
    "no_part": ("cdc snapshot shop --cancel DB.orders", "no partial snapshot of"),
    "no_merge": ("cdc step rollback shop", "no merge is in flight"),
    "own_cursor": ("cdc consumers drop shop lake", "is a cursor of the pipeline itself"),
    "no_from": ("cdc batches replay shop --location file:///nowhere/again", "--since is missing:"),
    "no_location": (
        "cdc batches replay shop --since 2026-01-01T00:00:00Z --location again",
        "is not a valid place for batches",
    ),
    "own_store": (
        "cdc batches replay shop --since 2026-01-01T00:00:00Z --location file://STORE",
        "is the store of the source itself",
    ),
}


@pytest.mark.parametrize("name", COMMANDS)
def test_a_wrong_command_is_reported_and_the_source_continues(shop, name):
    """It changes nothing."""
    command, message = COMMANDS[name]
    _continues(shop, start="latest")
    _refused(shop, command.replace("STORE", f"{shop.folder}/store"), message)
    _continues(shop, start="latest")
