"""What statements did to the rows of a table, by the manifests of a run of windows: pure.

CREATE TABLE IF NOT EXISTS stands in the binlog also where it did nothing. Whether it made the table depends on what came
before it, perhaps long ago: so it is decided here, where windows come in order, and the table's marker remembers a DROP. So
it does with what an online schema change tool does to its shadow, which counts from the swap on.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace

from cdc_lib.model.batch import Manifest
from cdc_lib.model.lake import Marker, PlacedFill, Point, Shadow
from cdc_lib.model.mode import Gone
from cdc_lib.model.table_statement import TableStatement


@dataclass(frozen=True, slots=True)
class Emptied:
    """What became of a table.

    Args:
        before: rows of before this point are gone; None when none are.
        dropped: where the table was dropped, if it was not created since.
        shadow: what a tool did to the shadow that it has not swapped in yet; None for nothing.
        fills: in order.
        unclear: why it is not known what rows got; empty when it is.
        gone: where all rows of before were taken, also by a DROP, in order.
    """

    before: Point | None = None
    dropped: Point | None = None
    shadow: Shadow | None = None
    fills: tuple[PlacedFill, ...] = ()
    unclear: str = ""
    gone: tuple[Gone, ...] = ()


def emptied(table: str, manifests: Iterable[Manifest], since: Point | None, before: Marker) -> Emptied:
    """Follow the statements on a table.

    Args:
        table: ``database.table``.
        manifests: of windows, in the stream's order.
        since: statements before this point are done; None for none.
        before: what the table's marker remembers of the statements before them.
    """
    now = Emptied(dropped=before.dropped, shadow=before.shadow, fills=before.waiting)
    for manifest in manifests:
        for statement in manifest.statements:
            at = Point.at(manifest.epoch, statement.position)
            if statement.table == table and (since is None or since <= at):
                now = _counted(_behind(now, statement, at), now, statement, at, manifest)
    return now


def _counted(now: Emptied, before: Emptied, statement: TableStatement, at: Point, manifest: Manifest) -> Emptied:
    """Add the place of a statement that took the rows."""
    if statement.kind != "drop" and now.before == before.before:
        return now
    return replace(now, gone=(*now.gone, Gone(*at, statement.time or manifest.last_time)))


def _behind(now: Emptied, statement: TableStatement, at: Point) -> Emptied:
    """Return what is so behind one more statement."""
    kind = statement.kind
    if kind == "drop":
        now = replace(now, dropped=at)
    elif kind == "truncate":
        now = replace(now, before=at, fills=(), unclear="")
    elif kind == "create" or (kind == "create_if_missing" and now.dropped is not None):
        now = replace(now, before=at, dropped=None, fills=(), unclear="")
    elif kind == "fill":
        now = replace(now, fills=(*now.fills, *(PlacedFill(at, fill) for fill in statement.fills)))
    elif kind == "shadow":
        now = replace(now, shadow=None)
    elif kind == "shadow_fill":
        before = now.shadow or Shadow()
        shadow = Shadow((*before.fills, *statement.fills), before.unclear or statement.unclear)
        now = replace(now, shadow=shadow)
    elif kind == "swap" and now.shadow is not None:
        placed = tuple(PlacedFill(at, fill) for fill in now.shadow.fills)
        unclear = now.unclear or now.shadow.unclear
        now = replace(now, shadow=None, fills=(*now.fills, *placed), unclear=unclear)
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
    return statement.table.endswith(".*")


def spread(manifest: Manifest, known: Collection[str]) -> Manifest:
    """Return a manifest with a statement for each table where it has one for a whole database.

    Args:
        manifest: of a window.
        known: ``database.table`` of every table that the lake may have.
    """
    found: list[TableStatement] = []
    for one in manifest.statements:
        tables = [name for name in sorted(known) if name.startswith(one.table[:-1])]
        found += [replace(one, table=table) for table in tables] if is_of_database(one) else [one]
    return replace(manifest, statements=tuple(found))
