"""What is shown of windows, cuts and tables is decided from cursors and documents alone."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from cdc_lib.model.changed_rows import ChangedRows
from cdc_lib.model.cursor import DRAIN, LAKE, Cursor
from cdc_lib.model.position import Point
from cdc_lib.model.table_name import TableName
from cdc_lib.status.cut_facts import facts_of_cut, rows_by_table, spread
from cdc_lib.status.holdings import Holdings
from cdc_lib.status.source_state import rows_per_second, state_of
from cdc_lib.status.table_rows import TableRow, counts_of, select, table_rows
from cdc_lib.status.timeline import timeline, windows_of
from cdc_lib.status.window_facts_reader import WindowFactsReader
from cdc_lib.store.cursors import ObjectCursorStore
from cdc_lib.store.cuts import last_cuts
from cdc_lib.store.objects.local import LocalStore
from cdc_lib.store.windows import stored_windows, windows_after
from tests.harness.airflow.page_source import PageSource, reader_of
from tests.harness.lake.batches import at

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)
ORDERS, ITEMS, CARTS = (TableName("shop", name) for name in ("orders", "items", "carts"))


@pytest.fixture
def store(tmp_path: Path) -> LocalStore:
    return LocalStore(tmp_path / "store")


def held(store: LocalStore, tmp_path: Path, **facts) -> Holdings:
    PageSource(tmp_path / "sources", store, "shop", ended=NOW - timedelta(minutes=1), **facts).write()
    return reader_of(store).read_with_cuts(NOW)


def cursors(store: LocalStore) -> tuple[Cursor, Cursor]:
    drain, lake = (ObjectCursorStore(store).load("shop", name) for name in (DRAIN, LAKE))
    assert drain is not None
    assert lake is not None
    return drain, lake


def test_each_window_shows_what_became_of_it(store: LocalStore, tmp_path: Path):
    """Two are merged, one is acked, one has a batch, one has none yet."""
    found = held(store, tmp_path, windows=3, merged=2, in_flight=2, drained=1)
    drain, lake = cursors(store)
    facts = WindowFactsReader(store).read([window for window, _ in windows_of(drain)])
    rows = timeline(drain, lake, facts, found.stopped, found.recent)
    assert [row.state for row in rows] == ["planned", "drained", "acked", "merged", "merged"]
    assert [row.facts is None for row in rows] == [True, False, False, False, False]
    assert rows[3].merged_at == NOW - timedelta(minutes=11)
    assert rows[2].acked_at == NOW - timedelta(minutes=1)


def test_a_merge_in_flight_is_merging_until_a_table_stops_in_it(store: LocalStore, tmp_path: Path):
    """Then its windows have failed."""
    held(store, tmp_path, windows=3, merged=2)
    drain, lake = cursors(store)
    waiting = windows_of(drain)[-1][0]
    lake = lake.with_windows((waiting,))
    facts = WindowFactsReader(store).read([window for window, _ in windows_of(drain)])
    assert timeline(drain, lake, facts)[0].state == "merging"
    other = LocalStore(tmp_path / "other")
    failed = held(other, tmp_path, windows=3, merged=2, stopped=[ORDERS])
    assert timeline(drain, lake, facts, failed.stopped)[0].state == "failed"


def test_an_acked_window_without_a_batch_has_failed(store: LocalStore, tmp_path: Path):
    """And the source's first finding says which one it is."""
    held(store, tmp_path, windows=3, merged=2)
    drain, lake = cursors(store)
    last = stored_windows(store, "shop")[-1]
    store.delete([last.key])
    facts = WindowFactsReader(store).read([window for window, _ in windows_of(drain)])
    assert timeline(drain, lake, facts)[0].state == "failed"
    found = reader_of(store).read_with_cuts(NOW)
    assert state_of(found) == "failed"
    assert "cdc batches refill shop" in found.findings[0].hint


def test_moves_before_a_failover_belong_to_the_epoch_before(store: LocalStore, tmp_path: Path):
    """A move does not name its epoch; it is counted back from the cursor's."""
    held(store, tmp_path, windows=3, merged=3, failover=True)
    drain, lake = cursors(store)
    assert [window.epoch for window, _ in windows_of(drain)] == [1, 1, 2]
    facts = WindowFactsReader(store).read([window for window, _ in windows_of(drain)])
    assert len(facts) == 3
    assert [row.state for row in timeline(drain, lake, facts)] == ["merged"] * 3


def test_only_the_files_between_two_points_are_listed_and_the_windows_are_the_same(store: LocalStore, tmp_path: Path):
    """As if all were listed."""
    held(store, tmp_path, windows=8, merged=2)
    drain, lake = cursors(store)
    at, end = Point.at(1, lake.position), Point.at(1, drain.position)
    expected = [one for one in stored_windows(store, "shop") if at <= one.start < end]
    assert len(expected) == 6
    assert windows_after(store, drain, at, end) == expected
    assert windows_after(store, drain, at, end._replace(file=500)) == expected
    assert windows_after(store, drain, at, end._replace(epoch=2)) == expected


@pytest.mark.parametrize(
    ("facts", "state"),
    [
        ({}, "in_step"),
        ({"windows": 4}, "catching_up"),
        ({"quarantined": [ORDERS]}, "attention"),
        ({"drift": [ORDERS]}, "failed"),
        ({"stopped": [ORDERS]}, "failed"),
    ],
)
def test_the_worst_finding_makes_the_state(store: LocalStore, tmp_path: Path, facts, state):
    assert state_of(held(store, tmp_path, **{"tables": [ORDERS, ITEMS], **facts})) == state


def test_a_source_without_a_plan_is_new(store: LocalStore):
    """Nothing is stored, and that is no error."""
    found = reader_of(store).read_with_cuts(NOW)
    assert state_of(found) == "new"
    assert table_rows(found) == []
    assert found.lag_seconds is None


@pytest.mark.parametrize(("in_flight", "state"), [(0, "new"), (1, "catching_up")])
def test_a_source_that_drained_nothing_is_not_in_step(store: LocalStore, tmp_path: Path, in_flight: int, state: str):
    """Its first plan chose a position, or also planned windows."""
    found = held(store, tmp_path, windows=0, merged=0, compared=0, in_flight=in_flight)
    assert found.drain is not None
    assert found.drain.has_begun_only
    assert state_of(found) == state


def test_tables_are_searched_sorted_and_counted(store: LocalStore, tmp_path: Path):
    """What is not known comes last in either direction."""
    found = held(
        store, tmp_path, tables=[ORDERS, ITEMS, CARTS], compared=2, drift=[ITEMS], quarantined=[CARTS]
    )  # fmt: skip
    rows = table_rows(found)
    assert [row.table for row in rows] == ["shop.carts", "shop.items", "shop.orders"]
    assert counts_of(rows) == {"drift": 1, "equal": 1, "merged": 2, "never": 1, "quarantined": 1}
    assert [row.rows for row in rows] == [1014, 1007, 1000]
    rows = [replace(row, rows=None if row.table == CARTS else row.rows) for row in rows]
    assert [row.table for row in select(rows, order="rows")] == ["shop.orders", "shop.items", "shop.carts"]
    assert [row.table for row in select(rows, order="rows", descending=True)] == [
        "shop.items",
        "shop.orders",
        "shop.carts",
    ]
    assert [row.table for row in select(rows, text="ITEM")] == ["shop.items"]
    assert [row.table for row in select(rows, state="drift")] == ["shop.items"]
    assert [row.table for row in select(rows, state="quarantined")] == ["shop.carts"]
    (quarantined,) = select(rows, state="quarantined")
    assert "no exact place" in quarantined.note
    assert quarantined.as_of is not None


def test_a_table_some_of_whose_rows_were_compared_is_not_called_never_verified():
    """Of a merge whose rows could not be compared, nothing is known."""
    never = TableRow(ORDERS, "lake.shop.orders", "merged")
    none = ChangedRows(
        ORDERS, "lake.shop.orders", "m", 1, at(4), "", NOW, compared=0, in_flight=0, skipped="the source is away"
    )
    some = replace(none, compared=80, skipped="")
    rows = [never, replace(never, changed=none), replace(never, changed=some)]
    assert [row.verdict for row in rows] == ["never", "never", "part"]
    assert counts_of(rows) == {"merged": 3, "never": 2, "part": 1}
    assert select(rows, state="part") == rows[2:]


def test_a_table_whose_changes_the_last_cuts_hold_has_a_last_change(store: LocalStore, tmp_path: Path):
    """The time is that up to which the last of these cuts goes."""
    found = held(store, tmp_path, tables=[ORDERS])
    assert found.cut is not None
    assert table_rows(found)[0].last_change == found.cut.event_time


def test_what_did_not_change_is_not_read_again(store: LocalStore, tmp_path: Path):
    """Cuts never change; a comparison that was written since is read."""
    held(store, tmp_path, tables=[ORDERS, ITEMS], compared=2)
    reader = reader_of(store)
    first = reader.read_with_cuts(NOW)
    oldest, *_, latest = reader.listed_cuts()
    whole = reader.whole_cut(oldest)
    for info in store.list("shop/cuts/"):
        store.put(info.key, b"no document")
    second = reader.read_with_cuts(NOW)
    assert (reader.whole_cut(oldest), reader.whole_cut(latest)) == (whole, first.cut)
    assert second.cut is first.cut
    assert second.recent == first.recent
    PageSource(tmp_path / "sources", store, "shop", tables=[ORDERS, ITEMS], compared=2, drift=[ITEMS])._put_verified(
        ITEMS, 1
    )
    assert [one.table for one in reader.read_with_cuts(NOW).verified if not one.clean] == [ITEMS]


def test_throughput_counts_what_came_between_the_cuts(store: LocalStore, tmp_path: Path):
    """The rows of the first cut came before."""
    held(store, tmp_path, tables=[ORDERS], windows=3, merged=3, every=timedelta(minutes=1))
    cuts = tuple(map(facts_of_cut, last_cuts(store, "shop", 10)))
    assert rows_per_second(cuts) == pytest.approx((cuts[1].changes + cuts[2].changes) / 120)
    assert rows_per_second((cuts[0], cuts[2])) == rows_per_second(cuts)  # those of a cut that was removed count
    assert rows_per_second(cuts[:1]) is None
    assert rows_per_second((cuts[0], replace(cuts[1], at=cuts[0].at))) is None
    first, _, last = last_cuts(store, "shop", 10)
    assert rows_by_table(first, last) == {ORDERS: cuts[1].changes + cuts[2].changes}
    assert rows_by_table(last, first) == {}


def test_lag_in_bytes_and_retention_are_as_the_last_plan_saw_them(store: LocalStore, tmp_path: Path):
    """Three windows of a thousand bytes are not in the lake; the time since the plan counts."""
    found = held(store, tmp_path, windows=4, merged=3, in_flight=1, keeps=timedelta(hours=5))
    assert found.lag_bytes == 3000
    assert found.retention_left_seconds == timedelta(hours=5, minutes=-1).total_seconds()


def test_what_no_plan_saw_is_unknown(store: LocalStore, tmp_path: Path):
    """Not 0."""
    found = held(store, tmp_path)
    assert found.lag_bytes is None
    assert found.retention_left_seconds is None


@pytest.mark.parametrize("count", [0, 1, 2, 5, 149, 150, 151, 1000])
@pytest.mark.parametrize("limit", [1, 2, 150])
def test_a_picture_of_many_cuts_has_the_first_and_the_last(count: int, limit: int):
    found = spread(count, limit)
    assert found == sorted(set(found))
    assert len(found) <= max(limit, 0)
    assert len(found) == min(count, limit)
    if count and limit > 1:
        assert found[0] == 0
    if count:
        assert found[-1] == count - 1
