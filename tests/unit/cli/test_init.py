"""``cdc init``: the file of a new source, from answers or from options."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from functools import partial

import pytest
import yaml
from typer.testing import CliRunner

from cdc_lib.cli.init import DAG_FILES
from cdc_lib.cli.main import app
from cdc_lib.cli.questions import data_folder
from cdc_lib.cli.settings import DEFAULT_SOURCES, default_sources
from cdc_lib.config import DEFAULTS_FILE, load_source
from tests.harness.docs.pages import ROOT
from tests.harness.shop.terminal import typed

COMMAND = (sys.executable, "-m", "cdc_lib.cli")
SHOP = ("shop", "--host", "127.0.0.1", "--tables", "shop.*")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder for source files that is not there yet; no password is in the environment."""
    monkeypatch.delenv("SHOP_PASSWORD", raising=False)
    return tmp_path / "dags" / "sources"


@pytest.fixture
def init(folder):
    """Call ``cdc init`` with arguments, without a terminal."""

    def _init(*arguments):
        return CliRunner().invoke(app, ["--sources", str(folder), "init", *arguments])

    return _init


@pytest.fixture
def answered(folder):
    """Call ``cdc init`` in a terminal and type answers; returns what the terminal shows."""

    def _answered(*answers):
        code, shown = typed((*COMMAND, "--sources", str(folder), "init"), answers)
        assert code == 0, shown
        return shown

    return _answered


def test_options_alone_give_files_that_load(init, folder, tmp_path):
    """The source's own, and the one that all sources of the folder share."""
    places = (
        "--store",
        f"file://{tmp_path}/s",
        "--warehouse",
        f"file://{tmp_path}/l",
        "--catalog",
        f"jdbc:sqlite:{tmp_path}/c.db",
    )
    result = init(*SHOP, *places, "--tables", "other.*", "--port", "3307", "--yes")
    assert result.exit_code == 0, result.output
    config = load_source(folder / "shop.yaml")
    assert (config.server.host, config.server.port, config.server.user) == ("127.0.0.1", 3307, "cdc")
    assert config.server.password_env == "SHOP_PASSWORD"
    assert config.tables.include == ("shop.*", "other.*")
    assert (config.store.url, config.lake.warehouse) == (f"file://{tmp_path}/s", f"file://{tmp_path}/l")
    assert sorted(path.name for path in folder.iterdir()) == [DEFAULTS_FILE, "shop.yaml"]
    assert "next: set SHOP_PASSWORD, then: cdc doctor" in result.output


def test_what_no_option_gives_is_asked_for_and_an_empty_answer_is_the_default(answered, folder):
    """Nothing is asked for that the folder's defaults hold."""
    folder.mkdir(parents=True)
    defaults = {
        "store": {"url": "file:///s"},
        "lake": {"type": "jdbc", "uri": "jdbc:sqlite:/c.db", "warehouse": "file:///l"},
    }
    (folder / DEFAULTS_FILE).write_text(yaml.safe_dump(defaults))
    answered("shop", "db.example.com", "", "reader", "", "", "shop.*, crm.people")
    config = load_source(folder / "shop.yaml")
    assert (config.server.host, config.server.port, config.server.user) == ("db.example.com", 3306, "reader")
    assert config.tables.include == ("shop.*", "crm.people")
    assert yaml.safe_load((folder / DEFAULTS_FILE).read_text()) == defaults


def test_the_place_of_everything_is_asked_for(answered, folder):
    """S3 with its endpoint, region and keys, the Spark server, and the engines that read; no secret is in a file."""
    server = ("shop", "db", "", "", "", __file__, "shop.*")
    store = ("s3://bucket/cdc", "https://s3.example.com:9000", "eu-central-1", "S3_ACCESS", "S3_SECRET")
    shown = answered(*server, *store, "", "", "spark, duckdb", "http://spark.example.com:8998", "")
    config = load_source(folder / "shop.yaml")
    assert (config.store.url, config.store.endpoint_url, config.store.region) == store[:3]
    assert (config.store.access_key_env, config.store.secret_key_env) == store[3:]
    assert str(config.server.tls.ca) == __file__
    assert config.lake.warehouse == "s3://bucket/lake"
    assert config.merge.spark_server is not None
    assert config.merge.spark_server.url == "http://spark.example.com:8998"
    assert config.lake.readers == ("spark", "duckdb")
    assert "next: set CDC_SPARK_TOKEN, S3_ACCESS, S3_SECRET, SHOP_PASSWORD, then: cdc doctor" in shown


def test_a_wrong_answer_is_asked_for_again(answered, folder):
    """With what is wrong; the answers before it are not lost."""
    shown = answered(
        "no name!", "shop", "db", "70000", "x", "3307", "", "", "/no/ca.pem", "", "none", "shop.*",
        "ftp://bucket", "file:///s", "", "file:///l", "excel", "other", "spark:8998", "",
    )  # fmt: skip
    config = load_source(folder / "shop.yaml")
    assert (config.server.port, config.tables.include, config.store.url) == (3307, ("shop.*",), "file:///s")
    assert config.lake.readers == ("other",)
    assert shown.count("Error: ") == 8
    assert "'starrocks' or 'trino' (given 'excel')" in shown


@pytest.mark.parametrize(
    ("places", "keys"),
    [
        (("gs://bucket/cdc", "GOOGLE_KEY"), {"service_account_env": "GOOGLE_KEY"}),
        (("abfss://cdc@account.dfs.core.windows.net/a", "AZURE_KEY"), {"azure_secret_env": "AZURE_KEY"}),
    ],
    ids=["google", "azure"],
)
def test_each_store_has_its_own_secret(init, folder, places, keys):
    url, secret = places
    result = init(*SHOP, "--store", url, "--secret-key-env", secret, "--yes")
    assert result.exit_code == 0, result.output
    store = yaml.safe_load((folder / DEFAULTS_FILE).read_text())["store"]
    assert store == {"url": url, **keys}


def test_everything_is_set_that_the_shipped_defaults_set(init, folder):
    """A folder that ``cdc init`` began works like that of the repository: rows are compared after merges, too."""
    keys = ("--access-key-env", "A", "--secret-key-env", "B")
    places = ("--store", "s3://b/cdc", "--endpoint", "http://s3:9000", *keys, "--spark-server", "http://spark:8998")
    assert init(*SHOP, *places, "--yes").exit_code == 0
    written, shipped = (
        yaml.safe_load(path.read_text()) for path in (folder / DEFAULTS_FILE, ROOT / "dags" / "sources" / DEFAULTS_FILE)
    )
    shipped["merge"].pop("spark_master")  # where there is no Spark server
    for section, values in shipped.items():
        assert section in written
        if isinstance(values, dict):
            assert values.keys() <= written[section].keys()
    assert (written["verify"], written["start"]) == (shipped["verify"], shipped["start"])


def test_batches_and_lake_are_where_this_user_can_write(tmp_path, monkeypatch):
    """Else the first run of somebody who presses Enter ends at a folder of root."""
    monkeypatch.setenv("HOME", str(tmp_path))
    assert data_folder(tmp_path / "not" / "there" / "yet") == tmp_path / "not" / "there" / "yet"
    (tmp_path / "file").touch()
    assert data_folder(tmp_path / "file" / "cdc") == tmp_path / ".local" / "share" / "cdc"
    if os.geteuid():  # root writes everywhere
        assert data_folder() == tmp_path / ".local" / "share" / "cdc"


def test_without_a_terminal_nothing_is_asked(folder):
    """A script whose input never ends gets the name of what is missing."""
    command = (*COMMAND, "--sources", str(folder), "init", "shop", "--host", "db")
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as script:
        assert script.stdout is not None
        assert b"--tables is missing" in script.stdout.read()
        assert script.wait() == 2
    assert not folder.exists()


def test_an_option_that_has_no_effect_is_refused(init, folder):
    """Somebody would believe that their store is used."""
    assert init(*SHOP, "--yes").exit_code == 0
    for source, options in (("other", ("--store", "s3://b/c")), ("third", ("--warehouse", "s3://b/l"))):
        result = init(source, *SHOP[1:], *options, "--yes")
        assert result.exit_code == 2
        assert f"{options[0]} would have no effect" in result.output
        assert not (folder / f"{source}.yaml").exists()


def test_an_authority_is_written_and_the_servers_certificate_is_checked(init, folder):
    assert init(*SHOP, "--ca", "/etc/cdc/db-ca.pem", "--yes").exit_code == 0
    tls = load_source(folder / "shop.yaml").server.tls
    assert (str(tls.ca), tls.verify) == ("/etc/cdc/db-ca.pem", True)


def test_a_connection_of_airflow_gives_the_password(init, folder):
    """Then no variable is named, and the next step is in Airflow."""
    result = init(*SHOP, "--connection", "shop_db", "--yes")
    assert result.exit_code == 0, result.output
    server = yaml.safe_load((folder / "shop.yaml").read_text())["server"]
    assert (server["connection"], "password_env" in server) == ("shop_db", False)
    assert "test the connection shop_db in Airflow" in result.output


def test_a_file_that_is_there_is_never_replaced(init, folder):
    """Neither that of the source, nor one with the other suffix or in other letters."""
    folder.mkdir(parents=True)
    for source, name in (("shop", "shop.yaml"), ("stock", "stock.yml"), ("Shop", "shop.yaml")):
        (folder / name).write_text("mine")
        result = init(source, *SHOP[1:], "--yes")
        assert result.exit_code == 2
        assert "there is a source" in result.output
        assert name in result.output
        assert (folder / name).read_text() == "mine"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("../../etc/shop", *SHOP[1:]), "is not a valid name of a source"),
        (("shop", "--tables", "shop.*"), "--host is missing"),
        (("shop", "--host", "db"), "--tables is missing"),
        ((), "SOURCE and --host and --tables are missing"),
        (("shop", "--access-key-env", "A"), "--host and --tables and --secret-key-env are missing"),
        ((*SHOP, "--port", "99999"), "server.port"),
        ((*SHOP, "--tables", "no pattern"), "tables.include"),
        ((*SHOP, "--store", "ftp://x"), "store.url"),
        ((*SHOP, "--endpoint", "http://s3:9000"), "--endpoint would have no effect"),
        ((*SHOP, "--store", "s3://b/c", "--access-key-env", "A"), "--secret-key-env is missing"),
        ((*SHOP, "--spark-server", "spark:8998"), "merge.spark_server.url"),
        ((*SHOP, "--readers", "excel"), "lake.readers"),
    ],
)
def test_a_wrong_value_is_named_and_nothing_is_written(init, folder, arguments, message):
    """Airflow would show a half-right file as an import error."""
    result = init(*arguments, "--yes")
    assert result.exit_code == 2
    assert message in result.output
    assert not folder.exists()


def test_the_result_is_printed_as_json(init, folder, monkeypatch):
    """With what the check found; the server is not there, so that the exit status is 1 and the file stays."""
    monkeypatch.setenv("SHOP_PASSWORD", "hunter2")
    result = init(*SHOP, "--port", "1", "--yes", "--json")
    found = json.loads(result.stdout)
    assert result.exit_code == 1
    assert [path.rpartition("/")[2] for path in found["files"]] == [DEFAULTS_FILE, "shop.yaml"]
    assert any(one["level"] == "error" and "port=1" in one["what"] for one in found["findings"])
    assert "hunter2" not in result.output
    assert (folder / "shop.yaml").exists()


def test_the_dag_files_are_written_beside_the_sources_and_one_that_is_there_stays(init, folder, tmp_path):
    """Airflow makes the DAGs of the source without a copy by hand; somebody's own DAG file is theirs."""
    folder.mkdir(parents=True)
    kept = folder.parent / "cdc_maintenance.py"
    kept.write_text("# none here\n")
    result = init(
        *SHOP,
        "--store",
        "file:///s",
        "--warehouse",
        "file:///l",
        "--catalog",
        "jdbc:sqlite:/c.db",
        "--airflow",
        "--yes",
    )
    assert result.exit_code == 0, result.output
    assert kept.read_text() == "# none here\n"
    assert {one.name for one in folder.parent.glob("*.py")} == set(DAG_FILES)
    for name in {*DAG_FILES} - {kept.name}:
        assert (folder.parent / name).read_text() == (ROOT / "dags" / name).read_text()
        assert name in result.output.replace("\n", "")


def test_in_the_home_of_airflow_the_dag_files_are_written_without_an_option(tmp_path):
    """Also where the folder of the command has sources, as a checkout has; the next command finds the new one."""
    (tmp_path / "dags" / "sources").mkdir(parents=True)
    environ = {name: value for name, value in os.environ.items() if name != "CDC_SOURCES"}
    environ |= {"AIRFLOW_HOME": str(tmp_path / "airflow"), "SHOP_PASSWORD": "hunter2", "PYTHONPATH": str(ROOT)}
    run = partial(subprocess.run, cwd=tmp_path, env=environ, capture_output=True, text=True, check=False)
    made = run((*COMMAND, "init", *SHOP, "--port", "1", "--store", f"file://{tmp_path}/s"))
    dags = tmp_path / "airflow" / "dags"
    assert {one.name for one in dags.iterdir()} == {*DAG_FILES, "sources"}, made.stdout + made.stderr
    assert "127.0.0.1" in run((*COMMAND, "doctor", "shop")).stdout


@pytest.fixture
def somewhere(tmp_path, monkeypatch):
    """A folder with nothing in it, the home of somebody who has set no variable."""
    monkeypatch.chdir(tmp_path)
    for name in ("CDC_SOURCES", "AIRFLOW_HOME", "AIRFLOW_CONFIG", "AIRFLOW__CORE__DAGS_FOLDER"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


def test_sources_are_below_the_dags_of_airflow(somewhere, monkeypatch):
    """As its variables say, else its configuration, else its home."""
    assert default_sources() == DEFAULT_SOURCES
    home = somewhere / "airflow"
    home.mkdir()
    (home / "airflow.cfg").write_text("[core]\n# dags_folder = /comment\n")
    assert default_sources() == home / "dags" / "sources"
    (home / "airflow.cfg").write_text("[core]\ndags_folder = /srv/dags\n")
    assert str(default_sources()) == "/srv/dags/sources"
    monkeypatch.setenv("AIRFLOW__CORE__DAGS_FOLDER", "/opt/dags")
    assert str(default_sources()) == "/opt/dags/sources"


def test_sources_here_go_before_an_airflow_that_no_variable_names(somewhere, monkeypatch):
    """Somebody works in a checkout, and has an Airflow as well."""
    DEFAULT_SOURCES.mkdir(parents=True)
    (somewhere / "airflow").mkdir()
    (somewhere / "airflow" / "airflow.cfg").write_text("[core]\n")
    assert default_sources() == DEFAULT_SOURCES
    monkeypatch.setenv("AIRFLOW_HOME", str(somewhere / "airflow"))
    assert default_sources() == somewhere / "airflow" / "dags" / "sources"
