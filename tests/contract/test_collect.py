"""Consumers and the collection of batches over every object store."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from cdc_lib.consumers.subscribe import subscribe
from cdc_lib.errors import CorruptBatch
from cdc_lib.model.cursor import DRAIN, LAKE, Cursor
from cdc_lib.model.window import SnapshotTask
from cdc_lib.retention.garbage_collector import carry_out, plan_collection
from cdc_lib.store.cursors import ObjectCursorStore
from cdc_lib.store.windows import stored_windows
from tests.harness.lake.batches import IDENTITY, INT, BatchWriter, Row, at, table
from tests.harness.store.stores import KINDS, empty_store

A = table("shop.a", {"id": INT})
KEEP = timedelta(days=7)
LATER = timedelta(days=8)


@pytest.fixture(params=KINDS)
def store(request, tmp_path):
    return empty_store(request.param, request, tmp_path)


@pytest.fixture
def writer(store):
    """Three windows of one row each."""
    writer = BatchWriter(store)
    for low in (4, 104, 204):
        writer.window(low, low + 100, {A: [Row("c", low + 1, {"id": low})]})
    return writer


def stand(store, name, stop, **other):
    """Put a cursor somewhere."""
    cursors = ObjectCursorStore(store)
    cursors.swap(cursors.load("shop", name), Cursor("shop", name, 0, 1, IDENTITY, at(stop), **other))


def collect(store, after=LATER):
    planned = plan_collection(store, ObjectCursorStore(store), "shop", KEEP, datetime.now(UTC) + after)
    carry_out(store, planned)
    return planned


def starts(store):
    return [window.start.offset for window in stored_windows(store, "shop")]


def test_batches_that_every_consumer_has_read_are_removed_after_their_retention(store, writer):
    """Before that nothing does; what a consumer has not read stays however old it is."""
    stand(store, DRAIN, 304)
    stand(store, LAKE, 304)
    with subscribe(store, ObjectCursorStore(store), "shop", "audit") as audit:
        audit.get(1).ack()
    assert collect(store, timedelta(days=6)).removals == ()
    done = collect(store)
    assert [one.what for one in done.removals] == ["window"]
    assert done.holding == {"audit": 2}
    assert starts(store) == [104, 204]
    with subscribe(store, ObjectCursorStore(store), "shop", "audit") as audit:
        assert audit.get().tables()["shop.a"].column("id").to_pylist() == [104, 204]


def test_a_collection_that_died_in_the_middle_is_ended_by_the_next_one(store, writer):
    """A batch without its manifest is no batch; its files are named by nobody."""
    stand(store, DRAIN, 304)
    stand(store, LAKE, 304)
    store.delete([stored_windows(store, "shop")[0].key])
    left = [info.key for info in store.list("shop/batches/")]
    assert any("000000000004-" in key for key in left)
    collect(store)
    assert list(store.list("shop/batches/")) == []


def test_chunks_of_a_snapshot_are_removed_when_it_is_merged(store, writer):
    """And until then the windows after its low watermark stay too: a late chunk is merged with them."""
    task = SnapshotTask("shop", 1, "s1", "shop", "a", 2, complete=True)
    writer.chunk(A, 110, [{"id": 1}], number=0, last=False)
    writer.chunk(A, 210, [{"id": 2}], number=1)
    stand(store, DRAIN, 304, snapshots=(task,))
    stand(store, LAKE, 304)
    collect(store)
    assert starts(store) == [104, 204]
    assert len(list(store.list("shop/snapshots/"))) == 4
    half = SnapshotTask("shop", 1, "s1", "shop", "a", 1)
    stand(store, LAKE, 304, snapshots=(half,))
    collect(store)
    assert starts(store) == [204]
    stand(store, LAKE, 304, snapshots=(task,))
    collect(store)
    assert starts(store) == []
    assert list(store.list("shop/snapshots/")) == []


def test_a_cancelled_snapshot_holds_no_batches_back(store, writer):
    """Its chunks go, and so do the windows after their watermark."""
    writer.chunk(A, 110, [{"id": 1}], number=0, last=False)
    stand(store, DRAIN, 304, snapshots=(SnapshotTask("shop", 1, "s1", "shop", "a", 0, complete=True),))
    stand(store, LAKE, 304, snapshots=(SnapshotTask("shop", 1, "s1", "shop", "a", 1),))
    collect(store)
    assert starts(store) == []
    assert list(store.list("shop/snapshots/")) == []


def test_a_manifest_that_cannot_be_read_stops_the_collection(store, writer):
    """Nobody knows what it names."""
    stand(store, DRAIN, 304)
    stand(store, LAKE, 304)
    store.put(stored_windows(store, "shop")[1].key, b"{}")
    with pytest.raises(CorruptBatch):
        collect(store)
    assert len(starts(store)) == 3
