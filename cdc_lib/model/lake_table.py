"""A lake table: its name, its columns, and its marker, which says how far it has been merged.

A lake table has the source columns, then the order key of the change that wrote the row. Further columns depend on the table's mode.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from datetime import datetime
from typing import Any

from pydantic import TypeAdapter, ValidationError

from cdc_lib.errors import MergeConflict, MergeError
from cdc_lib.model.column_rename import ColumnRename
from cdc_lib.model.ddl_effect import AddedDefault
from cdc_lib.model.layout import DEFAULT_LAYOUT, Layout
from cdc_lib.model.manifest import ABSENT, BINLOG, EPOCH, GTID, OFFSET, OP, ROW, TS
from cdc_lib.model.position import Point
from cdc_lib.model.schema import Column
from cdc_lib.model.table_mode import IS_CURRENT, IS_DELETED, MODE_TYPES, TO_GTID, TO_ORDER, VALID_FROM, VALID_TO, Mode
from cdc_lib.model.table_name import TableName, quoted_part

ORDER = (EPOCH, BINLOG, OFFSET, ROW)
"""The order key's columns in a lake table, most significant first."""

CHANGE_TYPES = {
    OP: "string",
    EPOCH: "int",
    BINLOG: "int",
    OFFSET: "bigint",
    ROW: "bigint",
    TS: "timestamp",
    GTID: "string",
}
"""Lake types of the change columns of a batch."""

MODE_COLUMNS: dict[Mode, tuple[str, ...]] = {
    "mirror": (*ORDER, TS),
    "soft_delete": (IS_DELETED, *ORDER, TS, GTID),
    "append": (OP, *ORDER, TS, GTID),
    "scd2": (OP, *ORDER, GTID, VALID_FROM, VALID_TO, IS_CURRENT, *TO_ORDER, TO_GTID),
}
"""The metadata columns of a lake table, which follow the source columns."""

ICEBERG_NAMES = frozenset(
    {"_file", "_pos", "_deleted", "_spec_id", "_partition", "_row_id", "_last_updated_sequence_number", "_change_type",
     "_change_ordinal", "_commit_snapshot_id"}
)  # fmt: skip
"""Metadata columns of Iceberg; a table column of that name breaks its MERGE."""

RESERVED = frozenset(CHANGE_TYPES) | {ABSENT} | ICEBERG_NAMES
"""Names, in lower case, that a column of a source table cannot have."""


def lake_type(name: str) -> str:
    """Return the type of a metadata column."""
    return MODE_TYPES.get(name) or CHANGE_TYPES[name]


def reserved(mode: Mode) -> frozenset[str]:
    """Return the names that no column of a source table can have in a lake table of a mode."""
    return RESERVED | frozenset(MODE_COLUMNS[mode])


MARKER_PROPERTY = "cdc.merged-to"
"""Snapshot summary property that holds the :class:`Marker` of the source table of the same name.

Tables that routes send into a lake table have one each: ``cdc.merged-to.<source>/<database.table>``.
"""

KEY_PROPERTY = "cdc.primary-key"
"""Table property: the primary key's columns as a JSON list."""

MODE_PROPERTY = "cdc.mode"
"""Table property: the :data:`Mode`."""

SOURCE_PROPERTY = "cdc.source"
"""Table property: name of the source."""

COMPUTED_PROPERTY = "cdc.computed"
"""Table property: the computed columns, as a JSON mapping of names to expressions in Spark SQL."""

DROPPED_PROPERTY = "cdc.dropped-fields"
"""Table property: ids of the columns that merges dropped as the source did, as a JSON list."""

TRIED_PROPERTY = "cdc.tried-at"
"""Table property: when a merge last tried whether the table takes a commit, to compare it with one that is refused."""

TABLE_PROPERTY = "cdc.table"
"""Table property: ``database.table`` at the source."""


TYPES_PROPERTY = "cdc.source-types"
"""Table property, with a dot and the name of the source after it: :attr:`LakeTable.source_types`."""


KEPT_SNAPSHOTS = 20
"""How many snapshots of a source table its marker keeps."""


def marker_property(source: str, table: str, *, routed: bool) -> str:
    """Return the snapshot summary property that holds the marker of a source table."""
    return f"{MARKER_PROPERTY}.{source}/{table}" if routed else MARKER_PROPERTY


@dataclass(frozen=True, slots=True)
class SnapshotMark:
    """How far a snapshot has been merged into its table.

    Args:
        snapshot_id: the snapshot.
        chunks: how many of its chunks are in the table: numbers 0 to ``chunks - 1``.
        complete: whether the last one is among them.
        low: low watermark of the first chunk.
        high: greatest low watermark of the merged chunks.
        read_to: greatest high watermark of the merged chunks: the rows hold no change after it.
        partial: whether it read only a part of the table.
    """

    snapshot_id: str
    chunks: int
    complete: bool
    low: Point
    high: Point
    read_to: Point
    partial: bool = False


@dataclass(frozen=True, slots=True)
class PlacedDefault:
    """The value of an added column in rows from before a point.

    Args:
        before: where the statement that added the column starts.
        added: the column and its value.
        gtid: of the statement; empty without one.
        time: when it was committed (UTC); None if unknown.
        since: rows from before this point have the column already; None if none does.
    """

    before: Point
    added: AddedDefault
    gtid: str = ""
    time: datetime | None = None
    since: Point | None = None


@dataclass(frozen=True, slots=True)
class Shadow:
    """What an online schema change tool did to the shadow table that will replace a table.

    Args:
        added_defaults: the values that all rows get in columns that it adds.
        unclear: why the values are not known; empty if they are.
        retyped: the columns that it declares again whose former types the windows do not show, with their new types.
    """

    added_defaults: tuple[AddedDefault, ...] = ()
    unclear: str = ""
    retyped: tuple[Column, ...] = ()


@dataclass(frozen=True, slots=True)
class Reselected:
    """The points between which rows of a table were re-selected from the source.

    Args:
        low: greatest low watermark: no re-selected row has an order key after it.
        high: greatest high watermark: once everything before it is merged, no re-selected row is ahead.
    """

    low: Point
    high: Point

    def is_ahead(self, merged_to: Point | None) -> bool:
        """Whether rows may show changes that are not merged yet."""
        return merged_to is None or self.high > merged_to


@dataclass(frozen=True, slots=True)
class Marker:
    """Which batches are merged into a table; stored in the snapshot summary of the commit that merged them.

    Args:
        merged_to: every change before it is merged; None before the first window.
        snapshots: the snapshots of the table, by id.
        dropped: where the table was dropped at the source and not created since.
        shadow: what an online schema change tool has done to its shadow table; None without one.
        pending_defaults: defaults of columns that the lake table gets with the first row that has them.
        reselected: set while re-selected rows are ahead of ``merged_to``; else None.
        source_uuid: id of the source whose merge wrote it.
        kept_before: a statement at this point removed all rows of the source, and the lake kept its rows from before it.
        source_columns: the source's columns at ``merged_to``; empty where nothing depends on them.
        merge_id: of the merge that wrote it; empty for those of older releases.
        emptied: where a statement removed all rows, if no row of the source came since.
        defined_at: the end of the newest batch with rows, whose definition of the table the lake follows; None of older releases.
    """

    merged_to: Point | None = None
    snapshots: tuple[SnapshotMark, ...] = ()
    dropped: Point | None = None
    shadow: Shadow | None = None
    pending_defaults: tuple[PlacedDefault, ...] = ()
    reselected: Reselected | None = None
    source_uuid: str = ""
    kept_before: Point | None = None
    source_columns: tuple[str, ...] = ()
    merge_id: str = ""
    emptied: Point | None = None
    defined_at: Point | None = None

    def snapshot(self, snapshot_id: str) -> SnapshotMark | None:
        """Return the mark of a snapshot, or None before its first chunk."""
        return next((mark for mark in self.snapshots if mark.snapshot_id == snapshot_id), None)

    def with_snapshot(self, mark: SnapshotMark) -> Marker:
        """Add or replace the mark of a snapshot. A snapshot that began before the kept ones is not added."""
        marks = (*(old for old in self.snapshots if old.snapshot_id != mark.snapshot_id), mark)
        newest = sorted(marks, key=lambda one: (one.low, one.snapshot_id))[-KEPT_SNAPSHOTS:]
        return replace(self, snapshots=tuple(sorted(newest, key=lambda s: s.snapshot_id)))

    def with_reselected(self, rows: Reselected) -> Marker:
        """Return the marker with more re-selected rows."""
        old = self.reselected or rows
        both = Reselected(max(old.low, rows.low), max(old.high, rows.high))
        return replace(self, reselected=both if both.is_ahead(self.merged_to) else None)

    def with_merged_to(self, point: Point) -> Marker:
        """Advance ``merged_to``; rows that were re-selected before the point are no longer ahead."""
        ahead = self.reselected is not None and self.reselected.is_ahead(point)
        return replace(self, merged_to=point, reselected=self.reselected if ahead else None)

    @property
    def is_blank(self) -> bool:
        """Whether nothing was ever merged."""
        return self.merged_to is None and not self.snapshots

    def is_foreign_to(self, source_uuid: str) -> bool:
        """Whether another incarnation of the source wrote it, so that it is not valid."""
        return not self.is_blank and self.source_uuid != source_uuid

    @property
    def reads(self) -> tuple[Point, Point] | None:
        """The points between which the snapshots' rows were read; None without a full snapshot.

        A snapshot row has every change before the first point and none after the second. Which of the changes between them
        it has is not known.
        """
        whole = [mark for mark in self.snapshots if not mark.partial]
        return (max(mark.low for mark in whole), max(mark.read_to for mark in whole)) if whole else None

    @property
    def ahead_until(self) -> Point | None:
        """Re-selected rows may already have changes up to this point; None if no row is ahead."""
        points = [mark.read_to for mark in self.snapshots if mark.partial]
        points += [self.reselected.high] if self.reselected is not None else []
        return max(points, default=None)

    @property
    def top(self) -> Point | None:
        """No row of the table has an order key after this point."""
        points = [mark.high for mark in self.snapshots]
        if self.merged_to is not None:
            points.append(self.merged_to)
        if self.reselected is not None:
            points.append(self.reselected.low)
        return max(points, default=None)

    def to_json(self) -> str:
        """Return the text that the snapshot summary holds."""
        plain = _MARKER.dump_python(self, mode="json", exclude_defaults=True)
        return json.dumps({"format_version": 1, **plain}, separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str, table: str) -> Marker:
        """Parse the text of :meth:`to_json`.

        Raises:
            MergeError: the text is not valid.
        """
        try:
            plain: dict[str, Any] = json.loads(text)
            version = plain.pop("format_version")
            if version != 1:
                raise _unreadable(text, table, f"its format_version is {version}")
            if unknown := plain.keys() - {one.name for one in fields(cls)}:
                # A field of a later release may change the meaning of the others.
                raise _unreadable(text, table, f"it has the unknown field {min(unknown)}")
            marker: Marker = _MARKER.validate_json(json.dumps(plain), strict=True)
        except ValidationError as error:
            fault = error.errors(include_url=False, include_input=False)[0]
            raise _unreadable(text, table, f"{'.'.join(map(str, fault['loc']))}: {fault['msg']}") from error
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise _unreadable(text, table, repr(error)) from error
        return marker


_MARKER = TypeAdapter(Marker)


def _unreadable(text: str, table: str, fault: str) -> MergeError:
    return MergeError(
        f"the marker {MARKER_PROPERTY} in the table's snapshot cannot be read: {fault}",
        hint="Another version of this library wrote it; merge with that version or a newer one.",
        table=table,
        marker=text[:200],
    )


@dataclass(frozen=True, slots=True)
class LakeName:
    """Full name of a lake table.

    Args:
        catalog: name of the catalog in Spark.
        namespace: levels of the namespace.
        name: name of the table.
    """

    catalog: str
    namespace: tuple[str, ...]
    name: str

    def __str__(self) -> str:
        """For people and documents: ``lake.shop.orders``; a part with a dot is in backticks."""
        return ".".join(map(quoted_part, (self.catalog, *self.namespace, self.name)))


@dataclass(frozen=True, slots=True)
class LakeColumn:
    """A column of a lake table; ``type`` is spelled as Spark SQL does."""

    name: str
    type: str


@dataclass(frozen=True, slots=True)
class TableFingerprint:
    """State of a lake table after a merge of one source table; the next merge compares it to detect foreign changes.

    Args:
        uuid: Iceberg's uuid of the lake table.
        schema_id: Iceberg's id of its schema.
        sequence: Iceberg's sequence number of the newest commit that holds the marker; it grows with each commit and is never
            given twice, also after a rollback.
        merged_to: ``merged_to`` of the marker.
    """

    uuid: str
    schema_id: int
    sequence: int
    merged_to: Point | None


@dataclass(frozen=True, slots=True)
class LakeTable:
    """The current state of a lake table.

    Args:
        columns: all columns, source columns first.
        primary_key: names of the key's columns; empty if the source table has none.
        mode: how changes are written.
        marker: marker of the first source table.
        snapshot_id: the current snapshot; None while the table has none.
        records: rows in its data files, including deleted ones; None if not counted.
        markers: marker of each requested source table.
        carried: markers of other source tables, as text by their property: every commit repeats them.
        renames: the column renames that were applied, in order.
        dropped_fields: ids of the columns that merges dropped.
        uuid: uuid of the table; empty if the catalog does not give it.
        schema_id: id of its schema.
        sequences: by source table, Iceberg's sequence number of the newest commit that holds its marker.
        last_sequence: the greatest sequence number of all commits.
        layout: of its files.
        copies_on_write: whether Spark may write whole files again without deleted rows, which another writer may have set.
        comments: the source's comments that were carried over, by lower-case column; that of the table under an empty name.
        computed: its columns that are computed from the others of a row, with their expressions.
        unpublished: why the newest markers do not count; empty if they do.
        updated: when its metadata changed last (UTC), by the clock of the machine that did it; None if unknown.
        source_types: types of the newest rows at this source, as text; see :mod:`cdc_lib.merge.source_types`.
        rows: rows in it, without deleted ones; None if not counted.
    """

    columns: tuple[LakeColumn, ...]
    primary_key: tuple[str, ...]
    mode: Mode
    marker: Marker
    snapshot_id: int | None
    records: int | None
    markers: Mapping[TableName, Marker] = field(default_factory=dict)
    carried: Mapping[str, str] = field(default_factory=dict)
    renames: tuple[ColumnRename, ...] = ()
    dropped_fields: frozenset[int] = frozenset()
    uuid: str = ""
    schema_id: int = 0
    sequences: Mapping[str, int] = field(default_factory=dict)
    last_sequence: int = 0
    layout: Layout = DEFAULT_LAYOUT
    copies_on_write: bool = False
    comments: Mapping[str, str] = field(default_factory=dict)
    computed: Mapping[str, str] = field(default_factory=dict)
    unpublished: str = ""
    updated: datetime | None = None
    source_types: str = ""
    rows: int | None = None

    def fingerprint(self, table: TableName) -> TableFingerprint:
        """Return the fingerprint that the next merge compares."""
        marker = self.markers.get(table, Marker())
        return TableFingerprint(self.uuid, self.schema_id, self.sequences.get(table, 0), marker.merged_to)

    @property
    def types(self) -> dict[str, str]:
        """The types of the columns, by their names in lower case."""
        return {column.name.lower(): column.type for column in self.columns}

    @property
    def empty(self) -> bool:
        """Whether the table certainly has no rows."""
        return self.records == 0


def computed_from(text: str | None) -> dict[str, str]:
    """Return the computed columns in the table's property, with their expressions; none without it."""
    return {str(name): str(one) for name, one in json.loads(text).items()} if text else {}


def marker_of(state: LakeTable | None, table: TableName) -> Marker:
    """Return a source table's marker; an empty one if no merge wrote rows of it."""
    return state.markers.get(table, Marker()) if state is not None else Marker()


def refuse_moved(table: str, read: int | None, found: int | None) -> None:
    """Refuse to go on with a table that has another snapshot than the merge read.

    Args:
        table: the source table.
        read: the snapshot that was read; None for a table without snapshots.
        found: the current one.

    Raises:
        MergeConflict: it has.
    """
    if found != read:
        raise MergeConflict(
            "another commit came first",
            hint="Nothing was published. Run it again.",
            table=table,
            expected_snapshot=read,
            found_snapshot=found,
        )
