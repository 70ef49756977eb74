"""Merges whose batches are in Azure Blob Storage: Hadoop's client reads them over TLS; the lake is in a folder."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from cdc_lib.read import Lake
from cdc_lib.store import documents
from cdc_lib.store.objects.open import open_store
from tests.harness.lake.batches import BIGINT, TEXT, BatchWriter, Row, table
from tests.harness.lake.running import lake_config
from tests.harness.servers.azure import AzureServer
from tests.harness.store.azure_identity import IdentityServer

ROOT = Path(__file__).parents[3]
ORDERS = table("shop.orders", {"id": BIGINT, "state": TEXT})


@pytest.fixture(scope="module")
def server():
    with AzureServer(names=["127.0.0.1"]) as server:
        yield server


def merge(folder, config, plan, secret):
    """Run one merge as a process; neither its command line nor its output has the secret."""
    (folder / "config.json").write_text(config.model_dump_json())
    (folder / "plan.json").write_bytes(documents.dump(plan))
    command = [
        sys.executable,
        "-m",
        "tests.harness.lake.merge_job",
        str(folder / "config.json"),
        str(folder / "plan.json"),
    ]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=900)
    assert done.returncode == 0, done.stdout
    assert "SPARK True" in done.stdout
    assert secret not in done.stdout


@pytest.mark.parametrize("login", ["account key", "sas", "managed identity"])
def test_batches_of_a_container_are_merged(server, tmp_path, monkeypatch, login):
    """With a managed identity, the machine is asked for a token."""
    store = {
        "url": f"abfss://{server.make_container()}@{server.host}/cdc",
        "endpoint_url": server.endpoint,
        "ca": str(server.ca),
    }
    secret = {"account key": server.account_key, "sas": server.sas()}.get(login)
    if secret is not None:
        monkeypatch.setenv("LAKE_SECRET", secret)
        store["azure_secret_env"] = "LAKE_SECRET"
    with IdentityServer() as identity:
        for name, value in identity.environment.items():
            monkeypatch.setenv(name, value)
        conf = {"spark.hadoop.fs.azure.account.oauth2.msi.endpoint": identity.url}
        config = lake_config(tmp_path, store=store, merge={"conf": conf})
        writer = BatchWriter(open_store(config.store))
        rows = [Row("c", 10 + i, {"id": i, "state": "new"}) for i in (1, 2, 3)]
        rows += [Row("d", 21, {"id": 1, "state": "new"}), Row("u", 22, {"id": 2, "state": "paid"})]
        merge(tmp_path, config, writer.plan(100, writer.window(4, 100, {ORDERS: rows})), secret or identity.header)
        assert bool(identity.agents) == (login == "managed identity"), identity.agents
    with Lake.open(config) as lake:
        found = lake.table("shop.orders").scan(columns=["id", "state"]).read_all().to_pylist()
    assert found == [{"id": 2, "state": "paid"}, {"id": 3, "state": "new"}]
