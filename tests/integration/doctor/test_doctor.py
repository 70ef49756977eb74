"""`cdc doctor` on real servers: what would keep a run from working, with the statement that corrects it."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from cdc_lib.cli.main import app
from cdc_lib.doctor import visit
from tests.harness.servers.process import free_port
from tests.harness.servers.replication import server_of
from tests.harness.servers.skew import can_be_wrong

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
        for name in ("PATIENCE", "ALTOGETHER"):
            monkeypatch.setattr(visit, name, 60.0)  # the machine may be busy
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


LEVELS = ("ok", "info", "warning", "error")


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


def test_tables_whose_rows_are_elsewhere_are_named(doctor, server, database):
    """A MERGE table on either server; changes of the table below it are logged of that one alone."""
    assert "engine" not in text(doctor()["warning"])
    server.execute("CREATE TABLE below (id INT) ENGINE=MyISAM", database=database)
    server.execute("CREATE TABLE joined (id INT) ENGINE=MERGE UNION=(below)", database=database)
    found = text(doctor()["warning"])
    engine = "MRG_MYISAM" if server.flavor == "mysql" else "MRG_MyISAM"
    assert f"{database}.joined ({engine}) => Name them under tables.exclude" in found
    assert f"{database}.below (" not in found


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


def test_a_wrong_predicate_of_a_route_is_reported_like_that_of_a_filter(doctor, database):
    """With the columns that the route's lake table has."""

    def route(where):
        return f'routes: [{{tables: "{database}.orders", into: "{database}.a", where: "{where}"}}]'

    for where, says in (
        ("what = 'x' and and id", "an operand is missing"),
        ("whta = 'x'", "there is no column whta; there are id, what"),
    ):
        found = doctor(more=route(where))
        assert says in text(found["error"])
        assert f"{database}.orders: the predicate" in text(found["error"])
    assert doctor(more=route("id > 1"))["error"] == []


def test_a_layout_is_checked_against_the_columns_of_the_server(doctor, server, database):
    """What cannot be used is an error; what a common reader gets wrong is a warning that names reader and partition."""
    server.execute("CREATE TABLE paid (id INT PRIMARY KEY, price DECIMAL(9, 2), f FLOAT)", database=database)

    def layout(partition, more=""):
        return doctor("paid", more=f'layouts: [{{tables: "{database}.paid", partition_by: ["{partition}"]}}]{more}')

    assert "partition_by has nothing, and the table has no such column" in text(layout("nothing")["error"])
    assert "partition_by has identity of f, whose type is float" in text(layout("f")["error"])
    found = layout("price")
    assert f"{database}.paid: partition_by `price`: where a query has a condition on price, in DuckDB 1.4.4" in text(
        found["warning"]
    )
    assert found["error"] == layout("bucket(4, price)")["warning"] == []
    computed = f'\ncomputed: [{{tables: "{database}.paid", columns: {{x: "price + 1"}}}}]'
    assert layout("x", computed)["error"] == []
    rule = f'layouts: [{{tables: "{database}.paid", format_version: 3}}]'
    found = doctor("paid", more=rule, **{"lake: {": "lake: {readers: [spark, athena], "})
    assert f"{database}.paid: athena does not read format_version 3: it reads 2 (https://" in text(found["error"])


def test_computed_columns_and_booleans_are_checked_without_spark(doctor, database):
    """An expression by its columns, and a boolean by its type."""

    def computed(expression):
        return doctor(more=f'computed: [{{tables: "{database}.orders", columns: {{x: "{expression}"}}}}]')["error"]

    assert "has no column price; there are id, what" in text(computed("price * 2"))
    assert "another value each time" in text(computed("rand() + id"))
    assert computed("upper(what)") == []
    found = doctor(more=f'booleans: [{{tables: "{database}.orders", columns: [what]}}]')
    assert "what under booleans" in text(found["warning"])


def executed(server):
    """The GTIDs that a server has."""
    variable = "gtid_binlog_pos" if server.flavor == "mariadb" else "gtid_executed"
    return server.execute(f"SELECT @@GLOBAL.{variable}")[0][0].replace("\n", "")


def test_a_start_by_gtid_that_the_server_has_is_fine(doctor, server):
    """It is where the source begins."""
    found = doctor(more=f"start: {{gtid: '{executed(server)}'}}")
    assert found["error"] == []
    assert "the source begins at" in text(found["ok"])


def test_a_start_by_gtid_that_the_server_never_had_or_purged_is_reported(doctor, server, database):
    """A wrong text is reported as well; each finding says why."""
    never = "7-99-12345" if server.flavor == "mariadb" else "3e11fa47-71ca-11e1-9e33-c80aa9429562:1-5"
    before = executed(server)
    for number in range(3):
        server.execute(f"INSERT INTO orders VALUES ({number}, 'x')", database=database)
        server.execute("FLUSH BINARY LOGS")
    server.purge_binlogs()
    for gtid, says in (
        (never, "the server does not have transactions of the set"),
        (before, "transactions after the set are no longer in any binlog file"),
        ("nonsense", "nonsense"),
    ):
        found = text(doctor(more=f"start: {{gtid: '{gtid}'}}")["error"])
        assert "the source cannot begin at gtid" in found
        assert says in found


@pytest.mark.needs("the C library of the tests")
@pytest.mark.skipif(not can_be_wrong(), reason="there is no C compiler")
def test_the_clock_of_a_standby_is_compared_as_well(doctor, server):
    """After a failover, times are by its clock; a standby that cannot be reached is a warning."""
    kind = "mariadb" if server.flavor == "mariadb" else "mysql with GTIDs"
    closed = free_port()
    with server_of(kind, 7, server.cdc_password, skew=300) as standby:
        more = f"standbys: [{{host: 127.0.0.1, port: {standby.port}}}, {{host: 127.0.0.1, port: {closed}}}]"
        found = doctor(more=more)
    assert found["error"] == []
    (clock,) = (what for what, _ in found["warning"] if "clock" in what)
    assert f"the standby 127.0.0.1:{standby.port}'s clock is" in clock
    assert "seconds ahead of this machine's" in clock
    assert "the server's clock and this machine's agree" in text(found["ok"])
    assert f"the standby 127.0.0.1:{closed} could not take over now" in text(found["warning"])


@pytest.fixture
def s3_keys(s3_server, monkeypatch):
    monkeypatch.setenv("DOCTOR_TEST_KEY", s3_server.access_key)
    monkeypatch.setenv("DOCTOR_TEST_SECRET", s3_server.secret_key)


@pytest.mark.usefixtures("s3_keys")
def test_a_warehouse_in_s3_is_written_to(doctor, tmp_path, s3_server, bucket):
    """With the store's settings and keys; a missing bucket and wrong keys are errors, and nothing is left over."""
    keys = "access_key_env: DOCTOR_TEST_KEY, secret_key_env: DOCTOR_TEST_SECRET"
    store = {
        f'url: "file://{tmp_path}/store"': f'url: "s3://{bucket}/store", endpoint_url: "{s3_server.endpoint}", region: us-east-1, {keys}'
    }
    here = f'warehouse: "file://{tmp_path}/lake"'
    good = doctor(**store, **{here: f'warehouse: "s3://{bucket}/some/lake"'})
    assert "warehouse" not in text(good["error"])
    assert f"the warehouse s3://{bucket}/some/lake can be written to" in text(good["ok"])
    left = [one["Key"] for one in s3_server.client().list_objects_v2(Bucket=bucket).get("Contents", [])]
    assert [key for key in left if "lake" in key] == []
    missing = doctor(**store, **{here: 'warehouse: "s3://not-there/lake"'})
    assert "the warehouse s3://not-there/lake cannot be written to" in text(missing["error"])
    assert "NoSuchBucket" in text(missing["error"])
    other = 'properties: {s3.access-key-id: nobody, s3.secret-access-key: "hunter3"}'
    wrong = doctor(**store, **{here: f'warehouse: "s3://{bucket}/lake", {other}'})
    assert f"the warehouse s3://{bucket}/lake cannot be written to" in text(wrong["error"])
    assert "hunter3" not in str(wrong)


def test_the_settings_of_a_lake_in_s3_may_be_its_own(doctor, tmp_path, s3_server, bucket):
    """The store is a folder."""
    own = (
        f"properties: {{s3.endpoint: '{s3_server.endpoint}', client.region: us-east-1, s3.path-style-access: 'true', "
        f"s3.access-key-id: '{s3_server.access_key}', s3.secret-access-key: '{s3_server.secret_key}'}}"
    )
    found = doctor(**{f'warehouse: "file://{tmp_path}/lake"': f'warehouse: "s3://{bucket}/lake", {own}'})
    assert "warehouse" not in text(found["error"])
    assert f"the warehouse s3://{bucket}/lake can be written to" in text(found["ok"])


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
