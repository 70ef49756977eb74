"""Merges whose batches are in Google Cloud Storage: Hadoop's connector reads them; the lake is in a folder."""

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
from tests.harness.store.google_account import EMAIL, TokenServer, account_key

ROOT = Path(__file__).parents[3]
ORDERS = table("shop.orders", {"id": BIGINT, "state": TEXT})


def merge(folder, config, plan):
    """Run one merge as a process; its command line has no secret, and its output neither."""
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
    assert "PRIVATE KEY" not in done.stdout


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_batches_of_a_bucket_are_merged_with_the_key_of_a_service_account(
    gcs_server, gcs_bucket, tmp_path, monkeypatch
):
    """The key is exchanged for a token."""
    store = {
        "url": f"gs://{gcs_bucket}/cdc",
        "endpoint_url": gcs_server.endpoint,
        "service_account_env": "LAKE_ACCOUNT",
    }
    config = lake_config(tmp_path, store=store)
    with TokenServer() as tokens:
        monkeypatch.setenv("LAKE_ACCOUNT", account_key(tokens.url))
        writer = BatchWriter(open_store(config.store))
        rows = [Row("c", 10 + i, {"id": i, "state": "new"}) for i in (1, 2, 3)]
        rows += [Row("d", 21, {"id": 1, "state": "new"}), Row("u", 22, {"id": 2, "state": "paid"})]
        merge(tmp_path, config, writer.plan(100, writer.window(4, 100, {ORDERS: rows})))
        assert tokens.asked_by == {EMAIL}
    with Lake.open(config) as lake:
        rows = lake.table("shop.orders").scan(columns=["id", "state"]).read_all().to_pylist()
    assert rows == [{"id": 2, "state": "paid"}, {"id": 3, "state": "new"}]
