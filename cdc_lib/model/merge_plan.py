"""The plan of a merge, and the cut that it publishes at the end."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from cdc_lib.model.binlog_checkpoint import SeenEnd
from cdc_lib.model.comments import TableComments
from cdc_lib.model.gtid import NO_GTIDS, WindowGtids
from cdc_lib.model.held_table import HeldTable
from cdc_lib.model.lake_table import TableFingerprint
from cdc_lib.model.position import Point, Position
from cdc_lib.model.quarantine import LaggingTable, QuarantineRecord
from cdc_lib.model.row_counts import NO_ROWS, RowCounts
from cdc_lib.model.server_identity import ServerIdentity
from cdc_lib.model.table_mode import Mode
from cdc_lib.model.table_name import TableName
from cdc_lib.model.xa import OpenTransaction


@dataclass(frozen=True, slots=True)
class MergePlan:
    """Batches to merge, fixed in the lake cursor before the first of them is touched.

    Args:
        source: name of the source.
        epoch: epoch of the lake cursor.
        merge_id: derived from the bounds alone: the same work always has the same id.
        start: position of the lake cursor.
        stop: its position after the merge; equal to ``start`` when only snapshot chunks are merged.
        batches: keys of the manifests in merge order: snapshot chunks first, then windows in the stream's order.
        prepared: XA transactions that are open at ``start``; the windows may commit them.
        quarantine: binlog ranges in which a table's changes are not merged.
        lagging: tables that are as of a position before ``stop`` after the merge.
        source_uuid: id of the source; see :attr:`cdc_lib.model.cursor.Cursor.source_uuid`.
        gtids: GTIDs of all transactions before ``start``.
        held: tables whose changes from a place on are not merged, because their snapshots are not complete.
        catching_up: tables of which all changes from a place up to ``start`` are merged too.
        last_merge: id of the merge before; empty if it is not known.
        seen: the end of the binlog that the run saw; None if it is not known.
    """

    source: str
    epoch: int
    merge_id: str
    start: Position
    stop: Position
    batches: tuple[str, ...]
    prepared: tuple[OpenTransaction, ...] = ()
    quarantine: tuple[QuarantineRecord, ...] = ()
    lagging: tuple[LaggingTable, ...] = ()
    source_uuid: str = ""
    gtids: WindowGtids = NO_GTIDS
    held: tuple[HeldTable, ...] = ()
    catching_up: tuple[HeldTable, ...] = ()
    last_merge: str = ""
    seen: SeenEnd | None = None


@dataclass(frozen=True, slots=True)
class TableCut:
    """One source table and its lake table in a cut.

    Args:
        table: ``database.table`` at the source. Several may be routed into one lake table, and one into several.
        lake_table: full name in the catalog, for example ``lake.shop.orders``.
        lake_snapshot: id of the lake table's snapshot that has everything up to the cut.
        changes: changes applied by this merge; 0 when the table was not touched. If several source tables were merged into
            one lake table, rows of this one's batches.
        as_of: position of a quarantined or held table, which is not the cut's; None if the table is as of the cut.
        ahead_until: re-selected rows show changes up to this point, which is after the cut's position; None if all rows are
            as of the cut. They are consistent in a cut at or after the point.
        dropped: where the table was dropped at the source; the lake table keeps its last state. None if it was not dropped,
            or was created again.
        mode: mode of the lake table; None if unknown.
        fingerprint: lets the next merge detect foreign changes; None if unknown.
        rows: rows of the table in the batches of this merge, without those of XA transactions; None if they were not counted.
        total_rows: ``rows`` of all merges of the source so far.
        total_bytes: bytes of the files that held them.
        lake_rows: rows of the lake table in this snapshot; None if unknown.
    """

    table: TableName
    lake_table: str
    lake_snapshot: int
    changes: int
    as_of: Position | None = None
    ahead_until: Point | None = None
    dropped: Point | None = None
    mode: Mode | None = None
    fingerprint: TableFingerprint | None = None
    rows: RowCounts | None = None
    total_rows: RowCounts = NO_ROWS
    total_bytes: int = 0
    lake_rows: int | None = None


@dataclass(frozen=True, slots=True)
class MergeTotals:
    """What all merges of a source did so far; each cut continues those of the cut before.

    Args:
        merges: that published a cut.
        windows: that they merged.
        chunks: of snapshots, likewise.
        seconds: from reading the batches to the cut, without the start of Spark.
    """

    merges: int = 0
    windows: int = 0
    chunks: int = 0
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class CutOrigin:
    """What the cursors know and nothing else in a cut shows: lost cursors are rebuilt with it.

    Args:
        identity: server that the cut's position belongs to.
        source_uuid: id of the source; see :attr:`cdc_lib.model.cursor.Cursor.source_uuid`.
        text_keys: tables whose dates in keys the lake holds as text.
        lagging: tables that are quarantined or wait for a new snapshot, also those without a lake table.
        snapshots: ids of the merged snapshots that were requested at or after the cut's position.
    """

    identity: ServerIdentity
    source_uuid: str
    text_keys: tuple[TableName, ...] = ()
    lagging: tuple[TableName, ...] = ()
    snapshots: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Cut:
    """All tables of a source as of one position. It is published last, so it never shows a half-done merge.

    Args:
        source: name of the source.
        merge_id: id of the merge.
        epoch: epoch of the position.
        position: every change before it is in the tables, and none at or after it except up to ``TableCut.ahead_until``.
        event_time: commit time of the last change before the position; None before the first merge.
        at: when it was published (UTC).
        tables: every lake table of the source, touched or not.
        seconds: how long the merge took, see :attr:`MergeTotals.seconds`; None where nobody measured.
        totals: of all merges up to this one.
        gtid_set: GTIDs of all transactions before the position; empty if they are not known exactly.
        held: tables whose changes from a place on wait for their snapshots, also tables that the lake does not have yet.
        origin: of the cursors; None in cuts of older releases.
        uncommented: comments that could not be carried over, the last of each source table: the next merges try again.
    """

    source: str
    merge_id: str
    epoch: int
    position: Position
    event_time: datetime | None
    at: datetime
    tables: tuple[TableCut, ...]
    seconds: float | None = None
    totals: MergeTotals = MergeTotals()
    gtid_set: str = ""
    held: tuple[HeldTable, ...] = ()
    origin: CutOrigin | None = None
    uncommented: tuple[TableComments, ...] = ()

    @property
    def followed(self) -> frozenset[TableName]:
        """``database.table`` of the source tables in it that the source has not dropped."""
        return frozenset(one.table for one in self.tables if one.dropped is None)
