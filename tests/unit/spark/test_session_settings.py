from __future__ import annotations

import os
from pathlib import Path

import pytest

from cdc_lib.config.store import StoreConfig
from cdc_lib.lake.catalog import catalog_properties
from spark_jobs.runtime.azure_settings import azure_settings
from spark_jobs.runtime.gateway import without_variables
from spark_jobs.runtime.session import (
    DEFAULTS,
    JAVA_OPTIONS,
    LOG_SETTINGS,
    catalog_settings,
    hadoop_settings,
    hidden_from_java,
    spark_settings,
)
from tests.harness.lake.running import lake_config
from tests.harness.servers.certificate import write_certificate
from tests.harness.store.google_account import EMAIL, account_key, private_key

S3 = {
    "url": "s3://bucket/cdc",
    "endpoint_url": "https://s3.example.com:9000",
    "region": "eu-central-1",
    "access_key_env": "STORE_ACCESS",
    "secret_key_env": "STORE_SECRET",
}

AZURE = "account.dfs.core.windows.net"
PRINCIPAL = {"AZURE_CLIENT_ID": "c", "AZURE_TENANT_ID": "t"}


@pytest.fixture(autouse=True)
def keys(monkeypatch, tmp_path):
    monkeypatch.setenv("STORE_ACCESS", "the access key")
    monkeypatch.setenv("STORE_SECRET", "the secret key")
    monkeypatch.setattr(
        "spark_jobs.runtime.session.jar_paths", lambda names: [tmp_path / f"{name}.jar" for name in names]
    )


def test_the_command_line_of_java_has_no_secret(tmp_path):
    """All users of a machine can read command lines; catalog properties may be secrets."""
    lake = {
        "type": "rest",
        "uri": "http://user:pass@rest",
        "warehouse": "s3://bucket/lake",
        "properties": {"token": "T0K"},
    }
    settings = spark_settings(lake_config(tmp_path, store=S3, lake=lake))
    assert not any(secret in f"{settings}" for secret in ("the secret key", "the access key", "pass", "T0K"))


def test_java_gets_no_secret_by_its_environment(tmp_path, monkeypatch):
    """Neither those that Airflow handed over nor those that the file names; this process keeps them."""
    monkeypatch.setenv("CDC_HANDED_PASSWORD", "handed")
    config = lake_config(tmp_path, store={**S3, "access_key_env": "AWS_ACCESS_KEY_ID"})
    hidden = hidden_from_java(config)
    assert {"STORE_SECRET", "CDC_HANDED_PASSWORD", "CDC_HANDED_SECRET_KEY", config.server.password_env} <= hidden
    assert "AWS_ACCESS_KEY_ID" not in hidden  # clients of AWS look for it
    with without_variables(hidden):
        assert [name for name in hidden if name in os.environ] == []
    assert (os.environ["STORE_SECRET"], os.environ["CDC_HANDED_PASSWORD"]) == ("the secret key", "handed")


def test_jars_depend_on_the_store_and_the_catalog(tmp_path):
    """A local lake needs no jar of S3."""
    local = spark_settings(lake_config(tmp_path))["spark.driver.extraClassPath"]
    assert [path.rpartition("/")[2] for path in local.split(":")] == ["iceberg.jar", "sqlite.jar"]
    remote = spark_settings(lake_config(tmp_path, store=S3))["spark.driver.extraClassPath"]
    assert remote.endswith("/s3.jar")
    google = spark_settings(lake_config(tmp_path, store={"url": "gs://bucket/cdc"}))["spark.driver.extraClassPath"]
    assert google.endswith("/sqlite.jar:" + str(tmp_path / "gcs.jar"))


def test_a_store_of_google_is_reached_with_the_key_of_its_account(tmp_path, monkeypatch):
    """In a session, never on a command line; without a key each machine finds its own, and plain HTTP gets none."""
    monkeypatch.setenv("STORE_ACCOUNT", account_key("https://oauth2.example/token"))
    config = lake_config(tmp_path, store={"url": "gs://bucket/cdc", "service_account_env": "STORE_ACCOUNT"})
    settings = hadoop_settings(config.store)
    assert settings["fs.gs.auth.service.account.email"] == EMAIL
    assert settings["fs.gs.auth.service.account.private.key"] == private_key()
    assert settings["fs.gs.token.server.url"] == "https://oauth2.example/token"
    assert "PRIVATE" not in f"{spark_settings(config)}"
    assert "STORE_ACCOUNT" in hidden_from_java(config)
    found = hadoop_settings(lake_config(tmp_path, store={"url": "gs://bucket/cdc"}).store)
    assert not any("auth" in name for name in found)
    plain = hadoop_settings(lake_config(tmp_path, store={"url": "gs://b", "endpoint_url": "http://127.0.0.1:9"}).store)
    assert plain["fs.gs.storage.root.url"] == "http://127.0.0.1:9/"
    assert plain["fs.gs.auth.null.enable"] == "true"


def test_a_store_of_azure_is_reached_with_the_secret_of_its_account(tmp_path, monkeypatch):
    """In a session, never on a command line, and for this account only; a server that is not Azure's has the Blob API."""
    monkeypatch.setenv("STORE_SECRET", "c2VjcmV0IHNlY3JldCBzZWNyZXQ=")
    at = {"url": f"abfss://lake@{AZURE}/cdc", "azure_secret_env": "STORE_SECRET"}
    config = lake_config(tmp_path, store=at)
    settings = hadoop_settings(config.store)
    assert settings[f"fs.azure.account.key.{AZURE}"] == "c2VjcmV0IHNlY3JldCBzZWNyZXQ="
    assert "fs.azure.abfs.endpoint" not in settings
    assert "c2VjcmV0" not in f"{spark_settings(config)}"
    assert "STORE_SECRET" in hidden_from_java(config)
    assert spark_settings(config)["spark.driver.extraClassPath"].endswith("/sqlite.jar:" + str(tmp_path / "azure.jar"))
    monkeypatch.setenv("STORE_SECRET", "sv=2025&sig=a%2Fb")
    settings = hadoop_settings(lake_config(tmp_path, store={**at, "endpoint_url": "http://127.0.0.1:9"}).store)
    assert settings[f"fs.azure.account.auth.type.{AZURE}"] == "SAS"
    assert settings[f"fs.azure.sas.fixed.token.{AZURE}"] == "sv=2025&sig=a%2Fb"
    assert settings["fs.azure.abfs.endpoint"] == "127.0.0.1:9"
    assert settings["fs.azure.always.use.https"] == "false"


@pytest.mark.parametrize(
    ("environ", "provider", "setting", "value"),
    [
        ({}, "MsiTokenProvider", "provider.type", "org.apache.hadoop.fs.azurebfs.oauth2.MsiTokenProvider"),
        ({"AZURE_CLIENT_ID": "c"}, "MsiTokenProvider", "client.id", "c"),
        (PRINCIPAL | {"AZURE_CLIENT_SECRET": "s"}, "ClientCredsTokenProvider", "client.secret", "s"),
        (PRINCIPAL | {"AZURE_CLIENT_SECRET": "s", "AZURE_AUTHORITY_HOST": "login.chinacloudapi.cn"}, "ClientCredsTokenProvider", "client.endpoint", "https://login.chinacloudapi.cn/t/oauth2/token"),
        (PRINCIPAL | {"AZURE_FEDERATED_TOKEN_FILE": "/token"}, "WorkloadIdentityTokenProvider", "token.file", "/token"),
    ],
)  # fmt: skip
def test_without_a_secret_spark_has_the_identity_of_the_process(environ, provider, setting, value):
    """As DefaultAzureCredential finds it: a service principal, a workload identity, else that of each machine."""
    found = azure_settings(StoreConfig(url=f"abfss://lake@{AZURE}"), environ)
    assert found[f"fs.azure.account.oauth.provider.type.{AZURE}"].endswith(f".{provider}")
    assert value in [held for name, held in found.items() if name.endswith(f"{setting}.{AZURE}")]


def test_a_lake_in_s3_takes_nothing_of_a_store_of_google(tmp_path):
    """Its endpoint is no S3 server."""
    lake = {"type": "rest", "uri": "http://rest", "warehouse": "s3://bucket/lake"}
    config = lake_config(tmp_path, store={"url": "gs://b", "endpoint_url": "https://gcs.example"}, lake=lake)
    assert not any("gcs.example" in value for value in catalog_settings(config).values())
    assert "s3.endpoint" not in catalog_properties(config)


def test_jars_are_sent_to_a_cluster(tmp_path):
    """The driver's class path is not that of the executors."""
    settings = spark_settings(lake_config(tmp_path, merge={"spark_master": "spark://host:7077"}))
    assert settings["spark.jars"].count(".jar") == 2
    assert "spark.driver.extraClassPath" not in settings


def test_a_catalog_in_postgresql_needs_its_driver_alone(tmp_path):
    """It is fetched like the one of SQLite; a password in the address or in a property is in no setting of the start."""
    properties = {"jdbc.user": "u", "jdbc.password": "secr3t"}
    lake = {"type": "jdbc", "uri": "jdbc:postgresql://db/lake", "warehouse": "s3://b/lake", "properties": properties}
    settings = spark_settings(lake_config(tmp_path, store=S3, lake=lake))
    names = [path.rpartition("/")[2] for path in settings["spark.driver.extraClassPath"].split(":")]
    assert names == ["iceberg.jar", "postgresql.jar", "s3.jar"]
    assert "secr3t" not in f"{settings}"


@pytest.fixture
def secure(tmp_path):
    """A store whose certificate has an authority of its own."""
    write_certificate(tmp_path / "ca.pem", tmp_path / "key.pem")
    return {**S3, "ca": str(tmp_path / "ca.pem")}


@pytest.mark.filterwarnings("ignore:Parsed a serial number")  # of an authority of the system
def test_executors_of_a_cluster_get_the_authority_of_the_store(tmp_path, secure):
    """As a file that Spark sends; options and files of the source file stay, and come last."""
    conf = {"spark.executor.extraJavaOptions": "-Xss4m", "spark.files": "/etc/more.conf"}
    settings = spark_settings(lake_config(tmp_path, store=secure, merge={"spark_master": "yarn", "conf": conf}))
    trust, *others = settings["spark.files"].split(",")
    assert (Path(trust).is_file(), others) == (True, ["/etc/more.conf"])
    options = settings["spark.executor.extraJavaOptions"].split()
    assert options[0] == f"-Djavax.net.ssl.trustStore={Path(trust).name}"  # in the folder where an executor runs
    assert options[-1] == "-Xss4m"
    assert f"-Djavax.net.ssl.trustStore={trust} " in settings[JAVA_OPTIONS]


@pytest.mark.filterwarnings("ignore:Parsed a serial number")  # of an authority of the system
def test_without_an_authority_or_other_machines_nothing_is_sent(tmp_path, secure):
    for store, master in ((secure, "local[2]"), (S3, "yarn")):
        settings = spark_settings(lake_config(tmp_path, store=store, merge={"spark_master": master}))
        assert "spark.files" not in settings
        assert "spark.executor.extraJavaOptions" not in settings


def test_settings_of_the_source_file_override_the_defaults(tmp_path):
    """They may be better on another machine."""
    name = "spark.sql.shuffle.partitions"
    assert spark_settings(lake_config(tmp_path))[name] == DEFAULTS[name]
    assert spark_settings(lake_config(tmp_path, merge={"conf": {name: "64"}}))[name] == "64"


def test_a_lake_on_s3_uses_the_stores_settings_and_properties_override_them(tmp_path):
    """Endpoint and keys are set once, unless the lake has its own."""
    lake = {"type": "glue", "warehouse": "s3://bucket/lake", "properties": {"client.region": "us-west-2"}}
    settings = catalog_settings(lake_config(tmp_path, store=S3, lake=lake))
    assert settings["spark.sql.catalog.lake.s3.endpoint"] == S3["endpoint_url"]
    assert settings["spark.sql.catalog.lake.s3.secret-access-key"] == "the secret key"
    assert settings["spark.sql.catalog.lake.client.region"] == "us-west-2"


def test_a_rest_catalog_that_alone_knows_the_place_gets_what_the_file_says_of_the_store(tmp_path):
    """And no FileIO, which Iceberg chooses by the address of a file; nothing if the catalog is asked for keys."""
    lake = {"type": "rest", "uri": "http://rest", "warehouse": "shop"}
    root = "spark.sql.catalog.lake."
    fixed = {root.rstrip("."), *(f"{root}{name}" for name in ("type", "uri", "warehouse", "cache-enabled"))}

    def given(store, **more):
        settings = catalog_settings(lake_config(tmp_path, store=store, lake={**lake, **more}))
        return {name.removeprefix(root): value for name, value in settings.items() if name not in fixed}

    keys = {"s3.access-key-id": "the access key", "s3.secret-access-key": "the secret key"}
    server = {"s3.endpoint": S3["endpoint_url"], "s3.path-style-access": "true"}
    assert given(S3) == {"client.region": "eu-central-1", **server, **keys}
    asks = {"header.X-Iceberg-Access-Delegation": "vended-credentials"}
    assert given(S3, properties=asks) == asks
    amazon = {name: value for name, value in S3.items() if name not in ("endpoint_url", "region")}
    assert given(amazon) == keys  # the catalog may know the region
    jars = spark_settings(lake_config(tmp_path, lake=lake))["spark.driver.extraClassPath"]
    assert jars.endswith("/s3.jar")


def test_batches_on_s3_are_read_with_the_stores_settings(tmp_path):
    """A local store needs none."""
    settings = hadoop_settings(lake_config(tmp_path, store=S3).store)
    assert settings["fs.s3a.endpoint"] == S3["endpoint_url"]
    assert settings["fs.s3a.connection.ssl.enabled"] == "true"
    assert hadoop_settings(lake_config(tmp_path).store) == {}


def test_variable_substitution_cannot_be_turned_on(tmp_path):
    """Statements contain names and values of the source, and the environment contains secrets."""
    merge = {"conf": {"spark.sql.variable.substitute": "true", "spark.sql.shuffle.partitions": "9"}}
    settings = spark_settings(lake_config(tmp_path, merge=merge))
    assert settings["spark.sql.variable.substitute"] == "false"
    assert settings["spark.sql.shuffle.partitions"] == "9"


def test_log_settings_of_the_source_file_override_ours_and_other_java_options_do_not(tmp_path):
    """Java uses the last value of a property."""
    ours = f"-Dlog4j2.configurationFile={LOG_SETTINGS.as_uri()}"
    theirs = "-Dlog4j2.configurationFile=file:///etc/log4j2.properties"
    for given in (theirs, "-XX:+UseG1GC"):
        settings = spark_settings(lake_config(tmp_path, merge={"conf": {JAVA_OPTIONS: given}}))
        assert settings[JAVA_OPTIONS] == f"{ours} {given}"
    assert spark_settings(lake_config(tmp_path))[JAVA_OPTIONS].startswith(ours)
