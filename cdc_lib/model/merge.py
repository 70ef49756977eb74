"""What a merge is asked to do, and what it publishes when all of it is in the tables."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from cdc_lib.model.aside import Aside, Standing
from cdc_lib.model.lake import Point
from cdc_lib.model.mode import Mode
from cdc_lib.model.position import Position
from cdc_lib.model.xa import OpenTransaction


@dataclass(frozen=True, slots=True)
class MergePlan:
    """Batches to merge, fixed in the lake cursor before the first of them is touched.

    Args:
        source: name of the source.
        epoch: epoch of the lake cursor.
        merge_id: derived from the bounds alone: the same work has the same id, whoever asks for it.
        start: where the lake cursor stands.
        stop: where it will stand; equal to ``start`` when only snapshot chunks are merged.
        batches: keys of the manifests in merge order: snapshot chunks first, then windows in the stream's order.
        prepared: XA transactions that are open at ``start``; the windows may commit them.
        aside: stretches of the binlog from which nothing of a table is merged.
        standing: tables that stand as of an earlier position than ``stop`` afterwards.
    """

    source: str
    epoch: int
    merge_id: str
    start: Position
    stop: Position
    batches: tuple[str, ...]
    prepared: tuple[OpenTransaction, ...] = ()
    aside: tuple[Aside, ...] = ()
    standing: tuple[Standing, ...] = ()


@dataclass(frozen=True, slots=True)
class TableCut:
    """One lake table in a cut, as one source table sees it.

    Args:
        table: ``database.table`` at the source; several may share a lake table, and one may be in several.
        lake_table: full name in the catalog, for example ``lake.shop.orders``.
        lake_snapshot: id of the table's snapshot that holds everything up to the cut.
        changes: changes applied by this merge; 0 when the table was not touched. Where several source tables were merged
            into one lake table, rows of this one's batches.
        aside: the table is set aside and stands as of this position, not the cut's; None when it stands as the cut says.
        ahead: rows that were re-selected from the source show changes up to this point, which is behind the cut's position;
            None when all rows stand as the cut says. A cut at or behind the point has them right.
        dropped: where the table was dropped at the source, whose lake table stands at its last state since; None when it was not,
            or was made again.
        mode: how the lake table keeps rows; None in cuts of older releases.
    """

    table: str
    lake_table: str
    lake_snapshot: int
    changes: int
    aside: Position | None = None
    ahead: Point | None = None
    dropped: Point | None = None
    mode: Mode | None = None


@dataclass(frozen=True, slots=True)
class Cut:
    """All tables of a source as of one position; published last, so nothing half-merged is ever in one.

    Args:
        source: name of the source.
        merge_id: the plan that it completes.
        epoch: epoch of the position.
        position: every change before it is in the tables, none at or after it but what ``TableCut.ahead`` tells.
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
