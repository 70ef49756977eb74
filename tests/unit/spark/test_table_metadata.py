"""What a merge reads from the metadata file of an Iceberg table."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest

from cdc_lib.errors import MergeError
from cdc_lib.model.foreign import LakeField
from cdc_lib.model.lake_table import MARKER_PROPERTY, Marker
from cdc_lib.model.position import Point
from cdc_lib.model.table_name import TableName
from spark_jobs.iceberg.commits_since import past_of
from spark_jobs.iceberg.markers import markers_of
from spark_jobs.iceberg.statistics import has_statistics, size_of
from spark_jobs.iceberg.table_metadata import TableMetadata, spark_type

ORDERS = TableName("shop", "orders")
AT = datetime(2026, 1, 1, tzinfo=UTC)
MARKER = Marker(Point(1, 1, 10), source_uuid="life")


def snapshot(number, parent=None, **summary):
    named = {"snapshot-id": number, "sequence-number": number, "timestamp-ms": int(AT.timestamp() * 1000) + number}
    return named | ({} if parent is None else {"parent-snapshot-id": parent}) | {"summary": summary}


def marked(number, parent=None, **summary):
    return snapshot(number, parent, **{MARKER_PROPERTY: MARKER.to_json(), **summary})


def metadata(*snapshots, **changed):
    fields = [{"id": 1, "name": "id", "type": "long"}, {"id": 3, "name": "v", "type": "decimal(10, 2)"}]
    plain = {
        "table-uuid": "u",
        "location": "file:///lake/orders",
        "last-sequence-number": len(snapshots),
        "last-updated-ms": 1,
        "current-schema-id": 1,
        "schemas": [{"schema-id": 0, "fields": fields[:1]}, {"schema-id": 1, "fields": fields}],
        "current-snapshot-id": snapshots[-1]["snapshot-id"] if snapshots else -1,
        "snapshots": list(snapshots),
        **changed,
    }
    return TableMetadata.from_json(json.dumps(plain))


def markers(table):
    return markers_of(table, "shop", {ORDERS: False}, ("shop", "shop.orders"))


@pytest.mark.parametrize("current", [-1, None])
def test_a_table_without_snapshots_has_no_current_one(current):
    """Iceberg writes no snapshot as -1, other writers as null."""
    empty = metadata(**{"current-snapshot-id": current})
    assert empty.current is None
    assert list(empty.line()) == []
    assert markers(empty) == ({ORDERS: Marker()}, {}, {}, "")


@pytest.mark.parametrize(
    ("iceberg", "spark"),
    [
        ("int", "int"),
        ("long", "bigint"),
        ("timestamp", "timestamp_ntz"),
        ("timestamptz", "timestamp"),
        ("decimal(38, 10)", "decimal(38,10)"),
        ("fixed[16]", "binary"),
        ("uuid", "string"),
        ({"type": "list", "element-id": 4, "element": "long", "element-required": True}, "array<bigint>"),
        ({"type": "map", "key-id": 4, "key": "string", "value-id": 5, "value": "int"}, "map<string,int>"),
        ({"type": "struct", "fields": [{"id": 4, "name": "a", "type": "timestamptz"}]}, "struct<a:timestamp>"),
    ],
)
def test_types_have_the_names_of_spark(iceberg, spark):
    assert spark_type(iceberg) == spark


def test_columns_are_those_of_the_current_schema_or_of_a_named_one():
    table = metadata()
    assert table.columns() == (LakeField(1, "id", "bigint"), LakeField(3, "v", "decimal(10,2)"))
    assert table.columns(0) == (LakeField(1, "id", "bigint"),)
    assert table.columns(7) is None


def test_the_newest_marker_is_found_in_spite_of_later_maintenance_commits():
    """A snapshot of another branch does not count."""
    table = metadata(marked(1), marked(2, 1), snapshot(9, 2, note="branch"), snapshot(3, 2, operation="replace"))
    found, carried, sequences, _ = markers(table)
    assert (found[ORDERS], carried, sequences) == (MARKER, {}, {ORDERS: 2})


def test_a_table_whose_marked_snapshots_are_expired_is_refused():
    with pytest.raises(MergeError, match="older ones are expired"):
        markers(metadata(snapshot(3, 2)))


def test_a_table_that_no_merge_has_written_has_blank_markers():
    assert markers(metadata(snapshot(1), snapshot(2, 1)))[0] == {ORDERS: Marker()}


def test_the_past_ends_at_the_cut_and_counts_rows():
    """A new deletion vector repeats the rows that were deleted before."""
    deletes = {"added-position-deletes": "7", "removed-position-deletes": "4", "deleted-records": "1"}
    table = metadata(marked(1), marked(2, 1), snapshot(3, 2, operation="overwrite", **deletes))
    [commit] = past_of(table, 2, 0).commits
    assert (commit.snapshot_id, commit.operation, commit.marked) == (3, "overwrite", False)
    assert (commit.added, commit.deleted) == (0, 4)
    assert past_of(table, 2, 0).fields_then == table.columns(0)


@pytest.mark.parametrize(("added", "valid"), [(10, True), (11, False)])
def test_statistics_are_valid_until_a_tenth_of_the_rows_changed(added, valid):
    """A rewrite of files changes no rows."""
    blobs = [{"fields": [1]}]
    file = {"snapshot-id": 1, "blob-metadata": blobs, "file-size-in-bytes": 500}
    table = metadata(
        snapshot(1, **{"total-records": "100"}),
        snapshot(2, 1, operation="append", **{"added-records": str(added), "total-records": "100"}),
        snapshot(3, 2, operation="replace", **{"added-records": "100", "total-records": "100"}),
        statistics=[file],
    )
    assert has_statistics(table, ["ID"]) is valid
    assert not has_statistics(table, ["id", "v"])
    assert size_of(table) == 0
