"""Config messages of docs/operations.md: each is caused at a real server, and the corrected file or command works."""

from __future__ import annotations

import json
import re
import time
from datetime import UTC, datetime
from pathlib import Path

import certifi
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
        server.execute("CREATE TABLE sizes (s ENUM('a', 'b') PRIMARY KEY)", database=database)
        server.execute("CREATE TABLE words (w VARCHAR(9) CHARACTER SET sjis PRIMARY KEY)", database=database)
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


@pytest.fixture
def mysql_shop(mysql_server, mysql_database, tmp_path, monkeypatch):
    """Its binlog has commit times, so a period begins where it says; MariaDB's begins a statement's longest time before."""
    monkeypatch.setenv("OPERATIONS_PASSWORD", mysql_server.cdc_password)
    return Shop(mysql_server, mysql_database, tmp_path)


def _refused(shop, command, message, code=2):
    """The message is on the page, and is printed; the exit status is that of a wrong file or command."""
    rows = [line.split(" | ")[0] for line in PAGE.splitlines() if line.startswith("| `")]
    assert any(message in row for row in rows)
    result = shop.cdc(command)
    printed = " ".join(result.output.split())
    for part in message.split("…"):
        assert part.strip() in printed, printed
    assert result.exit_code == code, printed


def _continues(shop, **settings):
    """With a correct file the next drain and its ack succeed."""
    shop.write(shop.settings(**settings))
    _done(shop, "cdc step drain shop", "cdc step ack drain shop")


def _done(shop, *commands):
    """Each command succeeds."""
    for command in commands:
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
    "namespace": ({"tables": ["DB.*", "other.*"], "lake": {"namespace": "one"}}, "lake.namespace … must hold {database}:"),
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


def test_a_mask_of_a_column_that_is_not_there_stops_its_table_until_the_file_is_right(shop):
    """The column may have another name: the other tables go on."""
    message = "which the table does not have: under another name it would be stored as it is"
    assert any(message in line for line in PAGE.splitlines() if line.startswith("| `"))
    shop.write(shop.settings(masks=[{"tables": "DB.orders", "columns": ["w"], "mask": "redact"}]))
    found = shop.cdc("cdc doctor --json")
    assert found.exit_code == 1
    assert message in " ".join(line["what"] for line in json.loads(found.stdout) if line["level"] == "error")
    drained = shop.cdc("cdc step drain shop")
    assert drained.exit_code == 0
    assert f"orders is left out: masks name the column w, {message}" in " ".join(drained.output.split())
    _done(shop, "cdc step ack drain shop")
    shop.write(shop.settings())
    _done(shop, f"cdc quarantine resume shop {shop.database}.orders", "cdc step plan shop", "cdc step drain shop")


def test_the_doctor_reports_a_predicate_on_an_unknown_column_before_a_merge_fails(shop):
    """The rest of the source is still checked."""
    assert "| `the predicate … cannot be used: …` |" in PAGE
    shop.write(shop.settings(filters=[{"tables": "DB.orders", "where": "w = 1"}]))
    result = shop.cdc("cdc doctor --json")
    errors = [line["what"] for line in json.loads(result.stdout) if line["level"] == "error"]
    assert result.exit_code == 1
    assert len(errors) == 1
    assert "the predicate 'w = 1' cannot be used:" in errors[0]
    _continues(shop)


def test_tables_that_would_be_one_lake_table_are_sent_to_other_names(shop):
    """A hive catalog ignores case."""
    shop.server.execute("CREATE TABLE ORDERS (id INT PRIMARY KEY)", database=shop.database)
    settings = shop.settings(start="latest")
    settings["lake"] |= {"type": "hive", "uri": "thrift://127.0.0.1:1"}
    shop.write(settings)
    _refused(shop, "cdc step plan shop", "… would be one lake table,")
    settings["routes"] = [{"tables": "DB.ORDERS", "into": "DB.orders_in_capitals"}]
    shop.write(settings)
    _done(shop, "cdc step plan shop")


def test_a_java_that_spark_does_not_run_on_is_reported_by_the_doctor_until_another_is_found(shop, monkeypatch):
    """Neither none nor an old one; what was on PATH before is one that Spark runs on."""
    old = shop.folder / "bin" / "java"
    old.parent.mkdir()
    old.write_text("#!/bin/sh\necho 'openjdk version \"11.0.2\"' >&2\n")
    old.chmod(0o755)
    shop.write(shop.settings())
    for variable, value, message in (
        ("PATH", str(shop.folder), "Spark needs Java, and there is none on PATH"),
        ("JAVA_HOME", str(shop.folder), "Spark does not run on Java … (…)"),
    ):
        with monkeypatch.context() as changed:
            changed.delenv("JAVA_HOME", raising=False)
            changed.setenv(variable, value)
            errors = _errors_of_the_doctor(shop)
        assert all(part in errors for part in message.strip(" ().…").split("…"))
        assert f"`{message}`" in PAGE
    assert "Java" not in _errors_of_the_doctor(shop)


def _errors_of_the_doctor(shop):
    findings = json.loads(shop.cdc("cdc doctor --json").stdout)
    return " ".join(line["what"] for line in findings if line["level"] == "error")


TEXTS = {
    "twice": ("on_error: stop\non_error: stop\n", "is given twice, on lines"),
    "alias": ("tables: &all [*all]\n", "an alias contains itself, so the file would have no end"),
    "deep": ("tables: " + "[" * 200 + "]" * 200 + "\n", "values are nested more than"),
    "date": (
        "on_error: 2026-02-30\n",
        "a value looks like a date or a number, but is not a valid one (such as 2026-02-30)",
    ),
    "many": (
        "a: &a [" + "1, " * 99 + "1]\nb: &b [" + "*a, " * 99 + "*a]\nc: [" + "*b, " * 99 + "*b]\n",
        "the file holds more than … values, its aliases written out",
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
    "no_condition": ("cdc snapshot shop DB.orders --where SLEEP(9)", "the condition … cannot be used:"),
    "unclear": ("cdc snapshot shop", "it is not clear what to read"),
    "no_part": ("cdc snapshot shop --cancel DB.orders", "no partial snapshot of"),
    "no_merge": ("cdc step rollback shop", "no merge is in flight"),
    "key_of_two": ("cdc snapshot shop DB.orders --key-from [1,2]", "is not a key of"),
    "key_without_order": (
        "cdc snapshot shop DB.sizes --key-from a",
        "keys of … cannot be compared in the order of the server",
    ),
    "key_in_many_bytes": (
        "cdc snapshot shop DB.words --key-from a",
        "keys of … have a character set in which two texts may map to the same Unicode text",
    ),
    "no_table": ("cdc lake preview shop orders", "is not database.table"),
    "no_time": (
        "cdc backfill shop --since 2026-01-02T00:00:00Z --until 2026-01-01T00:00:00Z --dry-run",
        "nothing lies between --since and --until:",
    ),
    "cursor_is_there": (
        "cdc cursor restore shop drain --rebuild --why x",
        "the … cursor is not lost",
    ),
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


def test_only_the_log_in_of_a_connection_is_known_to_airflow_alone(shop):
    """A user and the name of a variable are added."""
    server = {"host": shop.server.host, "port": shop.server.port, "connection": "shop_db"}
    shop.write({**shop.settings(), "server": server})
    _refused(shop, "cdc step drain shop", "only Airflow knows the log-in of")
    _continues(shop)


def test_a_folder_among_the_files_of_sources_is_reported_and_the_others_continue(shop):
    """Until it is removed."""
    (shop.folder / "sources" / "folder.yaml").mkdir()
    _refused(shop, "cdc step plan folder", "it is not a file")
    _continues(shop)
    (shop.folder / "sources" / "folder.yaml").rmdir()
    _continues(shop)


def test_a_source_begins_with_its_plan(shop):
    """Its cursors are made there."""
    shop.write(shop.settings())
    _refused(shop, "cdc step ack drain shop", "the source has no … cursor yet", code=1)
    _done(shop, "cdc step plan shop")
    _continues(shop)


def test_an_ack_waits_for_the_drain(shop):
    """Of the unit that is in flight."""
    shop.write(shop.settings(start="latest"))
    _done(shop, "cdc step plan shop")
    shop.server.execute("INSERT INTO orders VALUES (2, 'b')", database=shop.database)
    _done(shop, "cdc step plan shop")
    _refused(shop, "cdc step ack drain shop", "units are in flight, and none has written its batch", code=1)
    _continues(shop, start="latest")


def test_one_partial_snapshot_of_a_table_is_requested_at_a_time(shop):
    """The next one after it was merged, or cancelled."""
    _continues(shop, start="latest")
    _done(shop, "cdc snapshot shop DB.orders --key-from 1")
    _refused(shop, "cdc snapshot shop DB.orders --key-from 1", "another snapshot of … is not merged yet")
    _done(shop, "cdc snapshot shop --cancel DB.orders", "cdc snapshot shop DB.orders --key-from 1")
    _continues(shop, start="latest")


def test_a_partial_snapshot_is_requested_again_under_another_key(shop):
    """After it is cancelled."""
    _continues(shop, start="latest")
    _done(shop, "cdc snapshot shop DB.orders --key-from 1")
    shop.server.execute("ALTER TABLE orders DROP PRIMARY KEY, ADD PRIMARY KEY (v)", database=shop.database)
    _refused(shop, "cdc step drain shop", "the snapshot of … was requested under another primary key:")
    _done(shop, "cdc snapshot shop --cancel DB.orders", "cdc snapshot shop DB.orders --key-from a")
    _continues(shop, start="latest")


@pytest.mark.parametrize("command", ["cdc snapshot shop DB.orders --yes", "cdc quarantine resume shop DB.orders"])
def test_a_new_snapshot_ends_the_quarantine_of_a_table(shop, command):
    """After the invalid text is corrected; a part of the table is not read alone."""
    _continues(shop, start="latest", on_error="quarantine")
    shop.server.execute("ALTER TABLE orders ADD c VARCHAR(9) CHARACTER SET cp1250", database=shop.database)
    shop.server.execute("INSERT INTO orders VALUES (2, 'b', _cp1250 X'81')", database=shop.database)
    _continues(shop, start="latest", on_error="quarantine")
    _refused(shop, "cdc snapshot shop DB.orders --key-from 1", "is quarantined, so a part of it cannot be read alone")
    shop.server.execute("UPDATE orders SET c = 'text' WHERE id = 2", database=shop.database)
    _done(shop, command)
    _continues(shop, start="latest", on_error="quarantine")
    (listed,) = json.loads(shop.cdc("cdc quarantine list shop --json").stdout)
    assert listed["state"] != "quarantined"


def test_shards_that_cannot_be_distinguished_get_keys(shop):
    """Before a snapshot of one of them, which would remove the rows of the other."""
    shop.server.execute("CREATE TABLE orders2 LIKE orders", database=shop.database)
    route = {"tables": "DB.orders*", "into": "DB.all", "keys": ["schema"]}
    shop.write(shop.settings(start="latest", routes=[route]))
    _done(shop, "cdc step plan shop")
    _refused(shop, "cdc snapshot shop DB.orders", "a new snapshot would delete them as well")
    shop.write(shop.settings(start="latest", routes=[{**route, "keys": ["table"]}]))
    _done(shop, "cdc snapshot shop DB.orders")
    _continues(shop, start="latest", routes=[{**route, "keys": ["table"]}])


def test_a_document_is_restored_to_its_own_source(shop):
    """Another source refuses it."""
    _continues(shop, start="latest")
    shop.write({**shop.settings(start="latest"), "store": {"url": f"file://{shop.folder}/other"}}, "other")
    file = shop.folder / "cursors.json"
    file.write_text(shop.cdc("cdc cursor export shop").output)
    _refused(shop, f"cdc cursor restore other --file {file} --why x", "the document is the … cursor of source")
    _done(shop, f"cdc cursor restore shop --file {file} --why x")
    _continues(shop, start="latest")


def test_the_key_of_a_condition_may_have_no_order(shop):
    """What the page says for keys that cannot be compared."""
    _continues(shop, start="latest")
    _refused(shop, "cdc snapshot shop DB.sizes --key-from a", "keys of … cannot be compared in the order of the server")
    _done(shop, "cdc snapshot shop DB.sizes --where ('a'=s)", "cdc snapshot shop DB.words")
    _continues(shop, start="latest")


def test_a_table_that_is_dropped_before_its_snapshot_stops_nothing(shop):
    """Its snapshot is empty, and the DROP is in the binlog."""
    shop.write(shop.settings())
    _done(shop, "cdc step plan shop")
    shop.server.execute("DROP TABLE notes", database=shop.database)
    _continues(shop)


def test_without_a_missing_batch_there_is_nothing_to_skip(shop):
    """The command says so and ends well."""
    _continues(shop, start="latest")
    _refused(shop, "cdc batches refill shop --over --why x", "no batch is missing", code=0)
    _continues(shop, start="latest")


def test_tables_with_system_versioning_are_excluded(shop):
    """The plan reports them."""
    shop.server.execute("CREATE TABLE kept (id INT PRIMARY KEY) WITH SYSTEM VERSIONING", database=shop.database)
    shop.write(shop.settings())
    _refused(shop, "cdc step plan shop", "that cannot be captured:", code=1)
    _continues(shop, tables={"include": ["DB.*"], "exclude": ["DB.kept"]})


LOG_INS = {
    "port": ({"port": 1}, "the server cannot be reached:"),
    "password": ({"password_env": "OPERATIONS_SHORT"}, "the server refuses:"),
    "tls": ({"tls": {"ca": certifi.where()}}, "log-in or TLS failed:"),
}


@pytest.mark.parametrize("name", LOG_INS)
def test_a_server_that_does_not_let_in_is_reported_and_the_corrected_file_works(shop, name):
    """By what it said."""
    changed, message = LOG_INS[name]
    settings = shop.settings(failover={"attempts": 1})
    settings["server"] |= changed
    shop.write(settings)
    _refused(shop, "cdc step drain shop", message, code=1)
    _continues(shop)


def test_a_format_without_rows_is_corrected_by_the_statement_in_the_hint(shop):
    """Before anything is read."""
    shop.server.execute("SET GLOBAL binlog_format = 'MIXED'")
    try:
        shop.write(shop.settings())
        _refused(shop, "cdc step plan shop", "binlog_format is", code=1)
        hint = " ".join(shop.cdc("cdc step plan shop").output.split())
        shop.server.execute(re.search(r"SET GLOBAL binlog_format = '?ROW'?", hint)[0])
        _continues(shop)
    finally:
        shop.server.execute("SET GLOBAL binlog_format = 'ROW'")


def test_another_kind_of_server_is_refused_until_the_former_is_back(shop, mysql_server, monkeypatch):
    """A cursor of one says nothing about the other."""
    _continues(shop, start="latest")
    monkeypatch.setenv("OPERATIONS_OTHER", mysql_server.cdc_password)
    other = shop.settings(start="latest")
    other["server"] |= {"host": mysql_server.host, "port": mysql_server.port, "password_env": "OPERATIONS_OTHER"}
    shop.write(other)
    _refused(shop, "cdc step plan shop", "the cursor belongs to …, but", code=1)
    _continues(shop, start="latest")


def test_a_position_that_the_server_does_not_have_is_refused_and_one_that_it_has_is_found(shop):
    """The messages of `cdc cursor locate`, and their corrections."""
    _continues(shop, start="latest")
    file, end = shop.server.execute("SHOW BINARY LOGS")[-1][:2]
    for place, message in (
        (f"--position {file}:5", "is not the beginning of an event"),
        (f"--position {file.rpartition('.')[0]}.999999:4", "the server has no file …: its binlog goes from … to"),
        ("--gtid 0-77-999999", "the server does not have transactions of the set:"),
        ("--time 2001-01-01T00:00:00Z", "the oldest binlog file was made at"),
    ):
        _refused(shop, f"cdc cursor locate shop {place}", message, code=1)
    ((gtids,),) = shop.server.execute("SELECT @@gtid_binlog_pos")
    _done(
        shop,
        f"cdc cursor locate shop --position {file}:{end}",
        f"cdc cursor locate shop --gtid {gtids}",
        f"cdc cursor locate shop --time {datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}",
    )
    _continues(shop, start="latest")


def test_batches_before_the_present_epoch_are_not_made_again(mysql_shop):
    """Later ones are, from the server."""
    shop = mysql_shop
    time.sleep(1)  # else other tests' statements of this second would be read again
    since = f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"
    _continues(shop, start="latest")
    shop.server.execute("INSERT INTO orders VALUES (2, 'b')", database=shop.database)
    _continues(shop, start="latest")
    again = f"cdc batches replay shop --since {since} --location file://{shop.folder}/again"
    _done(shop, again)
    file, end = shop.server.execute("SHOW BINARY LOGS")[-1][:2]
    _done(shop, f"cdc cursor rewind shop --position {file}:{end} --why x")
    _refused(shop, again, "lies before the place where the present epoch of the source began")
    _continues(shop, start="latest")


def test_patterns_that_match_no_table_are_refused_and_the_corrected_ones_are_read(shop):
    """By a whole run; a plan of a source that has begun may have nothing to do."""
    shop.write(shop.settings(tables=["nothing.*"]))
    _refused(shop, "cdc run shop", "no table of the server is captured by")
    _continues(shop)
