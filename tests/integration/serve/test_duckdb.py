"""DuckDB reads the cuts of a source through the REST catalog."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta

import pytest

from cdc_lib.config import load_source
from cdc_lib.serve.app import make_app
from cdc_lib.serve.catalog import CutCatalog
from cdc_lib.store.objects.open import open_store
from tests.harness.lake.duckdb_queries import FOR_CATALOGS, ExtensionMissing, installed, query
from tests.harness.lake.small_lake import SmallLake, row
from tests.harness.servers.process import free_port
from tests.harness.store.rest_catalog import serving

VERSION = "1.4.4"
"""Its extensions are in the Python package index; CDC_TEST_DUCKDB names another version."""
NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)
SOURCE = """
server: {{host: 127.0.0.1, port: {port}, user: cdc, password_env: SHOP_PASSWORD}}
tables: ["shop.*"]
store: {{url: "file://{folder}/store"}}
lake: {{type: jdbc, uri: "jdbc:sqlite:{folder}/cat.db", warehouse: "file://{folder}/lake"}}
"""


def test_duckdb_joins_two_tables_as_of_a_cut(tmp_path):
    """The latest cut and an earlier one; a row that no cut has is not seen."""
    try:
        folder = installed(os.environ.get("CDC_TEST_DUCKDB", VERSION), FOR_CATALOGS)
    except ExtensionMissing as error:
        pytest.skip(f"the Iceberg extension of DuckDB cannot be installed here: {error}")
    file = tmp_path / "shop.yaml"
    file.write_text(SOURCE.format(port=free_port(), folder=tmp_path))
    (tmp_path / "cat.db").touch()
    lake = SmallLake(load_source(file))
    orders, items = lake.make("orders", [row("de", 1, "a")]), lake.make("items", [row("de", 1, "x")])
    lake.cut(1, NOON, orders, items)
    for table in (orders, items):
        lake.add(table, [row("de", 2, "b")])
    lake.cut(2, NOON + timedelta(hours=1), orders, items)
    lake.add(orders, [row("de", 3, "not in a cut")])
    catalog = CutCatalog(lake.config, open_store(lake.config.store), lake.catalog)
    with serving(make_app({"shop": catalog}, "secret")) as address:
        secret = "CREATE SECRET cuts (TYPE iceberg, TOKEN 'secret')"
        setup = [secret, f"ATTACH 'shop' AS cuts (TYPE iceberg, ENDPOINT '{address}', SECRET cuts)"]
        joined = 'SELECT id FROM cuts."{cut}.shop".orders JOIN cuts."{cut}.shop".items USING (country, id) ORDER BY id'
        queries = [joined.format(cut=cut) for cut in ("latest", "2026-01-31T12:00:00Z")]
        _, found = query(folder, queries, setup, FOR_CATALOGS)
    assert found == [[[1], [2]], [[1]]]
    lake.catalog.close()
