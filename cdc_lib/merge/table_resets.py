"""What statements did to the rows of a table, by the manifests of a run of windows: pure.

CREATE TABLE IF NOT EXISTS is in the binlog also where it did nothing. Whether it made the table depends on what came
before it, perhaps long ago: so it is decided here, where windows come in order, and the table's marker remembers a DROP. So
it does with what an online schema change tool does to its shadow, which counts from the swap on.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace

from cdc_lib.model.ddl_effect import TableStatement
from cdc_lib.model.lake_table import Marker, PlacedDefault, Shadow
from cdc_lib.model.manifest import Manifest
from cdc_lib.model.position import Point
from cdc_lib.model.table_mode import TableReset
from cdc_lib.model.table_name import EVERY_TABLE, TableName


@dataclass(frozen=True, slots=True)
class StatementEffects:
    """What became of a table.

    Args:
        before: rows of before this point are gone; None when none are.
        dropped: where the table was dropped, if it was not created since.
        shadow: what a tool did to the shadow that it has not swapped in yet; None for nothing.
        added_defaults: in order.
        unclear: why it is not known what rows got; empty when it is.
        resets: where all rows of before were taken, also by a DROP, in order.
        entries: what of that is an entry of a list of changes: a CREATE of a table that is not there takes nothing.
    """

    before: Point | None = None
    dropped: Point | None = None
    shadow: Shadow | None = None
    added_defaults: tuple[PlacedDefault, ...] = ()
    unclear: str = ""
    resets: tuple[TableReset, ...] = ()
    entries: tuple[TableReset, ...] = ()


def statement_effects(
    table: str, manifests: Iterable[Manifest], since: Point | None, before: Marker
) -> StatementEffects:
    """Follow the statements on a table.

    Args:
        table: ``database.table``.
        manifests: of windows, in the stream's order.
        since: statements before this point are done; None for none.
        before: what the table's marker remembers of the statements before them.
    """
    now = StatementEffects(dropped=before.dropped, shadow=before.shadow, added_defaults=before.pending_defaults)
    for manifest in manifests:
        for statement in manifest.statements:
            at = Point.at(manifest.epoch, statement.position)
            if statement.table == table and (since is None or since <= at):
                now = _counted(_after(now, statement, at), now, statement, at, manifest)
    return now


def _counted(
    now: StatementEffects, before: StatementEffects, statement: TableStatement, at: Point, manifest: Manifest
) -> StatementEffects:
    """Add the place of a statement that took the rows."""
    if statement.kind != "drop" and now.before == before.before:
        return now
    gone = TableReset(*at, statement.time or manifest.last_time, statement.gtid)
    takes = statement.replaces or statement.kind in ("truncate", "drop")
    return replace(now, resets=(*now.resets, gone), entries=(*now.entries, gone) if takes else now.entries)


def _after(now: StatementEffects, statement: TableStatement, at: Point) -> StatementEffects:
    """Return what is so after one more statement."""
    kind = statement.kind
    if kind == "drop":
        now = replace(now, dropped=at)
    elif kind == "truncate":
        now = replace(now, before=at, added_defaults=(), unclear="")
    elif kind == "create" or (kind == "create_if_missing" and now.dropped is not None):
        now = replace(now, before=at, dropped=None, added_defaults=(), unclear="")
    elif kind == "fill":
        now = replace(
            now, added_defaults=(*now.added_defaults, *(PlacedDefault(at, fill) for fill in statement.added_defaults))
        )
    elif kind == "shadow":
        now = replace(now, shadow=None)
    elif kind == "shadow_fill":
        before = now.shadow or Shadow()
        shadow = Shadow((*before.added_defaults, *statement.added_defaults), before.unclear or statement.unclear)
        now = replace(now, shadow=shadow)
    elif kind == "swap" and now.shadow is not None:
        placed = tuple(PlacedDefault(at, fill) for fill in now.shadow.added_defaults)
        unclear = now.unclear or now.shadow.unclear
        now = replace(now, shadow=None, added_defaults=(*now.added_defaults, *placed), unclear=unclear)
    return now


def swaps_in_what_came_before(table: str, manifests: Iterable[Manifest], since: Point | None) -> bool:
    """Whether an online schema change tool put a shadow in a table's place that it had begun to make before a point.

    Args:
        table: ``database.table``.
        manifests: of windows, in the stream's order.
        since: the point; None for none.
    """
    placed = ((one, Point.at(manifest.epoch, one.position)) for manifest in manifests for one in manifest.statements)
    kinds = [one.kind for one, at in placed if one.table == table and (since is None or since <= at)]
    return "swap" in kinds and "shadow" not in kinds[: kinds.index("swap")]


def is_of_database(statement: TableStatement) -> bool:
    """Whether a statement is about all tables of a database."""
    return statement.table.table == EVERY_TABLE


def spread(manifest: Manifest, known: Collection[TableName]) -> Manifest:
    """Return a manifest with a statement for each table where it has one for a whole database.

    Args:
        manifest: of a window.
        known: every table that the lake may have.
    """
    found: list[TableStatement] = []
    for one in manifest.statements:
        tables = [table for table in sorted(known) if table.database == one.table.database]
        found += [replace(one, table=table) for table in tables] if is_of_database(one) else [one]
    return replace(manifest, statements=tuple(found))
