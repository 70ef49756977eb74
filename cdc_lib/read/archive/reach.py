"""How far back the stored batches show every change of one table; pure.

Windows are followed back from the lake's position to the first gap. The history of the table begins later where a batch of it has no
rows, or rows that cannot be compared with the lake's: that point is the *floor*. Every change from it on is known.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import chain
from typing import NamedTuple

from cdc_lib.merge.table_resets import statement_effects
from cdc_lib.model.lake_table import Marker
from cdc_lib.model.manifest import DataFile, Manifest
from cdc_lib.model.position import Point, Position
from cdc_lib.model.quarantine import QuarantineRecord
from cdc_lib.model.schema import TableSchema
from cdc_lib.model.schema_policy import SchemaPolicy
from cdc_lib.model.stored_window import StoredWindow
from cdc_lib.model.table_mode import TableReset
from cdc_lib.model.table_name import TableName
from cdc_lib.model.xa import Decision
from cdc_lib.model.xa_settlement import XaCommit, settle


@dataclass(frozen=True, slots=True)
class WindowSlice:
    """The part of a stored window in which its rows count; parts do not overlap.

    Args:
        window: the window.
        low: first point of the part.
        high: first point after it.
    """

    window: StoredWindow
    low: Point
    high: Point


class Floor(NamedTuple):
    """A point before which changes of a table are not known.

    ``time`` is the commit time there; None if the next events tell it.
    """

    point: Point
    why: str
    time: datetime | None = None


@dataclass(frozen=True, slots=True)
class Part:
    """A file of a table, and which of its rows count.

    Args:
        manifest: key of the manifest that names the file.
        file: the file.
        schema: of its rows.
        low: rows before this point do not count.
        high: rows from this point on do not count.
        commits: for a file of prepared rows: the XA transactions that are committed between the two points; else empty.
    """

    manifest: str
    file: DataFile
    schema: TableSchema
    low: Point
    high: Point
    commits: tuple[XaCommit, ...] = ()


@dataclass(frozen=True, slots=True)
class Reach:
    """What the stored batches know of a table.

    Args:
        floor: every change from here on is known.
        parts: files with rows, newest first.
        resets: statements after which the table was empty, in order.
        removals: those of them that removed rows; the others created the table.
    """

    floor: Floor
    parts: tuple[Part, ...]
    resets: tuple[TableReset, ...]
    removals: frozenset[TableReset]


def tail(windows: Iterable[StoredWindow], end: Point) -> tuple[WindowSlice, ...]:
    """Return the windows that lead to a point without a gap, in the stream's order; all are of the point's epoch.

    After the restore of a cursor windows may overlap, because the stream was cut differently: the one that reaches further back
    is chosen, and only its rows count.

    Args:
        windows: stored windows, in any order.
        end: the point.
    """
    latest = sorted((one for one in windows if one.start.epoch == end.epoch), key=lambda one: one.stop, reverse=True)
    found: list[WindowSlice] = []
    at, widest, taken = end, None, 0
    while True:
        while taken < len(latest) and latest[taken].stop >= at:
            if widest is None or latest[taken].start <= widest.start:
                widest = latest[taken]
            taken += 1
        if widest is None or widest.start >= at:
            return tuple(reversed(found))
        found.append(WindowSlice(widest, widest.start, at))
        at = widest.start


def reach_of(
    table: TableName,
    slices: Sequence[tuple[WindowSlice, Manifest | None]],
    begin: Floor,
    captured: Point | None,
    records: Iterable[QuarantineRecord],
    key: Collection[str],
    policy: SchemaPolicy,
    until: Point,
) -> Reach:
    """Return what a run of windows knows of a table.

    Args:
        table: ``database.table``.
        slices: the windows, in the stream's order, with what their manifests have of the table; None if it is nothing.
        begin: where the windows begin, and why not earlier.
        captured: where the first snapshot of the table was requested; None if it is not known.
        records: quarantine records of the drain cursor.
        key: names of the lake table's key.
        policy: what the lake does about statements that remove rows.
        until: changes from this point on are not in the lake table, so that later windows do not matter.
    """
    records = [one for one in records if one.table == table]
    slices = [(part, manifest) for part, manifest in slices if part.low < until]
    known = [(part, _between(manifest, part)) for part, manifest in slices if manifest is not None]
    floors = [begin, *_captured(known, captured), *_left_out([part for part, _ in slices], records)]
    floors += chain.from_iterable(_not_comparable(table, part, manifest, key) for part, manifest in known)
    floor = max(floors, key=lambda one: one.point)
    settled = settle((), ((part.window.key, one) for part, one in known if part.high > floor.point))
    floor = max([floor, *(_without_rows(*one) for one in settled.unknown)], key=lambda one: one.point)
    parts: list[Part] = []
    manifests = {part.window.key: manifest for part, manifest in known}
    for part, manifest in reversed(known):
        low, high = max(part.low, floor.point), min(part.high, until)
        if low >= high:
            continue
        schemas = ((file, manifest.schemas[file.schema_id]) for file in manifest.files)
        parts += (Part(part.window.key, file, schema, low, high) for file, schema in schemas)
        parts += _prepared(manifests, settled.commits.get(part.window.key, ()), low, high)
    effects = statement_effects(table, (one for _, one in known), floor.point, Marker(), policy)
    resets = tuple(one for one in effects.resets if Point(one.epoch, one.file, one.offset) < until)
    return Reach(floor, tuple(parts), resets, frozenset(effects.entries))


def _between(manifest: Manifest, part: WindowSlice) -> Manifest:
    """Return a manifest without the events outside of a part of its window."""

    def within(position: Position) -> bool:
        return part.low <= Point.at(manifest.epoch, position) < part.high

    return replace(
        manifest,
        statements=tuple(one for one in manifest.statements if within(one.position)),
        prepared=tuple(one for one in manifest.prepared if within(one.position)),
        xa_decisions=tuple(one for one in manifest.xa_decisions if within(one.position)),
    )


def _captured(known: Sequence[tuple[WindowSlice, Manifest]], requested: Point | None) -> Iterable[Floor]:
    """Yield where the first snapshot was requested, or an earlier window that has the table already."""
    if requested is not None:
        first = next((part.low for part, one in known if has_table(one)), requested)
        yield Floor(min(first, requested), "the source began to follow the table there")


def has_table(manifest: Manifest) -> bool:
    """Whether what a manifest has of one table is more than XA transactions of others."""
    return bool(manifest.files or manifest.prepared_files or manifest.statements or manifest.quarantined)


def _left_out(slices: Sequence[WindowSlice], records: Sequence[QuarantineRecord]) -> Iterable[Floor]:
    """Yield where windows end that leave the table's rows out of the lake."""
    for record in records:
        covered = (part.high for part in slices if record.covers_point(part.window.start))
        if (last := max(covered, default=None)) is not None:
            yield Floor(last, "the table was quarantined, or a new snapshot replaced its changes")


def _not_comparable(table: TableName, part: WindowSlice, manifest: Manifest, key: Collection[str]) -> Iterable[Floor]:
    """Yield the points before which rows have other columns than later ones, or a window lacks rows."""
    names = [name.lower() for name in key]
    for file in (*manifest.files, *manifest.prepared_files):
        if file.partial_rows:
            yield Floor(part.high, "rows lack columns, because binlog_row_image is not FULL")
        if [name.lower() for name in manifest.schemas[file.schema_id].primary_key] != names:
            yield Floor(part.high, "the key of the table was another one")
    if any(one.table == table for one in manifest.quarantined):
        yield Floor(part.high, "the table was quarantined, or a new snapshot replaced its changes")
    for statement in manifest.statements:
        if statement.kind == "rename_columns":
            at = Point.at(manifest.epoch, statement.position).just_after()
            yield Floor(at, "columns of the table were renamed", statement.time)


def _without_rows(epoch: int, decision: Decision) -> Floor:
    at = Point.at(epoch, decision.position).just_after()
    return Floor(at, "an XA transaction is committed whose rows are in an earlier batch", decision.time)


def _prepared(manifests: dict[str, Manifest], commits: Sequence[XaCommit], low: Point, high: Point) -> Iterable[Part]:
    """Yield the files with the rows of XA transactions that are committed between two points."""
    inside = [one for one in commits if low <= one.point < high]
    for key in dict.fromkeys(one.manifest for one in inside):
        manifest, own = manifests[key], tuple(one for one in inside if one.manifest == key)
        for file in manifest.prepared_files:
            yield Part(key, file, manifest.schemas[file.schema_id], low, high, own)
