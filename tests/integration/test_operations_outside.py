"""Messages of docs/operations.md about a server without a binlog and about S3: what the page says lets the source continue."""

from __future__ import annotations

import json

import pytest

from cdc_lib.store.objects import open as open_module
from cdc_lib.store.objects import s3
from tests.harness.servers import MariaDbServer
from tests.harness.store.google_account import TokenServer, account_key
from tests.integration.test_operations_config import Shop, _continues, _refused


@pytest.fixture
def shop_on(tmp_path, monkeypatch):
    """Make a shop on a server."""

    def _shop_on(server, database):
        monkeypatch.setenv("OPERATIONS_PASSWORD", server.cdc_password)
        return Shop(server, database, tmp_path)

    return _shop_on


def test_a_server_without_a_binlog_is_reported_until_it_is_started_with_one(shop_on):
    """By a restart with ``--log-bin``."""
    with MariaDbServer(settings={"log-bin": None, "skip-log-bin": 1}) as server:
        server.execute("CREATE DATABASE shop")
        shop = shop_on(server, "shop")
        shop.write(shop.settings())
        _refused(shop, "cdc step plan shop", "the server writes no binlog", code=1)
        server._settings = [one for one in server._settings if "skip-log-bin" not in one] + ["--log-bin=binlog"]
        server.restart()
        _continues(shop)


def test_a_server_that_takes_no_more_connections_is_reported_until_the_limit_is_raised(
    shop_on, mariadb_server, mariadb_database
):
    """The hint names the limits, and not the address."""
    shop = shop_on(mariadb_server, mariadb_database)
    shop.write(shop.settings())
    limit = f"ALTER USER {mariadb_server.cdc_user} WITH MAX_CONNECTIONS_PER_HOUR"
    mariadb_server.execute(f"{limit} 1")
    try:
        _refused(shop, "cdc step drain shop", "the server cannot be reached:", code=1)
        assert "raise max_connections, or the limit of the user" in " ".join(
            shop.cdc("cdc step plan shop").output.split()
        )
    finally:
        mariadb_server.execute(f"{limit} 0")
    _continues(shop)


def test_wrong_keys_of_the_store_are_reported_until_they_are_right(
    shop_on, mariadb_server, mariadb_database, s3_server, bucket, monkeypatch
):
    """The hint says what to check; nothing was written."""
    monkeypatch.setenv("OPERATIONS_KEY", s3_server.access_key)
    monkeypatch.setenv("OPERATIONS_SECRET", "not the secret key")
    shop = shop_on(mariadb_server, mariadb_database)
    store = on_s3(s3_server, bucket)
    shop.write(shop.settings(store=store))
    _refused(shop, "cdc step plan shop", "could not …: the S3 server answered")
    monkeypatch.setenv("OPERATIONS_SECRET", s3_server.secret_key)
    _continues(shop, store=store)


def test_a_store_that_ignores_conditions_is_refused_and_another_one_works(
    shop_on, mariadb_server, mariadb_database, s3_server, bucket, monkeypatch
):
    """Its server answers as if it had no conditional writes."""
    monkeypatch.setenv("OPERATIONS_KEY", s3_server.access_key)
    monkeypatch.setenv("OPERATIONS_SECRET", s3_server.secret_key)
    shop = shop_on(mariadb_server, mariadb_database)
    shop.write(shop.settings(store=on_s3(s3_server, bucket)))
    with monkeypatch.context() as changed:
        changed.setattr(s3.boto3.session.Session, "client", without_conditions(s3.boto3.session.Session.client))
        _refused(shop, "cdc step plan shop", "does not keep the condition")
    _continues(shop)


def test_a_store_of_google_is_reported_until_its_settings_are_right(
    shop_on, mariadb_server, mariadb_database, gcs_server, gcs_bucket, monkeypatch
):
    """The extra, the key, the private key in it, the bucket."""
    shop = shop_on(mariadb_server, mariadb_database)
    bucket = {"url": f"gs://{gcs_bucket}/store", "endpoint_url": gcs_server.endpoint}
    named = {**bucket, "service_account_env": "OPERATIONS_ACCOUNT"}
    plan = "cdc step plan shop"
    shop.write(shop.settings(store=bucket))
    with monkeypatch.context() as changed:
        changed.setattr(open_module, "_installed", lambda _: False)
        _refused(shop, plan, "the store … needs …, which is not installed")
    shop.write(shop.settings(store=named))
    monkeypatch.setenv("OPERATIONS_ACCOUNT", "/etc/key.json")
    _refused(shop, plan, "the key of the store is not the JSON key of a Google service account")
    with TokenServer() as tokens:
        key = json.loads(account_key(tokens.url))
        monkeypatch.setenv("OPERATIONS_ACCOUNT", json.dumps({**key, "private_key": key["private_key"][:200]}))
        _refused(shop, plan, "the private key in the key of the service account cannot be read")
        monkeypatch.setenv("OPERATIONS_ACCOUNT", json.dumps(key))
        shop.write(shop.settings(store={**named, "url": "gs://not-there/store"}))
        _refused(shop, plan, "could not …: Google Cloud Storage answered")
        _continues(shop, store=named)


def test_a_store_of_azure_is_reported_until_its_settings_are_right(
    shop_on, mariadb_server, mariadb_database, azure_server, azure_container, monkeypatch
):
    """The extra, the secret, its account, the container."""
    shop = shop_on(mariadb_server, mariadb_database)
    container = {"url": f"abfss://{azure_container}@{azure_server.host}/store", "endpoint_url": azure_server.endpoint}
    named = {**container, "azure_secret_env": "OPERATIONS_SECRET"}
    plan = "cdc step plan shop"
    shop.write(shop.settings(store=container))
    with monkeypatch.context() as changed:
        changed.setattr(open_module, "_installed", lambda _: False)
        _refused(shop, plan, "the store … needs …, which is not installed")
    _refused(shop, plan, "a token is not sent to …, where anyone could read it")
    shop.write(shop.settings(store=named))
    monkeypatch.setenv("OPERATIONS_SECRET", "not a secret")
    _refused(shop, plan, "the secret of the store is not one of Azure Storage")
    monkeypatch.setenv("OPERATIONS_SECRET", azure_server.connection_string.replace("=lakecdc;", "=other;"))
    _refused(shop, plan, "the connection string is that of the account …, and the store is in …")
    monkeypatch.setenv("OPERATIONS_SECRET", azure_server.connection_string)
    shop.write(shop.settings(store={**named, "url": f"abfss://not-there@{azure_server.host}/store"}))
    _refused(shop, plan, "could not …: Azure Blob Storage answered")
    _continues(shop, store=named)


def on_s3(server, bucket):
    return {
        "url": f"s3://{bucket}/store", "endpoint_url": server.endpoint, "region": server.region,
        "access_key_env": "OPERATIONS_KEY", "secret_key_env": "OPERATIONS_SECRET",
    }  # fmt: skip


def without_conditions(make):
    """Return what makes a client whose requests have no conditions: so is a server that ignores them."""

    def drop(params, **_):
        params.pop("IfNoneMatch", None)

    def made(*arguments, **named):
        client = make(*arguments, **named)
        client.meta.events.register("provide-client-params.s3.PutObject", drop)
        return client

    return made
