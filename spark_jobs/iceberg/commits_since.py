"""History of an Iceberg table since a cut, from its metadata: commits and columns."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from cdc_lib.model.foreign import LakeCommit, LakeField, Past
from cdc_lib.model.lake_table import MARKER_PROPERTY
from spark_jobs.runtime.java_classes import JavaClasses

MAX_COMMITS = 1000
"""Most commits that are read, from the current one back."""


def past_of(classes: JavaClasses, table: Any, snapshot_id: int, schema_id: int) -> Past:
    """Return the history of a table since a snapshot and a schema.

    Args:
        classes: cache of Iceberg's classes.
        table: Iceberg's table.
        snapshot_id: the current snapshot at that time.
        schema_id: the current schema at that time.
    """
    schemas = table.schemas()
    then = schemas.get(schema_id)
    fields = tuple(_fields(classes, table.schema()))
    fields_then = tuple(_fields(classes, then)) if then is not None else None
    return Past(tuple(_commits(classes, table, snapshot_id)), fields, fields_then)


def _commits(classes: JavaClasses, table: Any, until: int) -> Iterator[LakeCommit]:
    """Yield the commits from the current one back to ``until``, which is excluded, or to the oldest stored one."""
    snapshot = table.currentSnapshot()
    to_json = classes.static("org.apache.iceberg.SnapshotParser", "toJson")
    for _ in range(MAX_COMMITS):
        if snapshot is None or snapshot.snapshotId() == until:
            return
        yield _commit(json.loads(to_json(snapshot)))
        parent = snapshot.parentId()
        snapshot = table.snapshot(parent) if parent is not None else None


def _commit(plain: dict[str, Any]) -> LakeCommit:
    summary: dict[str, str] = plain.get("summary", {})
    # A new deletion vector repeats the rows that were deleted before.
    row_deletes = _count(summary, "added-position-deletes") - _count(summary, "removed-position-deletes")
    return LakeCommit(
        snapshot_id=int(plain["snapshot-id"]),
        operation=summary.get("operation", ""),
        marked=any(name.startswith(MARKER_PROPERTY) for name in summary),
        application=summary.get("spark.app.id", ""),
        at=datetime.fromtimestamp(int(plain["timestamp-ms"]) / 1000, UTC),
        added=_count(summary, "added-records"),
        deleted=max(0, _count(summary, "deleted-records") + row_deletes),
    )


def _count(summary: dict[str, str], name: str) -> int:
    return int(summary.get(name, 0))


def _fields(classes: JavaClasses, schema: Any) -> Iterator[LakeField]:
    """Yield the columns of a schema, with Spark's names of their types."""
    plain = json.loads(classes.static("org.apache.iceberg.SchemaParser", "toJson")(schema))
    for one in plain["fields"]:
        kind = one["type"]
        yield LakeField(
            int(one["id"]), str(one["name"]), _SPARK.get(kind, kind) if isinstance(kind, str) else json.dumps(kind)
        )


_SPARK = {"long": "bigint", "timestamp": "timestamp_ntz", "timestamptz": "timestamp"}
