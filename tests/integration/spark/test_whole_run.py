"""What the commands show of a whole run, whose merge is in the running Spark; tests/e2e runs them as processes of their own."""

from __future__ import annotations

import json
import re

import pytest
import yaml
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from tests.harness.shop.source import command_line, over_the_running_spark


@pytest.fixture
def database_of_orders(mysql_server, mysql_database):
    """A database with a table of three rows."""
    mysql_server.execute("CREATE TABLE orders (id INT PRIMARY KEY, what VARCHAR(20))", database=mysql_database)
    mysql_server.execute("INSERT INTO orders VALUES (1, 'tea'), (2, 'milk'), (3, NULL)", database=mysql_database)
    return mysql_database


@pytest.fixture
def cdc(mysql_server, database_of_orders, tmp_path, lake, monkeypatch):
    """Call ``cdc`` over a folder with the source ``orders``, and return its output."""
    monkeypatch.setenv("CLI_TEST_PASSWORD", mysql_server.cdc_password)
    over_the_running_spark(monkeypatch, lake)
    server = {"host": mysql_server.host, "port": mysql_server.port, "user": mysql_server.cdc_user}
    source = {
        "server": {**server, "password_env": "CLI_TEST_PASSWORD"},
        "tables": [f"{database_of_orders}.*"],
        "store": {"url": f"file://{tmp_path}/store"},
        "lake": lake.config.lake.model_dump(mode="json"),
    }
    (tmp_path / "sources").mkdir()
    (tmp_path / "sources" / "orders.yaml").write_text(yaml.safe_dump(source))
    return lambda command: command_line(tmp_path / "sources", f"cdc {command}")


def test_a_whole_run_brings_the_rows_into_the_lake_and_the_next_one_their_changes(
    cdc, mysql_server, database_of_orders
):
    """Plan, drain, ack, merge, ack; read back without Spark."""
    first = cdc("run orders")
    assert [line.partition(":")[0] for line in first.splitlines() if line.startswith("[")] == [
        "[1/6] plan", "[2/6] drain", "[3/6] ack drain", "[4/6] plan merge", "[5/6] merge", "[6/6] ack lake",
    ]  # fmt: skip
    assert len(first.splitlines()) <= 10
    assert "[1/6] plan: 1 snapshot\n" in first
    assert not re.search(r"(?<![.\w])(0 |1 \w+s\b)|\n\n", first)
    rows = cdc(f"lake preview orders {database_of_orders}.orders")
    assert "tea" in rows
    assert "3 rows" in rows
    mysql_server.execute("UPDATE orders SET what = 'juice' WHERE id = 2", database=database_of_orders)
    mysql_server.execute("DELETE FROM orders WHERE id = 1", database=database_of_orders)
    for _ in range(2):  # the windows read while the snapshot ran may come first
        cdc("run orders")
    rows = cdc(f"lake preview orders {database_of_orders}.orders")
    assert "juice" in rows
    assert "tea" not in rows
    assert "2 rows" in rows
    (table,) = json.loads(cdc("lake tables orders --json"))
    assert (table["tables"], table["mode"], table["key"], table["rows"]) == (
        [f"{database_of_orders}.orders"], "mirror", ["id"], 2,
    )  # fmt: skip
    columns = json.loads(cdc(f"lake schema orders {database_of_orders}.orders --json"))
    assert [one["name"] for one in columns if one["is_key"]] == ["id"]
    (cut,) = json.loads(cdc("lake cuts orders --limit 1 --json"))
    cursors = {one["consumer"]: one for one in json.loads(cdc("cursor show orders --json"))}
    assert cut["position"] == cursors["lake"]["position"]
    batches = json.loads(cdc("batches list orders --json"))
    assert {one["status"] for one in batches} == {"acked"}
    assert sum(one["rows"] for one in batches) >= 2
    (status,) = json.loads(cdc("status orders --json"))
    assert status["error"] is None
    assert status["last_cut"]["tables"][0]["table"] == f"{database_of_orders}.orders"
    assert status["last_cut"]["tables"][0]["lake_rows"] == 2
    assert "orders" in cdc("status")
    families = text_string_to_metric_families(cdc("metrics orders"))
    figures = {(one.name, one.labels.get("op")): one.value for family in families for one in family.samples}
    rows_merged = [figures["cdc_rows_merged_total", op] for op in "cudr"]
    assert rows_merged == [0, 1, 1, 3]
    assert figures["cdc_lag_seconds", None] == 0
    assert figures["cdc_last_merge_seconds", None] > 0
    assert figures["cdc_merge_seconds_total", None] >= figures["cdc_last_merge_seconds", None]
