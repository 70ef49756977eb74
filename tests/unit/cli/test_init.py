"""``cdc init``: the file of a new source, from answers or from options."""

from __future__ import annotations

import json

import pytest
import yaml
from typer.testing import CliRunner

from cdc_lib.cli.init import DAG_FILES
from cdc_lib.cli.main import app
from cdc_lib.cli.settings import DEFAULT_SOURCES, default_sources
from cdc_lib.config import DEFAULTS_FILE, load_source
from tests.harness.pages import ROOT

SHOP = ("shop", "--host", "127.0.0.1", "--tables", "shop.*")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder for source files that is not there yet; no password is in the environment."""
    monkeypatch.delenv("SHOP_PASSWORD", raising=False)
    return tmp_path / "dags" / "sources"


@pytest.fixture
def init(folder):
    """Call ``cdc init`` with arguments and the answers of somebody at the keyboard."""

    def _init(*arguments, answers=""):
        return CliRunner().invoke(app, ["--sources", str(folder), "init", *arguments], input=answers)

    return _init


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


def test_what_no_option_gives_is_asked_for_and_an_empty_answer_is_the_default(init, folder):
    """Nothing is asked for that the folder's defaults hold."""
    folder.mkdir(parents=True)
    defaults = {
        "store": {"url": "file:///s"},
        "lake": {"type": "jdbc", "uri": "jdbc:sqlite:/c.db", "warehouse": "file:///l"},
    }
    (folder / DEFAULTS_FILE).write_text(yaml.safe_dump(defaults))
    result = init(answers="shop\ndb.example.com\n\nreader\n\nshop.*, crm.people\n")
    assert result.exit_code == 0, result.output
    config = load_source(folder / "shop.yaml")
    assert (config.server.host, config.server.port, config.server.user) == ("db.example.com", 3306, "reader")
    assert config.tables.include == ("shop.*", "crm.people")
    assert yaml.safe_load((folder / DEFAULTS_FILE).read_text()) == defaults


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
        ((*SHOP, "--port", "99999"), "server.port"),
        ((*SHOP, "--tables", "no pattern"), "tables.include"),
        ((*SHOP, "--store", "ftp://x"), "store.url"),
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


def test_without_a_folder_here_the_home_of_airflow_is_taken(tmp_path, monkeypatch):
    """On a worker nobody has to name it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("CDC_SOURCES", raising=False)
    monkeypatch.setenv("AIRFLOW_HOME", str(tmp_path / "airflow"))
    assert default_sources() == tmp_path / "airflow" / "dags" / "sources"
    DEFAULT_SOURCES.mkdir(parents=True)
    assert default_sources() == DEFAULT_SOURCES
