from __future__ import annotations

import pytest

from cdc_lib.consumers.subscribe import subscribe
from cdc_lib.errors import BatchesMissing, ConfigError, CorruptBatch, IncompatibleSchema
from cdc_lib.model.cursor import DRAIN, LAKE, Cursor
from cdc_lib.model.manifest import ABSENT, CHANGE_COLUMNS
from cdc_lib.model.subscription import Interest
from cdc_lib.store.cursors import ObjectCursorStore
from cdc_lib.store.objects.local import LocalStore
from tests.harness.lake.batches import BIGINT, IDENTITY, INT, TEXT, BatchWriter, Row, at, table

OLD = table("shop.a", {"id": INT, "v": TEXT, "w": INT})
NEW = table("shop.a", {"v": TEXT, "id": BIGINT, "x": INT})


@pytest.fixture
def writer(tmp_path):
    return BatchWriter(LocalStore(tmp_path))


def get(writer, stop, interest=None, **how):
    """Subscribe to what is stored up to a place and get it."""
    cursors = ObjectCursorStore(writer.store)
    cursors.swap(cursors.load("shop", DRAIN), Cursor("shop", DRAIN, 0, 1, IDENTITY, at(stop)))
    with subscribe(writer.store, cursors, "shop", "audit", interest, **how) as subscription:
        return subscription.get()


def test_cells_that_are_not_in_a_change_stay_marked(writer):
    """With a mark for each column that is there, also when some are left out."""
    rows = [Row("u", 10, {"id": 1, "w": 3}, absent=frozenset({"v"})), Row("c", 20, {"id": 2, "v": "b", "w": 4})]
    writer.window(4, 100, {OLD: rows})
    found = get(writer, 100, Interest(columns=("v", "w"))).tables()["shop.a"]
    assert found.column_names == [*CHANGE_COLUMNS, ABSENT, "v", "w"]
    assert found.column(ABSENT).to_pylist() == ["-+", None]
    assert found.column("w").to_pylist() == [3, 4]


def test_versions_of_a_table_come_apart_or_united(writer):
    """United: null where a version lacks the column, the wider integer, and marks in the order of all columns."""
    writer.window(4, 100, {OLD: [Row("u", 10, {"id": 1}, absent=frozenset({"w"}))]})
    writer.window(100, 200, {NEW: [Row("c", 110, {"id": 2, "v": "b", "x": 9})]})
    batch = get(writer, 200)
    assert [(one.table, one.schema, one.rows.num_rows) for one in batch.changes()] == [
        ("shop.a", OLD, 1), ("shop.a", NEW, 1),
    ]  # fmt: skip
    (found,) = batch.tables().values()
    assert found.select(["id", "v", "w", "x", ABSENT]).to_pylist() == [
        {"id": 1, "v": None, "w": None, "x": None, ABSENT: "++-+"},
        {"id": 2, "v": "b", "w": None, "x": 9, ABSENT: None},
    ]


def test_types_that_cannot_be_united_are_reported_and_versions_can_be_read_separately(writer):
    """Nothing is turned into text to make it fit."""
    writer.window(4, 100, {OLD: [Row("c", 10, {"id": 1, "v": "a"})]})
    writer.window(100, 200, {table("shop.a", {"id": INT, "v": INT}): [Row("c", 110, {"id": 2, "v": 7})]})
    batch = get(writer, 200)
    with pytest.raises(IncompatibleSchema, match=r"shop\.a"):
        batch.tables()
    assert sum(one.rows.num_rows for one in batch.changes()) == 2


def test_rows_before_the_start_of_a_consumer_are_left_out(writer):
    """Where a rewound drain cut the stream again, so that a window goes over that place."""
    first = [Row("c", 10, {"id": 1}), Row("c", 60, {"id": 2})]
    writer.window(4, 50, {OLD: first[:1]})
    assert get(writer, 50, start="latest").id is None
    writer.window(4, 100, {OLD: first})
    found = get(writer, 100).tables()["shop.a"]
    assert found.column("id").to_pylist() == [2]


def test_a_commit_whose_rows_are_in_no_batch_is_reported_and_not_skipped(writer):
    """It was prepared before the source began."""
    writer.window(4, 100, {}, decided={"x1": (50, True)})
    with pytest.raises(BatchesMissing, match="x1"):
        get(writer, 100)


def test_a_file_with_other_rows_than_its_manifest_says_is_refused(writer):
    """As one that is no Parquet file."""
    key = writer.window(4, 100, {OLD: [Row("c", 10, {"id": 1})]})
    batch = get(writer, 100)
    path = key.replace("manifest.json", "shop.a/part-00000.parquet")
    whole = writer.store.get(path).data
    writer.window(100, 200, {OLD: [Row("c", 110, {"id": 1}), Row("c", 120, {"id": 1})]})
    other = key.replace(key.split("/")[-2], "000001-000001.000000000100-000001.000000000200")
    writer.store.put(path, writer.store.get(other.replace("manifest.json", "shop.a/part-00000.parquet")).data)
    with pytest.raises(CorruptBatch, match="other rows"):
        batch.tables()
    writer.store.put(path, whole[:-5])
    with pytest.raises(CorruptBatch, match="cannot be read"):
        batch.tables()


@pytest.mark.parametrize("name", [DRAIN, LAKE])
def test_the_cursors_of_the_pipeline_cannot_be_subscribed_to(writer, name):
    """Their acks count other evidence."""
    with pytest.raises(ConfigError):
        subscribe(writer.store, ObjectCursorStore(writer.store), "shop", name)


@pytest.mark.parametrize("wrong", [{"tables": ("orders",)}, {"exclude": ("/(/",)}, {"columns": ("`id`",)}])
def test_an_invalid_pattern_is_refused_when_the_consumer_subscribes(writer, wrong):
    """It would match nothing for ever."""
    with pytest.raises(ConfigError, match="asks for"):
        subscribe(writer.store, ObjectCursorStore(writer.store), "shop", "audit", Interest(**wrong))
