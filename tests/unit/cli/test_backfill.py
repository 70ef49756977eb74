"""``cdc backfill`` and ``cdc batches replay``: what they find, what they hand to the Spark job, and what they refuse."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest

from cdc_lib.cli import spark
from cdc_lib.model.cursor import DRAIN, LAKE, Cursor, Move
from cdc_lib.store.cursors import ObjectCursorStore
from cdc_lib.store.objects.local import LocalStore
from tests.harness.batches import BIGINT, DAWN, IDENTITY, BatchWriter, Row, at, table

ORDERS = table("shop.orders", {"id": BIGINT})


@pytest.fixture
def store(tmp_path):
    """Two windows that the lake has."""
    store = LocalStore(tmp_path / "store")
    writer = BatchWriter(store)
    for low in (4, 100):
        writer.window(low, 200 if low == 100 else 100, {ORDERS: [Row("c", low + 10, {"id": low})]})
    for name in (DRAIN, LAKE):
        start = Move(DAWN, "start", None, at(4))
        ObjectCursorStore(store).swap(None, Cursor("shop", name, 0, 1, IDENTITY, at(200), moves=(start,)))
    return store


def test_a_dry_run_tells_what_there_is_and_merges_nothing(cdc, store):
    """Without Spark, and without the server."""
    since = (DAWN + timedelta(seconds=150)).isoformat()
    found = cdc("backfill", "shop", "--since", since, "--dry-run")
    assert found.exit_code == 0
    assert "1 windows and 0 snapshots of tables" in found.stdout
    assert "shop.orders" in found.stdout
    plain = json.loads(cdc("backfill", "shop", "--since", since, "--dry-run", "--json").stdout)
    assert (plain["windows"], plain["snapshots"], plain["tables"]) == (1, 0, ["shop.orders"])
    assert "was ever merged" in cdc("backfill", "shop", "--until", "2020-01-01T00:00:00Z", "--dry-run").stdout


def test_the_job_is_told_what_was_asked_for(cdc, store, monkeypatch):
    """Patterns of tables come last, after two dashes."""
    called = []
    monkeypatch.setattr(spark, "run_job", lambda module, _config, *options: called.append((module, *options)))
    assert cdc("backfill", "shop", "shop.*", "--since", "2026-01-01T00:00:00Z", "--into", "copy").exit_code == 0
    side = ("--into", "copy", "--copy-suffix", "__backfill")
    assert called == [("spark_jobs.backfill", "--since", "2026-01-01T00:00:00Z", *side, "--", "shop.*")]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("backfill", "shop", "--json"), "--json is for --dry-run"),
        (("backfill", "shop", "--since", "yesterday"), "--since and --until: timestamp is not a time with its zone"),
        (
            ("batches", "replay", "shop", "--location", "/data/again", "--from-archive"),
            "'/data/again' is no place for batches",
        ),
        (("batches", "replay", "shop", "--location", "STORE", "--from-archive"), "is the store of the source itself"),
    ],
)
def test_what_is_wrong_is_told_before_anything_is_done(cdc, store, tmp_path, arguments, message):
    """As an error of the command line."""
    refused = cdc(*(part.replace("STORE", f"file://{tmp_path}/store") for part in arguments))
    assert refused.exit_code == 2
    assert message in " ".join(refused.stderr.split())
