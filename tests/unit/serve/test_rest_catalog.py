"""The REST catalog of the cuts, as PyIceberg uses it and as its specification says."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import httpx
import pytest
from pyiceberg.catalog import load_catalog
from pyiceberg.exceptions import NoSuchNamespaceError, NoSuchTableError, RESTError, UnauthorizedError

from cdc_lib.config import load_source
from cdc_lib.serve.app import make_app
from cdc_lib.serve.catalog import CutCatalog, storage_settings
from cdc_lib.store.objects.open import open_store
from tests.harness.lake.running import lake_config
from tests.harness.lake.small_lake import SmallLake, row
from tests.harness.servers.process import free_port
from tests.harness.store.rest_catalog import serving

NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)
GTID = "3e11fa47-71ca-11e1-9e33-c80aa9429562"
SOURCE = """
server: {{host: 127.0.0.1, port: {port}, user: cdc, password_env: SHOP_PASSWORD}}
tables: ["shop.*"]
store: {{url: "file://{folder}/store"}}
lake: {{type: jdbc, uri: "jdbc:sqlite:{folder}/cat.db", warehouse: "file://{folder}/lake"}}
"""


@pytest.fixture
def lake(tmp_path):
    """Two tables, and a cut before and after an order and its item were added."""
    file = tmp_path / "shop.yaml"
    file.write_text(SOURCE.format(port=free_port(), folder=tmp_path))
    (tmp_path / "cat.db").touch()
    lake = SmallLake(load_source(file))
    orders, items = lake.make("orders", [row("de", 1, "a")]), lake.make("items", [row("de", 1, "x")])
    lake.cut(1, NOON, orders, items, gtid_set=f"{GTID}:1-10")
    for table in (orders, items):
        lake.add(table, [row("de", 2, "b")])
    lake.cut(2, NOON + timedelta(hours=1), orders, items, gtid_set=f"{GTID}:1-20")
    lake.add(orders, [row("de", 3, "not in a cut")])
    yield lake
    lake.catalog.close()


@pytest.fixture
def address(lake):
    catalog = CutCatalog(lake.config, open_store(lake.config.store), lake.catalog)
    with serving(make_app({"shop": catalog}, "secret")) as address:
        yield address


@pytest.fixture
def client(address):
    return load_catalog("cuts", type="rest", uri=address, warehouse="shop", token="secret")


def keys(client, *name):
    return sorted(client.load_table(name).scan().to_arrow().column("id").to_pylist())


@pytest.mark.parametrize(
    ("cut", "expected"),
    [
        ("latest", [1, 2]),
        ("2026-01-31T12:30:00Z", [1]),
        ("2026-01-31T13:00:00Z", [1, 2]),
        (f"{GTID}:5", [1]),
        (f"{GTID}:11", [1, 2]),
        ("binlog.000001:150", [1]),
    ],
)
def test_pyiceberg_reads_all_tables_as_of_a_cut(client, cut, expected):
    assert keys(client, cut, "shop", "orders") == keys(client, cut, "shop", "items") == expected


def test_the_cuts_and_their_tables_are_listed(client):
    assert client.list_namespaces() == [("latest",), ("2026-01-31T12:00:00Z",), ("2026-01-31T13:00:00Z",)]
    assert client.list_namespaces(("latest",)) == [("latest", "shop")]
    assert client.list_namespaces(("latest", "shop")) == []
    assert client.list_tables(("latest", "shop")) == [("latest", "shop", "items"), ("latest", "shop", "orders")]
    assert client.list_tables("latest") == []
    assert client.load_namespace_properties(("latest", "shop")) == {}


def test_what_is_not_there_is_named(client):
    with pytest.raises(NoSuchTableError, match=r"the cut has no table latest\.shop\.none"):
        client.load_table(("latest", "shop", "none"))
    with pytest.raises(NoSuchTableError, match="shop has no cut 'noon'"):
        client.load_table(("noon", "shop", "orders"))
    with pytest.raises(NoSuchNamespaceError, match="no cut is stored whose last transaction"):
        client.list_namespaces(("2020-01-01",))
    with pytest.raises(NoSuchNamespaceError, match=r"the cut has no namespace latest\.none"):
        client.load_namespace_properties(("latest", "none"))
    assert client.table_exists(("latest", "shop", "orders"))
    assert not client.table_exists(("latest", "shop", "none"))
    assert client.namespace_exists(("latest", "shop"))
    assert not client.namespace_exists(("latest", "none"))


def test_nothing_can_be_changed(client, address):
    """Through the client, and by any other method and path."""
    table = client.load_table(("latest", "shop", "orders"))
    changes = (
        lambda: table.append(table.scan().to_arrow()),
        lambda: client.drop_table(("latest", "shop", "orders")),
        lambda: client.create_namespace(("mine",)),
    )
    for change in changes:
        with pytest.raises(NotImplementedError, match="Server does not support endpoint"):
            change()
    token = {"Authorization": "Bearer secret"}
    for method in ("POST", "PUT", "PATCH", "DELETE"):
        answer = httpx.request(method, f"{address}/v1/shop/namespaces/latest", headers=token)
        assert (answer.status_code, answer.json()["error"]["type"]) == (406, "UnsupportedOperationException")
    assert keys(client, "latest", "shop", "orders") == [1, 2]


def test_every_request_needs_the_token(address):
    with pytest.raises(UnauthorizedError, match="the token is missing or wrong"):
        load_catalog("cuts", type="rest", uri=address, warehouse="shop", token="wrong")
    for path in ("/v1/config?warehouse=shop", "/v1/shop/namespaces", "/v1/shop/namespaces/latest", "/docs", "/"):
        assert httpx.get(f"{address}{path}").status_code == 401
        assert httpx.get(f"{address}{path}", headers={"Authorization": "Bearer"}).status_code == 401
        assert httpx.get(f"{address}{path}", headers={"Authorization": "Bearer sécret".encode()}).status_code == 401


def test_a_client_learns_the_source_and_what_it_may_ask(address):
    token = {"Authorization": "Bearer secret"}
    found = httpx.get(f"{address}/v1/config", headers=token).json()
    assert found["overrides"] == {"prefix": "shop"}
    assert all(one.startswith(("GET ", "HEAD ")) for one in found["endpoints"])
    wrong = httpx.get(f"{address}/v1/config?warehouse=other", headers=token)
    assert (wrong.status_code, wrong.json()["error"]["message"]) == (400, "warehouse is the name of a source: shop")
    assert httpx.get(f"{address}/v1/other/namespaces", headers=token).status_code == 404


def test_an_expired_snapshot_is_an_error_that_says_what_to_do(lake, client):
    lake.catalog.load_table(("shop", "orders")).maintenance.expire_snapshots().older_than(
        datetime.now(UTC) + timedelta(days=1)
    ).commit()
    with pytest.raises(RESTError, match=r"does not exist any more.*choose a later cut"):
        client.load_table((f"{GTID}:5", "shop", "orders"))


def test_a_client_is_told_where_the_lake_is_and_no_keys(tmp_path):
    """The place is that of the store, unless the lake has its own; other properties may be secrets."""
    store = {"url": "s3://bucket/batches", "endpoint_url": "http://store:1", "region": "here"}
    of_store = {
        "s3.endpoint": "http://store:1",
        "client.region": "here",
        "s3.region": "here",
        "s3.path-style-access": "true",
    }
    own = {"s3.endpoint": "http://lake:1", "client.region": "there"}
    secrets = {"s3.secret-access-key": "secret", "credential": "secret"}
    asks = {"header.X-Iceberg-Access-Delegation": "vended-credentials"}

    def settings_of(warehouse, **properties):
        lake = {"type": "rest", "uri": "http://catalog", "warehouse": warehouse, "properties": properties}
        return storage_settings(lake_config(tmp_path, store=store, lake=lake))

    assert settings_of("shop", **secrets) == settings_of("s3://bucket/lake") == of_store
    assert settings_of("shop", **own) == {**of_store, **own, "s3.region": "there"}
    assert settings_of("shop", **asks) == settings_of("file:///lake") == {}
