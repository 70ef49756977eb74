from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from cdc_lib.backfill.archive import BackfillArchive, period_of
from cdc_lib.backfill.preview import preview
from cdc_lib.config.tables import TablesConfig
from cdc_lib.errors import BatchesMissing, ConfigError, CursorMoved
from cdc_lib.model.backfill import BackfillRequest, Period
from cdc_lib.model.cursor import DRAIN, LAKE, Cursor, Move
from cdc_lib.model.held_table import HeldTable
from cdc_lib.model.position import Point
from cdc_lib.model.quarantine import Fault, QuarantineRecord
from cdc_lib.model.row_selection import RowSelection
from cdc_lib.model.table_name import TableName
from cdc_lib.model.window import SnapshotTask
from cdc_lib.source import Source
from cdc_lib.store.cursors import ObjectCursorStore
from cdc_lib.store.objects.layered import LayeredStore
from cdc_lib.store.objects.local import LocalStore
from tests.harness.lake.batches import BIGINT, IDENTITY, START_TIME, BatchWriter, Row, at, table
from tests.harness.lake.running import lake_config

ORDERS = table("shop.orders", {"id": BIGINT})
STARTED = Move(START_TIME, "start", None, at(4))


def seconds(number):
    return START_TIME + timedelta(seconds=number)


@pytest.fixture
def writer(tmp_path):
    return BatchWriter(LocalStore(tmp_path / "store"))


@pytest.fixture
def source(tmp_path, writer):
    """Four windows, of which the lake has three; XA transaction x is prepared in the first and committed in the third."""
    rows = {ORDERS: [Row("c", 110, {"id": 1})]}
    writer.window(4, 100, {}, prepared={"x": (20, {ORDERS: [Row("c", 20, {"id": 9})]})})
    writer.window(100, 200, rows)
    writer.window(200, 300, {}, decided={"x": (250, True)})
    writer.window(300, 400, rows)
    cursors = ObjectCursorStore(writer.store)
    for name, stop in ((DRAIN, 400), (LAKE, 300)):
        cursors.swap(None, Cursor("shop", name, 0, 1, IDENTITY, at(stop), moves=(STARTED,)))
    return BackfillArchive(Source.over(lake_config(tmp_path), writer.store))


def test_a_period_includes_only_windows_before_the_lake_cursor(source):
    """Unmerged windows are not part of it."""
    found = source.found(Period(seconds(150)))
    assert (found.begin, found.end, found.chosen) == (Point(1, 1, 100), Point(1, 1, 300), 2)
    assert len(found.windows) == 4
    assert source.found(Period(datetime.now(UTC) + timedelta(days=2))) is None


def test_a_table_whose_snapshot_is_read_is_left_out_and_can_be_copied(source):
    """The lake lacks changes of it, which no later merge would bring after a backfill."""
    lake = source.source.cursors.load("shop", LAKE)
    wanted = BackfillRequest(Period(seconds(150)))
    assert preview(source, wanted).tables == (ORDERS.name,)
    source.source.cursors.swap(lake, replace(lake, held=(HeldTable(TableName("shop", "orders"), 1, at(200)),)))
    assert preview(source, wanted).tables == ()
    assert preview(source, replace(wanted, into="copy")).tables == (ORDERS.name,)


def test_rows_of_a_transaction_prepared_before_the_period_are_included(source):
    """As in a merge, from the batch that holds them."""
    found = source.found(Period(seconds(250)))
    plan = source.plan(found, found.begin, found.end)
    assert [one.prepared.xid for one in plan.prepared] == ["x"]
    assert len(plan.batches) == 1
    for pattern, tables in (("shop.*", ("shop.orders",)), ("other.*", ())):
        assert preview(source, BackfillRequest(Period(seconds(150)), (pattern,))).tables == tables


def test_removed_rows_of_a_prepared_transaction_are_reported(source, writer):
    """Unless the newest snapshot of every table was read after the commit, also one requested later."""
    first = next(one.key for one in writer.store.list("shop/") if one.key.endswith("manifest.json"))
    writer.store.delete([first])
    found = source.found(Period(seconds(250)))
    with pytest.raises(
        BatchesMissing, match="the XA transaction x is committed in this time, and its rows are in no batch"
    ):
        source.plan(found, found.begin, found.end)
    drain = source.source.cursors.load("shop", DRAIN)
    task = SnapshotTask("shop", 1, "000001-000001.000000000260-000004", "shop", "orders", 1, complete=True)
    source.source.cursors.swap(drain, replace(drain, snapshots=(task,)))
    assert source.plan(found, found.begin, found.end).prepared == ()
    one_more = replace(task, snapshot_id="000001-000001.000000000010-000004", table="lines")
    drain = source.source.cursors.load("shop", DRAIN)
    source.source.cursors.swap(drain, replace(drain, snapshots=(task, one_more)))
    with pytest.raises(BatchesMissing, match="the XA transaction x is committed in this time"):
        source.plan(found, found.begin, found.end)


@pytest.mark.parametrize("requested", [240, 260])
def test_the_newest_snapshot_of_a_table_decides_whether_rows_of_a_prepared_transaction_are_missing(
    source, writer, requested
):
    """By when it was read; not an older one of the table, a partial one, or one of a table that is quarantined."""
    first = next(one.key for one in writer.store.list("shop/") if one.key.endswith("manifest.json"))
    writer.store.delete([first])
    found = source.found(Period(seconds(250)))
    newest, old, older = (f"000001-000001.{offset:012d}-000004" for offset in (requested, 20, 10))
    writer.chunk(ORDERS, 260, [{"id": 1}], snapshot=newest)
    task = SnapshotTask("shop", 1, newest, "shop", "orders", 1, complete=True)
    part = replace(task, snapshot_id=old, table="lines", selection=RowSelection(("id",), ("1",)))
    bad = replace(task, snapshot_id=old, table="bad")
    fault = Fault(at(300), "UnsupportedValue", "bad text")
    quarantined = QuarantineRecord(bad.name, 1, at(300), at(300), at(300), fault, None, START_TIME, "test")
    tasks = (task, replace(task, snapshot_id=old), replace(task, snapshot_id=older), part, bad)
    drain = source.source.cursors.load("shop", DRAIN)
    source.source.cursors.swap(drain, replace(drain, snapshots=tasks, quarantine=(quarantined,)))
    assert source.plan(found, found.begin, found.end).prepared == ()


def test_a_snapshot_is_included_once_it_is_complete_in_the_lake(source, writer):
    """The backfill then begins at its low watermark, with its chunks first."""
    keys = [writer.chunk(ORDERS, 50, [{"id": 1}], number=n, last=n == 1) for n in (0, 1)]
    lake = source.source.cursors.load("shop", LAKE)
    name = keys[0].split("/")[2]
    for chunks, complete in ((1, False), (2, True)):
        task = SnapshotTask("shop", 1, name, "shop", "orders", chunks, complete)
        lake = source.source.cursors.swap(lake, replace(lake, snapshots=(task,)))
        found = source.found(Period())
        assert [one.keys for one in found.snapshots] == ([tuple(keys)] if complete else [])
    assert source.plan(found, found.begin, found.end).batches[:2] == tuple(keys)
    writer.store.delete([keys[1]])
    assert BackfillArchive(source.source).found(Period()).snapshots == ()


def test_windows_after_the_end_of_their_epoch_and_inside_another_window_are_ignored(source, writer):
    """A batch of the old server that was not acknowledged, and one drained again with other bounds."""
    writer.window(100, 150, {ORDERS: [Row("c", 110, {"id": 1})]})
    writer.window(400, 500, {ORDERS: [Row("c", 410, {"id": 1})]})
    assert [w.start.offset for w in source.found(Period()).windows] == [4, 100, 200, 300]


def test_a_period_whose_batches_were_removed_is_refused(source, writer):
    """The error names the oldest batch."""
    first = next(info.key for info in writer.store.list("shop/batches/") if info.key.endswith("manifest.json"))
    writer.store.delete([first])
    with pytest.raises(BatchesMissing, match="the oldest batch begins at 2026-01-01 00:00:00"):
        source.found(Period(START_TIME - timedelta(days=1)))


def test_wrong_times_and_tables_are_refused(source):
    """Before anything is read."""
    with pytest.raises(ConfigError, match="nothing lies between"):
        period_of("2026-11-20T00:00:00Z", "2026-11-19T00:00:00Z")
    with pytest.raises(ConfigError, match="with its zone"):
        period_of("2026-11-20T00:00:00", None)
    config = source.source.config.model_copy(update={"tables": TablesConfig(include=("other.*",))})
    with pytest.raises(ConfigError, match=r"not captured: shop\.orders"):
        replace(source, source=replace(source.source, config=config)).chosen_tables(["shop.orders"], ["shop.orders"])
    with pytest.raises(ConfigError, match="not a pattern of tables"):
        source.chosen_tables(["shop.orders"], ["orders"])
    empty = BackfillArchive(replace(source.source, config=source.source.config.model_copy(update={"source": "other"})))
    with pytest.raises(CursorMoved, match="no drain cursor yet"):
        empty.found(Period())


def test_batches_of_another_store_override_those_of_the_source(source, writer, tmp_path):
    """File by file, and nothing is written to the source's store."""
    place = LocalStore(tmp_path / "place")
    again = BatchWriter(place).window(100, 200, {ORDERS: [Row("c", 110, {"id": 7})]})
    both = LayeredStore(place, writer.store)
    assert both.get(again).data == place.get(again).data != writer.store.get(again).data
    part = again.replace("manifest.json", "shop.orders/part-00000.parquet")
    assert both.url(part) == place.url(part)
    other = again.replace("000000000100", "000000000300").replace("000000000200", "000000000400")
    assert both.url(other) == writer.store.url(other)
    assert [info.key for info in both.list("shop/batches/")] == [i.key for i in writer.store.list("shop/batches/")]
    assert not both.put_if_absent(other, b"{}")
    both.put("shop/new.json", b"{}")
    assert writer.store.get("shop/new.json") is None
