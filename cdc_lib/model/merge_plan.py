"""What a merge is asked to do, and what it publishes when all of it is in the tables."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from cdc_lib.model.lake_table import TableFingerprint
from cdc_lib.model.position import Point, Position
from cdc_lib.model.quarantine import LaggingTable, QuarantineRecord
from cdc_lib.model.table_mode import Mode
from cdc_lib.model.table_name import TableName
from cdc_lib.model.xa import OpenTransaction


@dataclass(frozen=True, slots=True)
class MergePlan:
    """Batches to merge, fixed in the lake cursor before the first of them is touched.

    Args:
        source: name of the source.
        epoch: epoch of the lake cursor.
        merge_id: derived from the bounds alone: the same work has the same id, whoever asks for it.
        start: where the lake cursor is.
        stop: where it will stand; equal to ``start`` when only snapshot chunks are merged.
        batches: keys of the manifests in merge order: snapshot chunks first, then windows in the stream's order.
        prepared: XA transactions that are open at ``start``; the windows may commit them.
        quarantine: stretches of the binlog from which nothing of a table is merged.
        lagging: tables that are as of an earlier position than ``stop`` afterwards.
        source_uuid: of the source; see :attr:`cdc_lib.model.cursor.Cursor.source_uuid`.
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


@dataclass(frozen=True, slots=True)
class TableCut:
    """One lake table in a cut, as one source table sees it.

    Args:
        table: ``database.table`` at the source; several may share a lake table, and one may be in several.
        lake_table: full name in the catalog, for example ``lake.shop.orders``.
        lake_snapshot: id of the table's snapshot that holds everything up to the cut.
        changes: changes applied by this merge; 0 when the table was not touched. Where several source tables were merged
            into one lake table, rows of this one's batches.
        as_of: the table is quarantined and is as of this position, not the cut's; None when it stands as the cut says.
        ahead_until: rows that were re-selected from the source show changes up to this point, which is after the cut's position;
            None when all rows stand as the cut says. A cut at or after the point has them right.
        dropped: where the table was dropped at the source, whose lake table is at its last state since; None when it was not,
            or was made again.
        mode: how the lake table keeps rows; None where nobody looked.
        fingerprint: by what the next merge knows the lake table again; None where nobody looked.
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


@dataclass(frozen=True, slots=True)
class Cut:
    """All tables of a source as of one position; published last, so nothing half-merged is ever in one.

    Args:
        source: name of the source.
        merge_id: the plan that it completes.
        epoch: epoch of the position.
        position: every change before it is in the tables, none at or after it but what ``TableCut.ahead_until`` tells.
        event_time: commit time of the last change before the position; None when nothing was ever merged.
        at: when it was published (UTC).
        tables: every lake table of the source, touched or not.
    """

    source: str
    merge_id: str
    epoch: int
    position: Position
    event_time: datetime | None
    at: datetime
    tables: tuple[TableCut, ...]
