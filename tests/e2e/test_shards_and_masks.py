"""Three shards of a server in one lake table with masked columns: real server, real batches, real Spark."""

from __future__ import annotations

import hashlib
import hmac
import json
import secrets
from pathlib import Path

import pyarrow.parquet as pq
import pytest
import yaml
from pyiceberg.catalog import Catalog
from typer.testing import CliRunner

from cdc_lib.cli.main import app
from cdc_lib.config import Credentials, load_source
from cdc_lib.lake.catalog import open_catalog
from cdc_lib.pipeline import Pipeline
from spark_jobs.merge import run
from tests.harness.servers import SqlServer

pytestmark = [
    # py4j leaves its sockets for the garbage collector to close.
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
]

KEY = "the key of the hashes in this test"
ROWS = 300


@pytest.fixture
def prefix(any_server: SqlServer):
    """The prefix of the shards' names; shards 1 and 2 exist, and a table that is not captured."""
    name = f"shop{secrets.token_hex(3)}"
    for number in (1, 2):
        make_shard(any_server, name, number)
    any_server.execute(f"CREATE TABLE {name}_1.leads (id INT PRIMARY KEY, mail VARCHAR(60))")
    any_server.execute(f"INSERT INTO {name}_1.leads VALUES (1, 'lead@secret.example')")
    yield name
    for number in (1, 2, 3):
        any_server.execute(f"DROP DATABASE IF EXISTS {name}_{number}")


def make_shard(server: SqlServer, prefix: str, number: int) -> None:
    """Make a database whose orders have the same keys as those of other shards, and whose items have different keys."""
    database = f"{prefix}_{number}"
    server.execute(f"CREATE DATABASE {database}")
    server.execute(
        "CREATE TABLE orders (id INT PRIMARY KEY, mail VARCHAR(60), card BIGINT, born DATE, remark TEXT, state VARCHAR(9))",
        database=database,
    )
    server.execute("CREATE TABLE items (id INT PRIMARY KEY, what VARCHAR(20))", database=database)
    orders = ", ".join(
        f"({i}, 'm{i}-{number}@secret.example', {4929_0000_0000_0000 + i}, '1987-01-{i % 28 + 1:02d}', 'a secret remark', 'new')"
        for i in range(ROWS)
    )
    server.execute(f"INSERT INTO orders VALUES {orders}", database=database)
    items = ", ".join(f"({number * 1000 + i}, 'thing {i}')" for i in range(20))
    server.execute(f"INSERT INTO items VALUES {items}", database=database)


@pytest.fixture
def sources(any_server: SqlServer, prefix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the source file, as a user writes it."""
    monkeypatch.setenv("SHARDS_PASSWORD", any_server.cdc_password)
    monkeypatch.setenv("SHARDS_KEY", KEY)
    (tmp_path / "lake").mkdir()
    folder = tmp_path / "sources"
    folder.mkdir()
    settings = {
        "server": {
            "host": any_server.host, "port": any_server.port, "user": any_server.cdc_user,
            "password_env": "SHARDS_PASSWORD",
        },
        "tables": [rf"/^{prefix}_\d+\.(orders|items)$/"],
        "columns": [{"tables": "*.orders", "exclude": ["remark"]}],
        "masks": [
            {"tables": "*.orders", "columns": ["mail"], "mask": "hash"},
            {"tables": "*.orders", "columns": ["card"], "mask": "keep_last", "characters": 2},
            {"tables": "*.orders", "columns": ["born"], "mask": "redact"},
        ],
        "mask_key_env": "SHARDS_KEY",
        "routes": [
            {"tables": f"{prefix}_*.orders", "into": f"{prefix}.orders", "keys": ["schema"]},
            {"tables": f"{prefix}_*.items", "into": f"{prefix}.items"},
        ],
        "filters": [{"tables": "*.orders", "where": "state <> 'test'"}],
        "store": {"url": f"file://{tmp_path}/batches"},
        "lake": {
            "type": "jdbc", "uri": f"jdbc:sqlite:{tmp_path}/lake/catalog.db", "warehouse": f"file://{tmp_path}/lake",
        },
        "snapshot": {"chunk_rows": 120},
        "merge": {"driver_memory": "1g"},
    }  # fmt: skip
    (folder / "shards.yaml").write_text(yaml.safe_dump(settings))
    return folder


def one_round(pipeline: Pipeline) -> None:
    """Do what one run of the DAG does, with the merge twice."""
    for unit in pipeline.plan(by="test"):
        pipeline.drain(unit)
    pipeline.ack_drain(by="test")
    plan = pipeline.plan_merge(by="test")
    assert plan is not None
    run(pipeline.config, plan, pipeline.store)
    run(pipeline.config, plan, pipeline.store)  # as a retry does
    pipeline.ack_lake(by="test")


def rows(catalog: Catalog, prefix: str, table: str, *columns: str) -> list[tuple]:
    """Return columns of all rows of a lake table, sorted."""
    records = catalog.load_table((prefix, table)).scan(selected_fields=columns).to_arrow().to_pylist()
    return sorted(tuple(row[column] for column in columns) for row in records)


def expected_orders(server: SqlServer, prefix: str, shards: range) -> list[tuple]:
    """Return the expected rows of the lake, computed from the source without the library."""
    expected = []
    for number in shards:
        for key, mail, card, state in server.execute(f"SELECT id, mail, card, state FROM {prefix}_{number}.orders"):
            if state != "test":
                digest = hmac.new(KEY.encode(), mail.encode(), hashlib.sha256).hexdigest()
                expected.append((f"{prefix}_{number}", key, digest, f"{14 * '*'}{card % 100:02d}", state))
    return sorted(expected)


def everything(catalog: Catalog, prefix: str, folder: Path) -> str:
    """Return all objects of store and lake as text: Parquet by its values, other files byte by byte."""
    texts = [str(folder)]
    for path in folder.rglob("*"):
        texts.append(path.name)
        if path.suffix == ".parquet":
            texts += [str(pq.read_table(path).to_pylist()), str(pq.read_metadata(path).to_dict())]
        elif path.is_file():
            texts.append(path.read_bytes().decode("utf-8", "replace"))
    for table in ("orders", "items"):  # Iceberg's manifests are compressed Avro
        texts.append(str(catalog.load_table((prefix, table)).inspect.all_files().to_pylist()))
    return "\n".join(texts)


def test_shards_share_one_lake_table_and_masked_values_are_stored_nowhere(
    any_server: SqlServer, prefix: str, sources: Path, tmp_path: Path
) -> None:
    """Each merge runs twice; the third shard is added later, with its own snapshot."""
    config = load_source(sources / "shards.yaml")
    pipeline = Pipeline.open(config, Credentials(any_server.cdc_user, any_server.cdc_password, KEY))
    one_round(pipeline)
    any_server.execute(f"UPDATE {prefix}_1.orders SET state = 'paid', mail = 'moved@secret.example' WHERE id < 50")
    any_server.execute(f"UPDATE {prefix}_2.orders SET state = 'test' WHERE id >= 290")
    any_server.execute(f"DELETE FROM {prefix}_1.orders WHERE id BETWEEN 100 AND 110")
    any_server.execute(f"ALTER TABLE {prefix}_2.orders ADD COLUMN extra VARCHAR(20) DEFAULT 'a secret default'")
    any_server.execute(f"UPDATE {prefix}_2.orders SET extra = 'shown' WHERE id = 7")
    any_server.execute(f"DELETE FROM {prefix}_2.items WHERE id = 2003")
    make_shard(any_server, prefix, 3)
    one_round(pipeline)
    any_server.execute(f"DELETE FROM {prefix}_3.orders WHERE id < 5")
    one_round(pipeline)
    catalog = open_catalog(config)
    shown = rows(catalog, prefix, "orders", "_source_schema", "id", "mail", "card", "state")
    assert shown == expected_orders(any_server, prefix, range(1, 4))
    assert len(shown) == 3 * ROWS - 11 - 10 - 5
    assert {born for (born,) in rows(catalog, prefix, "orders", "born")} == {None}
    items = [any_server.execute(f"SELECT id, what FROM {prefix}_{n}.items") for n in (1, 2, 3)]
    assert rows(catalog, prefix, "items", "id", "what") == sorted(tuple(row) for shard in items for row in shard)
    assert "remark" not in catalog.load_table((prefix, "orders")).schema().column_names
    text = everything(catalog, prefix, tmp_path / "batches") + everything(catalog, prefix, tmp_path / "lake")
    assert "shown" in text
    for secret in ("secret.example", "4929000000", "1987-01", "1987, 1", "secret remark", "leads", KEY):
        assert secret not in text
    # The rows have the default, as at the source; the statement that set it is stored nowhere.
    documents = [path.read_text() for path in (tmp_path / "batches").rglob("*.json")]
    assert not [document for document in documents if "secret default" in document]
    _doctor_shows_the_routes(sources, prefix)


def _doctor_shows_the_routes(sources: Path, prefix: str) -> None:
    result = CliRunner().invoke(app, ["--sources", str(sources), "doctor", "--json"])
    lines = [(line["level"], line["what"]) for line in json.loads(result.stdout)]
    orders = ", ".join(f"{prefix}_{n}.orders" for n in (1, 2, 3))
    assert ("ok", f"{orders} → {prefix}.orders, by _source_schema, id") in lines
    assert ("ok", f"{prefix}_1.orders: masks on born, card, mail") in lines
    assert any(level == "warning" and f"3 tables share {prefix}.items" in what for level, what in lines)
    assert result.exit_code == 0, result.output
