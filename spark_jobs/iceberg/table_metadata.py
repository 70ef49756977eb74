"""Metadata of an Iceberg table as plain values: the JSON of its metadata file, which Iceberg's specification defines.

What a merge decides from metadata is decided on these values. So only :mod:`spark_jobs.iceberg.loading` depends on how they
are read.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from typing import Any

from cdc_lib.model.foreign import LakeField
from cdc_lib.model.lake_types import spark_name


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One snapshot of a table.

    Args:
        id: snapshot ID.
        parent: the snapshot before it, which may be expired; None for the first.
        sequence: its sequence number.
        at: when it was committed (UTC).
        summary: its properties; ``operation`` is one of them.
    """

    id: int
    parent: int | None
    sequence: int
    at: datetime
    summary: Mapping[str, str]

    def count(self, name: str) -> int:
        """Return a number of the summary; 0 if it is missing."""
        return int(self.summary.get(name) or 0)


@dataclass(frozen=True)
class TableMetadata:
    """The metadata of a table at one moment.

    Args:
        plain: the contents of the metadata file.
    """

    plain: Mapping[str, Any]

    @classmethod
    def from_json(cls, text: str) -> TableMetadata:
        """Parse the contents of a metadata file."""
        return cls(json.loads(text))

    @property
    def uuid(self) -> str:
        """Iceberg's table UUID."""
        return str(self.plain["table-uuid"])

    @property
    def location(self) -> str:
        """Folder of the table's files."""
        return str(self.plain["location"])

    @property
    def updated(self) -> datetime:
        """When the metadata changed last (UTC), by the clock of the machine that did it."""
        return datetime.fromtimestamp(self.plain["last-updated-ms"] / 1000, UTC)

    @property
    def last_sequence(self) -> int:
        """Sequence number of the last commit."""
        return int(self.plain.get("last-sequence-number", 0))

    @property
    def schema_id(self) -> int:
        """Id of the current schema."""
        return int(self.plain["current-schema-id"])

    @property
    def schema(self) -> Mapping[str, Any]:
        """The current schema, as the metadata file has it."""
        return next(one for one in self.plain["schemas"] if one["schema-id"] == self.schema_id)

    @property
    def spec(self) -> Mapping[str, Any]:
        """The current partition spec, as the metadata file has it."""
        return next(one for one in self.plain["partition-specs"] if one["spec-id"] == self.plain["default-spec-id"])

    @property
    def sort_order(self) -> Mapping[str, Any]:
        """The current sort order, as the metadata file has it."""
        return next(one for one in self.plain["sort-orders"] if one["order-id"] == self.plain["default-sort-order-id"])

    @property
    def properties(self) -> Mapping[str, str]:
        """The table's properties."""
        properties: Mapping[str, str] = self.plain.get("properties", {})
        return properties

    @cached_property
    def snapshots(self) -> Mapping[int, Snapshot]:
        """All snapshots that are not expired, by ID."""
        return {one["snapshot-id"]: _snapshot(one) for one in self.plain.get("snapshots", [])}

    @cached_property
    def heads(self) -> Mapping[str, int]:
        """The snapshot of each branch and tag; ``main`` is missing in a table without snapshots."""
        return {name: int(ref["snapshot-id"]) for name, ref in self.plain.get("refs", {}).items()}

    @property
    def current(self) -> Snapshot | None:
        """The current snapshot; None for a table without snapshots."""
        return self.snapshots.get(self.plain.get("current-snapshot-id") or -1)

    def without_rows(self) -> TableMetadata:
        """Return the metadata of the table as if it had no snapshot."""
        return TableMetadata({**self.plain, "current-snapshot-id": None})

    def line(self) -> Iterator[Snapshot]:
        """Yield the current snapshot and its ancestors, newest first, up to the first expired one."""
        snapshot = self.current
        while snapshot is not None:
            yield snapshot
            snapshot = self.snapshots.get(snapshot.parent) if snapshot.parent is not None else None

    def columns(self, schema_id: int | None = None) -> tuple[LakeField, ...] | None:
        """Return the columns of a schema, the current one by default; None if the metadata no longer has it."""
        wanted = self.schema_id if schema_id is None else schema_id
        for schema in self.plain["schemas"]:
            if schema["schema-id"] == wanted:
                fields = schema["fields"]
                return tuple(LakeField(int(one["id"]), str(one["name"]), spark_type(one["type"])) for one in fields)
        return None

    def docs(self) -> dict[str, str]:
        """Return the comments of the current columns by name, without columns that have none."""
        return {str(one["name"]): str(one["doc"]) for one in self.schema["fields"] if one.get("doc")}

    def statistics(self) -> Iterator[tuple[int, frozenset[int], int]]:
        """Yield the snapshot, the field ids and the size in bytes of each statistics file."""
        for file in self.plain.get("statistics", []):
            fields = frozenset(int(field) for blob in file["blob-metadata"] for field in blob["fields"])
            yield int(file["snapshot-id"]), fields, int(file["file-size-in-bytes"])


def _snapshot(plain: Mapping[str, Any]) -> Snapshot:
    return Snapshot(
        int(plain["snapshot-id"]),
        plain.get("parent-snapshot-id"),
        int(plain.get("sequence-number", 0)),
        datetime.fromtimestamp(plain["timestamp-ms"] / 1000, UTC),
        plain.get("summary", {}),
    )


def spark_type(kind: Any) -> str:
    """Return Spark's name of a type.

    Args:
        kind: the type as Iceberg's JSON has it: a name, or a mapping for a type with parts.
    """
    if isinstance(kind, str):
        return spark_name(kind)
    if kind["type"] == "list":
        return f"array<{spark_type(kind['element'])}>"
    if kind["type"] == "map":
        return f"map<{spark_type(kind['key'])},{spark_type(kind['value'])}>"
    fields = (f"{one['name']}:{spark_type(one['type'])}" for one in kind["fields"])
    return f"struct<{','.join(fields)}>"
