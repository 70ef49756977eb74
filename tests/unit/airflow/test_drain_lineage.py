"""What drains of windows and snapshots tell data catalogs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from cdc_airflow.lineage.drain import drained_tables, read_snapshots, stored_tables
from cdc_lib.config import SourceConfig, load_source
from cdc_lib.model.row_counts import RowCounts
from cdc_lib.store.manifests import load_manifest
from cdc_lib.store.objects.local import LocalStore
from tests.harness.lake.batches import BIGINT, TEXT, BatchWriter, Row, table

ORDERS = table("shop.orders", {"id": BIGINT, "item": TEXT})
ITEMS = table("shop.items", {"id": BIGINT})
NEVER = table("shop.none", {"id": BIGINT})

SOURCE = """
server: {host: db.example, user: cdc, password_env: CDC_TEST_PASSWORD}
tables: ["shop.*"]
store: {url: "s3://bucket/cdc"}
lake: {catalog: lake, type: jdbc, uri: "jdbc:sqlite:/x/cat.db", warehouse: "s3://bucket/lake"}
"""


@pytest.fixture
def config(tmp_path: Path) -> SourceConfig:
    file = tmp_path / "shop.yaml"
    file.write_text(SOURCE)
    return load_source(file)


@pytest.fixture
def writer(tmp_path: Path) -> BatchWriter:
    return BatchWriter(LocalStore(tmp_path / "store"))


def test_a_window_reads_tables_with_changes_and_writes_one_dataset_for_each(config: SourceConfig, writer: BatchWriter):
    """By the names of the store, with the columns of the Parquet files; rows by op only where the drain counted them."""
    rows = {
        ORDERS: [Row("c", 10, {"id": 1, "item": "a"}), Row("u", 20, {"id": 1, "item": "b"})],
        ITEMS: [Row("d", 30, {"id": 1})],
    }
    manifest = load_manifest(writer.store, writer.window(4, 100, rows))
    counted = tuple(
        replace(one, counts=RowCounts(deletes=1)) if one.table == ITEMS.name else one for one in manifest.files
    )
    manifest = replace(manifest, files=counted)
    assert [(one.dataset.namespace, one.dataset.name) for one in drained_tables(config, [manifest])] == [
        ("mysql://db.example:3306", "shop.items"),
        ("mysql://db.example:3306", "shop.orders"),
    ]
    items, orders = stored_tables(config, [manifest])
    assert (orders.dataset.namespace, orders.dataset.name) == ("s3://bucket", "cdc/shop/batches/shop.orders")
    assert orders.fields[0] == ("_op", "string")
    assert orders.fields[-2:] == (("id", "bigint"), ("item", "string"))
    assert (orders.row_count, orders.files, orders.batch) == (2, 1, manifest.id)
    assert (items.rows, orders.rows) == (RowCounts(deletes=1), None)
    assert read_snapshots([manifest]) == []


def test_a_share_of_snapshots_says_how_far_each_was_read(config: SourceConfig, writer: BatchWriter):
    """Chunks are counted together, between the first low and the last high watermark; a table without rows is read too."""
    keys = [
        writer.chunk(ORDERS, 10, [{"id": 1, "item": "a"}], number=0, last=False, high=15),
        writer.chunk(ORDERS, 20, [{"id": 2, "item": "b"}, {"id": 3, "item": "c"}], number=1, high=25),
        writer.chunk(NEVER, 30, [], last=False),
    ]
    manifests = [load_manifest(writer.store, key) for key in keys]
    orders, empty = read_snapshots(manifests)
    assert (orders.table, orders.snapshot_id, orders.chunks, orders.complete) == ("shop.orders", "s1", 2, True)
    assert (orders.low_watermark, orders.high_watermark) == ("binlog.000001:10", "binlog.000001:25")
    assert (empty.table, empty.chunks, empty.complete) == ("shop.none", 1, False)
    assert [one.dataset.name for one in drained_tables(config, manifests)] == ["shop.none", "shop.orders"]
    (stored,) = stored_tables(config, manifests)
    assert (stored.row_count, stored.files, stored.batch) == (3, 2, manifests[1].id)


def test_a_divided_snapshot_is_complete_when_each_range_is(config: SourceConfig, writer: BatchWriter):
    """Ranges are read side by side: the first of them need not have the least watermark."""
    keys = [
        writer.chunk(ORDERS, 20, [{"id": 1, "item": "a"}], of_range=(0, 2), high=90),
        writer.chunk(ORDERS, 10, [{"id": 9, "item": "b"}], of_range=(1, 2), high=30, last=False),
        writer.chunk(ORDERS, 40, [], of_range=(1, 2), number=1, high=50),
    ]
    manifests = [load_manifest(writer.store, key) for key in keys]
    (whole,) = read_snapshots(manifests)
    assert (whole.chunks, whole.complete) == (3, True)
    assert (whole.low_watermark, whole.high_watermark) == ("binlog.000001:10", "binlog.000001:90")
    assert [one.complete for one in read_snapshots(manifests[:2])] == [False]
