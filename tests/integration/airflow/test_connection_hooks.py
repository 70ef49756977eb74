"""What the Test buttons of the connection types say, against real servers, and stores whose keys only Airflow knows."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from cdc_airflow.connections import SourceConnectionHook, StoreConnectionHook
from cdc_airflow.hooks import CdcHook
from cdc_airflow.metrics_app import Readings
from cdc_airflow.page.desk import Desk
from cdc_airflow.page.listed import Faulty, Folder, Listed
from cdc_lib.config import load_source
from cdc_lib.config.credentials import store_keys_from_environment
from cdc_lib.errors import CdcError, ConfigError
from cdc_lib.model.azure_secret import azure_secret
from cdc_lib.store.objects.open import open_store
from tests.harness.servers import MySqlServer
from tests.harness.store.google_account import EMAIL, TokenServer, account_key


@pytest.fixture
def connect(monkeypatch: pytest.MonkeyPatch):
    """Makes the connection ``tested``."""

    def make(kind: str, **given: object) -> None:
        extra = json.dumps(given.pop("extra", {}))
        monkeypatch.setenv("AIRFLOW_CONN_TESTED", json.dumps({"conn_type": kind, "extra": extra, **given}))

    return make


def address(server: MySqlServer) -> dict[str, object]:
    return {
        "host": server.host,
        "port": server.port,
        "login": server.cdc_user,
        "password": server.cdc_password,
    }


@pytest.fixture(params=["mysql", "mariadb"])
def server(request: pytest.FixtureRequest):
    """A server of each kind."""
    return request.getfixturevalue(f"{request.param}_server")


def test_a_server_that_can_be_captured_says_so_line_by_line(server: MySqlServer, connect, request):
    """One line for each finding, the tables among them."""
    database = request.getfixturevalue(f"{server.flavor}_database")
    server.execute("CREATE TABLE orders (id INT PRIMARY KEY)", database=database)
    connect("cdc_mysql", **address(server), extra={"tables": f"{database}.*, {database}.missing"})
    good, message = SourceConnectionHook("tested").test_connection()
    lines = message.splitlines()
    assert not good
    assert {line.split(":")[0] for line in lines} <= {"ok", "warning", "error"}
    assert any(line == "ok: 1 table captured by tables.include" for line in lines)
    assert [line for line in lines if line.startswith("error:")] == [
        line for line in lines if f"{database}.missing" in line
    ]
    connect("cdc_mysql", **address(server), extra={"tables": f"{database}.*"})
    assert SourceConnectionHook("tested").test_connection()[0]
    assert str(server.cdc_password) not in message


def test_missing_grants_are_printed_as_statements(server: MySqlServer, connect):
    """So that somebody can hand them to the administrator of the database."""
    server.execute("CREATE USER bare@'%' IDENTIFIED BY 'hunter2'")
    try:
        connect("cdc_mysql", **{**address(server), "login": "bare", "password": "hunter2"})
        good, message = SourceConnectionHook("tested").test_connection()
    finally:
        server.execute("DROP USER bare@'%'")
    assert not good
    assert "GRANT" in message
    assert "hunter2" not in message


def test_a_server_that_does_not_answer_and_a_wrong_field_are_named(mysql_server: MySqlServer, connect):
    """No stack trace, no guess; the connection that is completed as the message says can be used."""
    connect("cdc_mysql", host="127.0.0.1", port=1, login="cdc", password="hunter2")
    good, message = SourceConnectionHook("tested").test_connection()
    assert (good, message.startswith("error:")) == (False, True)
    assert "host=127.0.0.1, port=1" in message
    connect("cdc_mysql", login="cdc", password="hunter2")
    assert SourceConnectionHook("tested").test_connection() == (
        False,
        "error: the Airflow connection tested has no host. Add it under Admin → Connections.",
    )
    connect("cdc_mysql", **address(mysql_server))
    assert SourceConnectionHook("tested").test_connection()[0]
    connect("cdc_mysql", host="db", login="cdc", password="hunter2", extra={"tables": "shop."})
    assert "'shop.'" in SourceConnectionHook("tested").test_connection()[1]


def test_a_connection_that_names_a_source_file_has_all_of_it_checked(
    mysql_server: MySqlServer, mysql_database: str, connect, tmp_path: Path
):
    """As cdc doctor does: the store, the lake, the first position; and an address of the file that the connection does not allow."""
    mysql_server.execute("CREATE TABLE orders (id INT PRIMARY KEY)", database=mysql_database)
    file = tmp_path / "shop.yaml"
    server = {"host": mysql_server.host, "port": mysql_server.port, "connection": "tested"}
    file.write_text(yaml.safe_dump({**plain(tmp_path), "server": server, "tables": [f"{mysql_database}.*"]}))
    other = {**address(mysql_server), "host": "another.example"}
    allowed = {"source_file": str(file), "hosts": f"db.example, {mysql_server.host}:{mysql_server.port}"}
    connect("cdc_mysql", **other, extra=allowed)
    good, message = SourceConnectionHook("tested").test_connection()
    assert good, message
    assert f"ok: the store file://{tmp_path}/store takes and gives back what is written" in message
    connect("cdc_mysql", **other, extra={"source_file": str(file)})
    good, message = SourceConnectionHook("tested").test_connection()
    assert not good
    assert f"the log-in of the connection tested is not for {mysql_server.host}:{mysql_server.port}" in message


def plain(folder: Path) -> dict[str, object]:
    lake = {"type": "jdbc", "uri": f"jdbc:sqlite:{folder}/cat.db", "warehouse": f"file://{folder}/lake"}
    return {
        "server": {"host": "db.example", "user": "cdc", "password_env": "NOT_NEEDED"},
        "tables": ["shop.*"],
        "store": {"url": f"file://{folder}/store"},
        "lake": lake,
    }


@pytest.fixture
def on_s3(s3_server, bucket: str, tmp_path: Path) -> Path:
    """A source file whose store is a bucket with keys that only the connection ``tested`` has."""
    settings = {"url": f"s3://{bucket}/cdc", "endpoint_url": s3_server.endpoint, "region": s3_server.region}
    file = tmp_path / "shop.yaml"
    file.write_text(yaml.safe_dump({**plain(tmp_path), "store": {**settings, "connection": "tested"}}))
    return file


def test_the_keys_of_a_store_come_from_its_connection_and_go_to_the_jobs(on_s3: Path, s3_server, connect):
    """A job finds them in its variables; outside Airflow one error says what to add."""
    connect("cdc_store", login=s3_server.access_key, password=s3_server.secret_key)
    hook = CdcHook(on_s3)
    hook.lake_pipeline().store.put("shop/here", b"1")
    handed = hook.store_handed_on()
    config = load_source(on_s3)
    keys = store_keys_from_environment(config.store, handed)
    assert keys is not None
    assert open_store(config.store, keys).get("shop/here") is not None
    with pytest.raises(ConfigError, match=r"only Airflow knows the keys.*access_key_env"):
        open_store(config.store)


def test_the_page_and_the_metrics_read_a_store_with_the_keys_of_its_connection(
    on_s3: Path, s3_server, connect, monkeypatch
):
    """Without the connection the source is at fault, and it is looked for again; other keys open the store again."""
    config = load_source(on_s3)
    sources = Folder(on_s3.parent, Desk())
    (fault,) = sources._load().values()
    assert isinstance(fault, Faulty)
    assert "there is no Airflow connection tested" in str(fault.error)
    assert Readings().of({"shop": config}) == {"shop": None}
    monkeypatch.setattr("cdc_airflow.page.listed.KEYS_FOR", 0)
    connect("cdc_store", login=s3_server.access_key, password="wrong")
    (refused,) = sources._load().values()
    assert isinstance(refused, Listed)
    with pytest.raises(CdcError):
        refused.held.read()
    connect("cdc_store", login=s3_server.access_key, password=s3_server.secret_key)
    (shop,) = sources._load().values()
    assert isinstance(shop, Listed)
    assert shop.held.read().drain is None
    assert Readings().of({"shop": config})["shop"] is not None


def test_the_test_of_a_store_writes_and_removes_a_probe(s3_server, bucket: str, connect):
    """Keys that may not write are an error with the server's answer."""
    extra = {"url": f"s3://{bucket}/cdc", "endpoint_url": s3_server.endpoint, "region": s3_server.region}
    connect("cdc_store", login=s3_server.access_key, password=s3_server.secret_key, extra=extra)
    good, message = StoreConnectionHook("tested").test_connection()
    assert (good, message) == (True, f"ok: the store s3://{bucket}/cdc takes and gives back what is written")
    connect("cdc_store", login=s3_server.access_key, password="wrong", extra=extra)
    good, message = StoreConnectionHook("tested").test_connection()
    assert (good, message.startswith("error:")) == (False, True)
    assert s3_server.secret_key not in message


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"extra": {}}, "url is missing"),
        ({"extra": {"url": "ftp://host"}}, "abfss://container@account.dfs.core.windows.net/prefix"),
        ({"extra": {"url": "s3://bucket"}, "login": "only the id"}, "secret key"),
    ],
)
def test_a_store_that_is_not_filled_in_is_refused_by_its_field(connect, given, named):
    """One line, before anything is asked."""
    connect("cdc_store", **given)
    good, message = StoreConnectionHook("tested").test_connection()
    assert (good, len(message.splitlines())) == (False, 1)
    assert named in message


@pytest.mark.parametrize("held", ["password", "keyfile_dict", "key_path"])
def test_the_key_of_a_service_account_comes_from_a_connection_and_goes_to_the_jobs(
    gcs_server, gcs_bucket: str, connect, tmp_path: Path, held: str
):
    """Of a connection of the type CDC store or Google Cloud; its Test button tries the store."""
    settings = {"url": f"gs://{gcs_bucket}/cdc", "endpoint_url": gcs_server.endpoint}
    file = tmp_path / "shop.yaml"
    file.write_text(yaml.safe_dump({**plain(tmp_path), "store": {**settings, "connection": "tested"}}))
    with TokenServer() as tokens:
        key = account_key(tokens.url)
        (tmp_path / "key.json").write_text(key)
        if held == "password":
            connect("cdc_store", password=key, extra=settings)
        else:
            extra = {held: key if held == "keyfile_dict" else str(tmp_path / "key.json")}
            connect("google_cloud_platform", extra={**settings, **extra})
        good, message = StoreConnectionHook("tested").test_connection()
        assert good, message
        hook = CdcHook(file)
        hook.lake_pipeline().store.put("shop/here", b"1")
        assert tokens.asked_by == {EMAIL}
        config = load_source(file)
        keys = store_keys_from_environment(config.store, hook.store_handed_on())
        assert keys is not None
        assert keys.secret_key == key
        assert "PRIVATE" not in message + repr(keys)


def test_a_connection_without_the_key_of_a_service_account_says_what_it_lacks(connect, tmp_path: Path):
    """Nothing at all, a file that is not there, and something else."""
    file = tmp_path / "shop.yaml"
    file.write_text(yaml.safe_dump({**plain(tmp_path), "store": {"url": "gs://b", "connection": "tested"}}))
    connect("cdc_store")
    with pytest.raises(ConfigError, match="service account"):
        CdcHook(file).store_handed_on()
    connect("google_cloud_platform", extra={"key_path": str(tmp_path / "none.json")})
    with pytest.raises(ConfigError, match="key file of the connection tested cannot be read"):
        CdcHook(file).store_handed_on()
    (tmp_path / "none.json").write_text(account_key("https://oauth2.example/token"))
    assert len(CdcHook(file).store_handed_on()) == 2
    connect("cdc_store", password="a secret")
    with pytest.raises(ConfigError, match="not the JSON key") as caught:
        CdcHook(file).store_handed_on()
    assert "a secret" not in str(caught.value)


@pytest.mark.parametrize("held", ["password", "account key", "connection_string", "sas_token"])
def test_the_secret_of_azure_comes_from_a_connection_and_goes_to_the_jobs(
    azure_server, azure_container: str, connect, tmp_path: Path, held: str
):
    """Of a connection of the type CDC store or Azure Blob Storage; its Test button tries the store."""
    url = f"abfss://{azure_container}@{azure_server.host}/cdc"
    settings = {"url": url, "endpoint_url": azure_server.endpoint}
    file = tmp_path / "shop.yaml"
    file.write_text(yaml.safe_dump({**plain(tmp_path), "store": {**settings, "connection": "tested"}}))
    if held == "connection_string":
        connect("wasb", extra={**settings, held: azure_server.connection_string})
    elif held == "sas_token":
        connect("wasb", extra={**settings, held: f"https://account.blob.core.windows.net?{azure_server.sas()}"})
    else:
        connect("cdc_store" if held == "password" else "wasb", password=azure_server.account_key, extra=settings)
    good, message = StoreConnectionHook("tested").test_connection()
    assert (good, message) == (True, f"ok: the store {url} takes and gives back what is written")
    hook = CdcHook(file)
    hook.lake_pipeline().store.put("shop/here", b"1")
    keys = store_keys_from_environment(load_source(file).store, hook.store_handed_on())
    assert keys is not None
    assert keys.access_key == azure_server.account
    assert azure_secret(keys.secret_key, azure_server.account)
    assert keys.secret_key not in message + repr(keys)


def test_a_connection_without_a_secret_of_azure_says_what_it_lacks(azure_server, connect, tmp_path: Path):
    """Nothing at all, a service principal, and something else."""
    file = tmp_path / "shop.yaml"
    store = {"url": f"abfss://lake@{azure_server.host}", "connection": "tested"}
    file.write_text(yaml.safe_dump({**plain(tmp_path), "store": store}))
    connect("cdc_store")
    with pytest.raises(ConfigError, match="account key, SAS token or connection string"):
        CdcHook(file).store_handed_on()
    connect("wasb", login="client", password="c2VjcmV0IHNlY3JldCBzZWNyZXQ=", extra={"tenant_id": "tenant"})
    with pytest.raises(ConfigError, match="service principal") as caught:
        CdcHook(file).store_handed_on()
    assert "AZURE_CLIENT_SECRET" in caught.value.hint
    connect("cdc_store", password="a secret")
    with pytest.raises(ConfigError, match="not one of Azure Storage") as caught:
        CdcHook(file).store_handed_on()
    assert "a secret" not in str(caught.value)
