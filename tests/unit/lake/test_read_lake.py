from __future__ import annotations

import pytest

from cdc_lib.config import LakeConfig, ServerConfig, SourceConfig, StoreConfig, TablesConfig
from cdc_lib.errors import ConfigError
from cdc_lib.lake.catalog import catalog_properties, sqlalchemy_url


def source(lake, **store):
    """A source with this lake."""
    return SourceConfig(
        source="shop",
        server=ServerConfig(host="h", connection="c"),
        tables=TablesConfig(include=("shop.*",)),
        store=StoreConfig(**{"url": "s3://bucket/batches"} | store),
        lake=LakeConfig(**lake),
    )


def test_a_jdbc_url_is_translated_to_the_same_database(tmp_path):
    """Parameters after the question mark are for the JDBC driver."""
    file = tmp_path / "my cat.db"
    file.touch()
    assert sqlalchemy_url(f"jdbc:sqlite:{file}?busy_timeout=30000") == f"sqlite:///{file}"
    assert sqlalchemy_url("jdbc:postgresql://h/db") == "postgresql://h/db"
    with pytest.raises(ConfigError, match="begins with jdbc:"):
        sqlalchemy_url(f"sqlite:{file}")


def test_a_lake_in_s3_uses_the_settings_of_the_store(monkeypatch):
    """The keys come from the same variables; the lake's own properties override them; Java class names are left out."""
    monkeypatch.setenv("A", "key")
    monkeypatch.setenv("S", "secret")
    lake = {
        "type": "rest",
        "uri": "http://catalog",
        "warehouse": "s3://bucket/lake",
        "properties": {"io-impl": "org.apache.iceberg.aws.s3.S3FileIO", "s3.region": "mine", "token": "t"},
    }
    keys = {"access_key_env": "A", "secret_key_env": "S"}
    config = source(lake, endpoint_url="http://s3:1", region="r", **keys)
    assert catalog_properties(config) == {
        "type": "rest",
        "uri": "http://catalog",
        "warehouse": "s3://bucket/lake",
        "s3.endpoint": "http://s3:1",
        "s3.region": "mine",
        "s3.force-virtual-addressing": "false",
        "s3.access-key-id": "key",
        "s3.secret-access-key": "secret",
        "token": "t",
    }


def test_a_lake_whose_place_only_a_rest_catalog_knows_uses_the_settings_of_the_store():
    """As in a merge: not if the source file asks the catalog for keys."""
    lake = {"type": "rest", "uri": "http://catalog", "warehouse": "shop"}
    given = catalog_properties(
        source({**lake, "properties": {"client.region": "lake's"}}, endpoint_url="http://s3:1", region="r")
    )
    assert (given["s3.endpoint"], given["s3.region"]) == ("http://s3:1", "lake's")
    asks = {"header.X-Iceberg-Access-Delegation": "vended-credentials"}
    assert catalog_properties(source({**lake, "properties": asks}, endpoint_url="http://s3:1")) == {**lake, **asks}


def test_a_lake_in_a_folder_needs_no_keys():
    """Even if the batches are in S3."""
    config = source({"type": "hive", "uri": "thrift://h", "warehouse": "file:///lake"}, endpoint_url="http://s3:1")
    assert catalog_properties(config) == {"type": "hive", "uri": "thrift://h", "warehouse": "file:///lake"}


def test_a_lake_without_a_catalog_service_cannot_be_read_without_spark():
    """A clear error, not one of a library."""
    with pytest.raises(ConfigError, match="hadoop"):
        catalog_properties(source({"type": "hadoop", "warehouse": "file:///lake"}))
