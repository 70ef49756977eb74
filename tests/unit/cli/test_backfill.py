"""``cdc backfill`` and ``cdc batches replay``: what they find, what they hand to the Spark job, and what they refuse."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest

from cdc_lib.cli import job
from cdc_lib.model.cursor import DRAIN, LAKE, Cursor, Move
from cdc_lib.model.window import SnapshotTask
from cdc_lib.store.cursors import ObjectCursorStore
from cdc_lib.store.objects.local import LocalStore
from tests.harness.lake.batches import BIGINT, IDENTITY, START_TIME, BatchWriter, Row, at, table

ORDERS = table("shop.orders", {"id": BIGINT})


@pytest.fixture
def store(tmp_path):
    """Two windows that the lake has."""
    store = LocalStore(tmp_path / "store")
    writer = BatchWriter(store)
    for low in (4, 100):
        writer.window(low, 200 if low == 100 else 100, {ORDERS: [Row("c", low + 10, {"id": low})]})
    for name in (DRAIN, LAKE):
        start = Move(START_TIME, "start", None, at(4))
        ObjectCursorStore(store).swap(None, Cursor("shop", name, 0, 1, IDENTITY, at(200), moves=(start,)))
    return store


def test_a_dry_run_lists_the_batches_and_merges_nothing(cdc, store):
    """Without Spark, and without the server."""
    since = (START_TIME + timedelta(seconds=150)).isoformat()
    found = cdc("backfill", "shop", "--since", since, "--dry-run")
    assert found.exit_code == 0
    assert ": 1 window\n" in found.stdout
    assert "shop.orders" in found.stdout
    plain = json.loads(cdc("backfill", "shop", "--since", since, "--dry-run", "--json").stdout)
    assert (plain["windows"], plain["snapshots"], plain["tables"]) == (1, 0, ["shop.orders"])
    assert "was ever merged" in cdc("backfill", "shop", "--until", "2020-01-01T00:00:00Z", "--dry-run").stdout


@pytest.fixture
def rekeyed(tmp_path):
    """Two windows of rows with the key (k, id), and the snapshot that gave the lake table the key (id), with a window after it."""
    store = LocalStore(tmp_path / "store")
    writer = BatchWriter(store)
    former, now = (table("shop.orders", {"k": BIGINT, "id": BIGINT}, key) for key in (("k", "id"), ("id",)))
    for low, schema in ((4, former), (100, former), (200, now)):
        high = (low // 100 + 1) * 100
        writer.window(low, high, {schema: [Row("c", low + 10, {"k": 1, "id": low})]})
    writer.chunk(now, 200, [{"k": 1, "id": 4}])
    lake = (SnapshotTask("shop", 1, "s1", "shop", "orders", 1, complete=True),)
    start = Move(START_TIME, "start", None, at(4))
    for name, snapshots in ((DRAIN, ()), (LAKE, lake)):
        cursor = Cursor("shop", name, 0, 1, IDENTITY, at(300), moves=(start,), snapshots=snapshots)
        ObjectCursorStore(store).swap(None, cursor)
    return store


def test_a_dry_run_says_which_windows_of_another_primary_key_are_left_out(cdc, rekeyed):
    """As the run itself says it, also where the snapshot lies after the time that was asked for."""
    until = (START_TIME + timedelta(seconds=90)).isoformat()
    line = (
        "windows of rows with the primary key (k, id) left out: the lake table keeps rows by the primary key (id), and a later "
        "snapshot replaced all of them"
    )
    for arguments in ((), ("--until", until)):
        assert f"shop.orders: 2 {line}" in cdc("backfill", "shop", "--dry-run", *arguments).stdout
        plain = json.loads(cdc("backfill", "shop", "--dry-run", "--json", *arguments).stdout)
        left_out = {"table": "shop.orders", "windows": 2, "keys": [["k", "id"]], "lake_key": ["id"]}
        assert (plain["left_out"], plain["refused"]) == ([left_out], [])


def test_a_dry_run_says_which_table_would_be_refused_for_rows_of_two_primary_keys(cdc, rekeyed):
    """A snapshot that comes later, or none, leaves no window out; the way out is the one of the run's error."""
    since = (START_TIME + timedelta(seconds=90)).isoformat()
    shown = cdc("backfill", "shop", "--dry-run", "--since", since, "--into", "copy").stdout
    assert "Begin with it: cdc backfill shop shop.orders --since 2026-01-01T00:00:00Z --into copy" in shown
    rekeyed.delete([info.key for info in rekeyed.list("shop/snapshots/")])
    until = (START_TIME + timedelta(seconds=90)).isoformat()
    shown = cdc("backfill", "shop", "--dry-run", "--until", until).stdout
    assert "shop.orders: would be refused: the oldest batch to " in shown
    assert "cdc snapshot shop shop.orders" in shown
    (refused,) = json.loads(cdc("backfill", "shop", "--dry-run", "--json", "--until", until).stdout)["refused"]
    assert (
        "has rows with the primary key (k, id), and the lake table keeps rows by the primary key (id)"
        in refused["message"]
    )


def test_the_job_gets_the_options(cdc, store, monkeypatch):
    """Patterns of tables come last, after two dashes."""
    called = []
    monkeypatch.setattr(job, "run_job", lambda module, _config, *options: called.append((module, *options)))
    assert cdc("backfill", "shop", "shop.*", "--since", "2026-01-01T00:00:00Z", "--into", "copy").exit_code == 0
    side = ("--into", "copy", "--copy-suffix", "__backfill")
    assert called == [("backfill", "--since", "2026-01-01T00:00:00Z", *side, "--", "shop.*")]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("backfill", "shop", "--json"), "--json is for --dry-run"),
        (("backfill", "shop", "--since", "yesterday"), "--since and --until: timestamp is not a time with its zone"),
        (
            ("batches", "replay", "shop", "--location", "/data/again", "--from-archive"),
            "'/data/again' is not a valid place for batches",
        ),
        (("batches", "replay", "shop", "--location", "STORE", "--from-archive"), "is the store of the source itself"),
    ],
)
def test_wrong_options_are_reported_before_anything_is_done(cdc, store, tmp_path, arguments, message):
    """As an error of the command line."""
    refused = cdc(*(part.replace("STORE", f"file://{tmp_path}/store") for part in arguments))
    assert refused.exit_code == 2
    assert message in " ".join(refused.stderr.split())
