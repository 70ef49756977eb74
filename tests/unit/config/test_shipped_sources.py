from __future__ import annotations

from pathlib import Path

import pytest

from cdc_lib.config import load_sources

SOURCES = Path(__file__).parents[3] / "dags" / "sources"


def test_the_sources_that_come_with_the_project_load_in_an_empty_environment():
    """Every variable in them has a default."""
    loaded = load_sources(SOURCES, {})
    assert [(one.source, one.error) for one in loaded] == [("shop", None)]


def test_the_shop_follows_the_variables_of_the_demo():
    """The demo's server and lake are wherever it put them."""
    environ = {
        "CDC_DEMO_HOST": "h",
        "CDC_DEMO_PORT": "1234",
        "CDC_DEMO_USER": "u",
        "CDC_STORE_URL": "s3://b/p",
        "CDC_S3_ENDPOINT": "http://127.0.0.1:9000",
        "CDC_S3_REGION": "r",
        "CDC_LAKE_URI": "jdbc:sqlite:/x.db",
        "CDC_LAKE_WAREHOUSE": "s3://b/lake",
        "CDC_SPARK_MASTER": "spark://m:7077",
    }
    (shop,) = load_sources(SOURCES, environ)
    assert shop.config is not None
    assert (shop.config.server.host, shop.config.server.port, shop.config.server.user) == ("h", 1234, "u")
    assert (shop.config.store.url, shop.config.store.region) == ("s3://b/p", "r")
    assert shop.config.store.endpoint_url == "http://127.0.0.1:9000"
    assert (shop.config.lake.uri, shop.config.lake.warehouse) == ("jdbc:sqlite:/x.db", "s3://b/lake")
    assert shop.config.merge.spark_master == "spark://m:7077"


@pytest.mark.parametrize("path", sorted(SOURCES.glob("*.yaml")), ids=lambda path: path.name)
def test_no_source_that_comes_with_the_project_is_long(path):
    """A source is a few lines over the defaults."""
    assert len(path.read_text().splitlines()) < 30
