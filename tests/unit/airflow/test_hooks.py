from __future__ import annotations

import json
import re
from pathlib import Path
from types import SimpleNamespace

import pytest

from cdc_airflow import connections, hooks
from cdc_airflow.connection_fields import named_connection
from cdc_airflow.connections import credentials_of, hop_login_of, refuse_other_store, store_keys_of
from cdc_airflow.hooks import CdcHook
from cdc_airflow.operators import PlanOperator
from cdc_lib.config import Credentials, HopLogin, ServerConfig, load_source
from cdc_lib.config.credentials import StoreKeys, store_keys_from_environment, take_handed
from cdc_lib.config.store import StoreConfig
from cdc_lib.errors import ConfigError

TOKEN_HOST = "shop.c1x2y3z4.eu-central-1.rds.amazonaws.com"


@pytest.fixture
def masked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What the hook asked Airflow to hide."""
    found: list[str] = []
    for module in (hooks, connections):
        monkeypatch.setattr(module, "mask_secret", found.append)
    return found


def use_connection(folder: Path, extra: str = "") -> Path:
    path = folder / "shop.yaml"
    text = path.read_text()
    path.write_text(text.replace("user: cdc, password_env: CDC_TEST_PASSWORD", f"connection: shop_db{extra}"))
    return path


def test_the_password_of_the_environment_is_taken_and_masked(
    sources: Path, masked: list[str], monkeypatch: pytest.MonkeyPatch
):
    """Airflow hides the passwords of connections automatically, not those of variables."""
    monkeypatch.setenv("CDC_TEST_PASSWORD", "tiger-7")
    credentials = CdcHook(sources / "shop.yaml").credentials
    assert (credentials.user, credentials.password) == ("cdc", "tiger-7")
    assert masked == ["tiger-7"]


def test_a_mysql_connection_serves_without_the_mysql_provider(
    sources: Path, masked: list[str], monkeypatch: pytest.MonkeyPatch
):
    """Only its log-in is asked for; host and port stand in the file."""
    monkeypatch.setenv("AIRFLOW_CONN_SHOP_DB", '{"conn_type": "mysql", "login": "reader", "password": "lion-8"}')
    credentials = CdcHook(use_connection(sources)).credentials
    assert (credentials.user, credentials.password) == ("reader", "lion-8")
    assert "lion-8" in masked


def test_the_user_of_the_file_wins_over_that_of_the_connection(
    sources: Path, masked: list[str], monkeypatch: pytest.MonkeyPatch
):
    """One connection may serve several users of a server."""
    monkeypatch.setenv("AIRFLOW_CONN_SHOP_DB", '{"conn_type": "mysql", "login": "reader", "password": "lion-8"}')
    assert CdcHook(use_connection(sources, ", user: cdc")).credentials.user == "cdc"


def test_the_connections_of_a_task_win_over_the_file(sources: Path, masked: list[str], monkeypatch: pytest.MonkeyPatch):
    """They go to its jobs too; one that makes tokens for itself takes none."""
    monkeypatch.setenv("AIRFLOW_CONN_SHOP_DB", '{"conn_type": "mysql", "login": "reader", "password": "lion-8"}')
    monkeypatch.setenv("AIRFLOW_CONN_KEYS", '{"conn_type": "cdc_store", "login": "key-1", "password": "key-2"}')
    path = sources / "shop.yaml"
    text = path.read_text()
    path.write_text(text.replace('store: {url: "file:', 'store: {url: "s3://bucket/cdc"} #'))
    task = PlanOperator(task_id="plan", source_file=str(path), conn_id="shop_db", store_conn_id="keys")
    handed = task.hook().handed_on()
    taken = take_handed(handed)
    assert taken == Credentials("cdc", "lion-8")
    assert store_keys_from_environment(load_source(path).store, handed) == StoreKeys("key-1", "key-2")
    assert {"lion-8", "key-2"} <= {*masked}
    tokens = 'rds_iam: {region: eu-central-1}, tls: {ca: "/ca.pem"}'
    path.write_text(text.replace("password_env: CDC_TEST_PASSWORD", tokens).replace("db.example", TOKEN_HOST))
    with pytest.raises(ConfigError, match=r"shop_db.*Leave out one"):
        _ = task.hook().config


def test_the_log_in_at_a_bastion_comes_from_its_connection(
    sources: Path, masked: list[str], monkeypatch: pytest.MonkeyPatch
):
    """Of the SSH provider's type, whose extra has the key; it goes to jobs too, and all of it is masked."""
    extra = '{"private_key": "k-3-y", "private_key_passphrase": "w-0-rd"}'
    monkeypatch.setenv("CDC_TEST_PASSWORD", "tiger-7")
    monkeypatch.setenv("AIRFLOW_CONN_HOP", json.dumps({"conn_type": "ssh", "login": "tunnel", "extra": extra}))
    path = sources / "shop.yaml"
    text = path.read_text()
    named = "password_env: CDC_TEST_PASSWORD, ssh: {host: bastion, connection: hop}"
    path.write_text(text.replace("password_env: CDC_TEST_PASSWORD", named))
    hook = CdcHook(path)
    assert hook.credentials.hop == HopLogin("tunnel", "", "k-3-y", "w-0-rd")
    assert take_handed(hook.handed_on()) == hook.credentials
    assert {"k-3-y", "w-0-rd"} <= {*masked}
    monkeypatch.setenv("AIRFLOW_CONN_HOP", '{"conn_type": "ssh", "login": "tunnel"}')
    with pytest.raises(ConfigError, match=r"hop has no password and no private_key.*Connections"):
        _ = CdcHook(path).credentials


def test_a_connection_without_a_password_is_refused_by_name(
    sources: Path, masked: list[str], monkeypatch: pytest.MonkeyPatch
):
    """The message says where to add it."""
    monkeypatch.setenv("AIRFLOW_CONN_SHOP_DB", '{"conn_type": "mysql", "login": "reader"}')
    with pytest.raises(ConfigError, match=r"shop_db has no password.*Connections"):
        _ = CdcHook(use_connection(sources)).credentials


def test_an_unset_variable_is_refused_by_name(sources: Path, masked: list[str], monkeypatch: pytest.MonkeyPatch):
    """The message names the variable."""
    monkeypatch.delenv("CDC_TEST_PASSWORD", raising=False)
    with pytest.raises(ConfigError, match="CDC_TEST_PASSWORD"):
        _ = CdcHook(sources / "shop.yaml").credentials


MASKS = "masks: [{tables: shop.customers, columns: [mail], mask: hash}]\n"


def test_the_key_of_the_hashes_is_the_password_of_a_connection_and_masked(
    sources: Path, masked: list[str], monkeypatch: pytest.MonkeyPatch
):
    """It goes to the drain with the log-in; a source without hashes asks for none."""
    monkeypatch.setenv("CDC_TEST_PASSWORD", "tiger-7")
    monkeypatch.setenv("AIRFLOW_CONN_MASKS", '{"conn_type": "generic", "password": "the key of the hashes"}')
    path = sources / "shop.yaml"
    assert CdcHook(path).mask_key == ""
    path.write_text(path.read_text() + MASKS + "mask_key_connection: masks\n")
    assert CdcHook(path).pipeline().credentials.mask_key == "the key of the hashes"
    assert "the key of the hashes" in masked


def test_a_connection_without_the_key_is_refused_by_name(
    sources: Path, masked: list[str], monkeypatch: pytest.MonkeyPatch
):
    """An empty key would make hashes that anybody can undo."""
    monkeypatch.setenv("AIRFLOW_CONN_MASKS", '{"conn_type": "generic"}')
    path = sources / "shop.yaml"
    path.write_text(path.read_text() + MASKS + "mask_key_connection: masks\n")
    with pytest.raises(ConfigError, match="masks has no password"):
        _ = CdcHook(path).mask_key


BANK = {"conn_type": "postgres", "login": "bank", "password": "lion-8"}


@pytest.mark.parametrize(
    ("connection", "allowed"),
    [
        ({"host": "bank.example"}, False),
        ({}, False),  # of another type: its password may be for anything
        ({"conn_type": "cdc_mysql", "host": "bank.example"}, False),
        ({"host": "db.example", "port": 5432}, False),
        ({"host": "db.example", "port": 3306}, True),
        ({"host": "bank.example", "extra": {"hosts": "x.example, db.example:3306"}}, True),
        ({"host": "bank.example", "extra": {"hosts": "*"}}, True),
        ({"conn_type": "mysql"}, True),
    ],
)
def test_the_log_in_of_a_connection_goes_to_its_host_alone(monkeypatch, connection, allowed):
    """Who writes a source file cannot send the password of any connection to a server of their own; standbys count as well."""
    monkeypatch.setenv("AIRFLOW_CONN_BANK", json.dumps({**BANK, **connection}))
    server = ServerConfig(host="db.example", connection="bank")
    hop = ServerConfig(
        host="h", user="u", password_env="P", socks={"host": "db.example", "port": 3306, "connection": "bank"}
    )
    if allowed:
        assert credentials_of(server).password == "lion-8"
        assert hop_login_of(hop).password == "lion-8"
        return
    for asked in (lambda: credentials_of(server), lambda: hop_login_of(hop)):
        with pytest.raises(ConfigError, match=r"is not for db\.example:3306") as caught:
            asked()
        assert "lion-8" not in str(caught.value)


def test_a_standby_gets_the_log_in_of_a_connection_only_if_the_connection_allows_it(monkeypatch):
    """A source file names standbys too."""
    server = ServerConfig(host="db.example", connection="bank")
    for extra, port in (({}, 1), ({"hosts": "evil.example:2"}, 2)):
        monkeypatch.setenv("AIRFLOW_CONN_BANK", json.dumps({**BANK, "host": "db.example", "extra": extra}))
        with pytest.raises(ConfigError, match=r"is not for evil\.example:1"):
            credentials_of(server, [("evil.example", port), ("evil.example", 1)])


S3 = {"url": "s3://lake/cdc"}
AZURE = {"url": "abfss://box@account.dfs.core.windows.net/cdc"}
GOOGLE = {"url": "gs://lake/cdc"}
OWN = {"endpoint_url": "https://s3.example:9000"}
ELSEWHERE = {"endpoint_url": "http://evil.example"}
FAKE_AZURE = {"url": "abfss://box@account.dfs.evil.example/cdc"}


@pytest.mark.parametrize(
    ("kind", "extra", "store", "refused"),
    [
        ("cdc_store", {}, S3 | ELSEWHERE, ""),  # it says nothing of where it is for
        ("cdc_store", S3, S3, ""),
        ("cdc_store", S3, {"url": "s3://other/cdc"}, ""),
        ("cdc_store", S3, S3 | ELSEWHERE, "evil.example:80"),
        ("cdc_store", S3 | OWN, S3 | {"endpoint_url": "https://s3.example:9000/"}, ""),
        ("cdc_store", OWN, S3 | OWN, ""),
        ("cdc_store", S3 | OWN, S3, ""),
        ("cdc_store", OWN, S3 | {"endpoint_url": "https://s3.example"}, "s3.example:443"),
        ("cdc_store", S3 | {"hosts": "evil.example:80"}, S3 | ELSEWHERE, ""),
        ("cdc_store", S3 | {"hosts": "*"}, S3 | ELSEWHERE, ""),
        ("cdc_store", GOOGLE, GOOGLE | ELSEWHERE, "evil.example:80"),
        ("google_cloud_platform", {}, GOOGLE, ""),
        ("google_cloud_platform", {}, GOOGLE | ELSEWHERE, "evil.example:80"),
        ("wasb", {}, AZURE, ""),
        ("wasb", {}, AZURE | ELSEWHERE, "evil.example:80"),
        ("wasb", {}, FAKE_AZURE, "account.dfs.evil.example:443"),
        ("cdc_store", AZURE, FAKE_AZURE, "account.dfs.evil.example:443"),
        ("cdc_store", FAKE_AZURE, FAKE_AZURE, ""),
    ],
)
def test_the_keys_of_a_store_are_used_at_the_endpoint_of_their_connection(monkeypatch, kind, extra, store, refused):
    """A source file names an endpoint, and who writes it need not be who may read the connection."""
    monkeypatch.setenv("AIRFLOW_CONN_BANK", json.dumps({"conn_type": kind, "password": "lion-8", "extra": extra}))
    config = SimpleNamespace(
        store=StoreConfig.model_validate({**store, "connection": "bank"}), lake=SimpleNamespace(properties={})
    )
    if not refused:
        refuse_other_store(named_connection("bank"), config.store)
        return
    with pytest.raises(ConfigError, match=f"is not for {re.escape(refused)} ") as caught:
        store_keys_of(config)
    assert "lion-8" not in str(caught.value)


def test_an_endpoint_of_the_lake_is_one_of_the_connection_too(monkeypatch):
    monkeypatch.setenv(
        "AIRFLOW_CONN_BANK", json.dumps({"conn_type": "cdc_store", "login": "k", "password": "s", "extra": S3})
    )
    lake = SimpleNamespace(properties={"s3.endpoint": "https://evil.example"})
    config = SimpleNamespace(store=StoreConfig.model_validate({**S3, "connection": "bank"}), lake=lake)
    with pytest.raises(ConfigError, match=r"is not for evil\.example:443"):
        store_keys_of(config)
    lake.properties = {}
    assert store_keys_of(config) == StoreKeys("k", "s")
