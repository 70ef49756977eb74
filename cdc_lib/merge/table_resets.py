"""Effects of DDL statements on the rows of a table, from the manifests of consecutive windows: pure.

CREATE TABLE IF NOT EXISTS is in the binlog even if it did nothing. Whether it created the table depends on earlier
statements: so it is decided here, where windows come in order, and the table's marker remembers a DROP. A snapshot that read
the table later shows that it exists, as after a RENAME that gave it the name. The marker also
remembers an online schema change tool's statements on its shadow table; they take effect at the swap.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace

from cdc_lib.merge.chunks import low_of
from cdc_lib.model.ddl_effect import AddedDefault, TableStatement
from cdc_lib.model.lake_table import Marker, PlacedDefault, Shadow
from cdc_lib.model.manifest import Manifest
from cdc_lib.model.position import Point
from cdc_lib.model.schema import Column
from cdc_lib.model.schema_policy import DEFAULT_POLICY, SchemaPolicy
from cdc_lib.model.table_mode import TableReset
from cdc_lib.model.table_name import EVERY_TABLE, TableName


@dataclass(frozen=True, slots=True)
class Retyped:
    """Columns that a statement declared again; the types of the lake's rows decide whether it changed their values.

    Args:
        at: where it starts; of an online schema change, the swap.
        columns: the former names, the new types.
    """

    at: Point
    columns: tuple[Column, ...]


@dataclass(frozen=True, slots=True)
class StatementEffects:
    """Effects of statements on a table.

    Args:
        before: rows before this point were removed; None if none were.
        dropped: where the table was dropped, unless it was created again or a later snapshot read it.
        shadow: changes to a shadow table that is not swapped in yet; None without one.
        added_defaults: in order.
        unclear: why values of added columns are unknown; empty if they are known.
        resets: where all earlier rows were removed, also by a DROP, in order.
        entries: those of them that are entries in append mode: a CREATE of a missing table removes nothing.
        kept: where all earlier rows were removed at the source and stay in the lake, in order.
        retyped: statements that may have changed values in rows, in order.
    """

    before: Point | None = None
    dropped: Point | None = None
    shadow: Shadow | None = None
    added_defaults: tuple[PlacedDefault, ...] = ()
    unclear: str = ""
    resets: tuple[TableReset, ...] = ()
    entries: tuple[TableReset, ...] = ()
    kept: tuple[Point, ...] = ()
    retyped: tuple[Retyped, ...] = ()


def statement_effects(
    table: str,
    manifests: Iterable[Manifest],
    since: Point | None,
    before: Marker,
    policy: SchemaPolicy = DEFAULT_POLICY,
) -> StatementEffects:
    """Return the effects of the statements on a table.

    Args:
        table: ``database.table``.
        manifests: of windows, in the stream's order, and of chunks.
        since: statements before this point are already merged; None for none.
        before: what the table's marker remembers of the statements before them.
        policy: what the lake does about statements that remove rows.
    """
    kept = (before.kept_before,) if before.kept_before is not None else ()
    now = StatementEffects(
        dropped=before.dropped, shadow=before.shadow, added_defaults=before.pending_defaults, kept=kept
    )
    # A merge left the table as it is at a DROP, which is no entry of it then: that of the next CREATE removes the rows of before.
    is_left = before.dropped is not None and (before.merged_to is None or before.merged_to < before.dropped)
    manifests = tuple(manifests)
    reads = [low_of(one) for one in manifests if one.chunk is not None and one.chunk.table == table and one.schemas]
    for manifest in manifests:
        for statement in manifest.statements:
            at = Point.at(manifest.epoch, statement.position)
            if statement.table == table and (since is None or since <= at):
                now = _found(now, [read for read in reads if read <= at])
                after = _after(now, statement, at, policy)
                removes = after.before != now.before or (
                    statement.kind == "drop" and policy.at("drop_table", at) != "keep"
                )
                now = (
                    _counted(after, statement, at, manifest, is_left=is_left and not now.entries) if removes else after
                )
    return _found(now, reads)


def _found(now: StatementEffects, reads: Iterable[Point]) -> StatementEffects:
    """Return the effects without a DROP after which a snapshot read the table; it finds a dropped one without a definition."""
    exists = now.dropped is not None and any(now.dropped < read for read in reads)
    return replace(now, dropped=None) if exists else now


def _counted(
    now: StatementEffects, statement: TableStatement, at: Point, manifest: Manifest, *, is_left: bool
) -> StatementEffects:
    """Add the position of a statement that removed the rows."""
    reset = TableReset(*at, statement.time or manifest.last_time, statement.gtid)
    removes = is_left or statement.replaces or statement.kind in ("truncate", "drop")
    return replace(now, resets=(*now.resets, reset), entries=(*now.entries, reset) if removes else now.entries)


def _after(now: StatementEffects, statement: TableStatement, at: Point, policy: SchemaPolicy) -> StatementEffects:
    """Return the effects after one more statement."""
    kind = statement.kind
    if kind == "drop":
        now = replace(_emptied(now, at) if policy.at("drop_table", at) == "follow" else now, dropped=at)
    elif kind == "truncate" and policy.at("truncate", at) == "keep":
        now = replace(now, kept=(*now.kept, at))
    elif kind == "truncate":
        now = _emptied(now, at)
    elif kind == "create" or (kind == "create_if_missing" and now.dropped is not None):
        now = replace(_emptied(now, at), dropped=None)
    elif kind == "add_default":
        now = replace(now, added_defaults=(*now.added_defaults, *_placed(statement.added_defaults, statement, at)))
    elif kind == "retype":
        now = replace(now, retyped=(*now.retyped, Retyped(at, statement.retyped)))
    elif kind == "shadow":
        now = replace(now, shadow=None)
    elif kind == "shadow_add_default":
        before = now.shadow or Shadow()
        shadow = Shadow(
            (*before.added_defaults, *statement.added_defaults),
            before.unclear or statement.unclear,
            (*before.retyped, *statement.retyped),
        )
        now = replace(now, shadow=shadow)
    elif kind == "swap" and now.shadow is not None:
        placed = _placed(now.shadow.added_defaults, statement, at)
        unclear = now.unclear or now.shadow.unclear
        retyped = (*now.retyped, *([Retyped(at, now.shadow.retyped)] if now.shadow.retyped else ()))
        added = (*now.added_defaults, *placed)
        now = replace(now, shadow=None, added_defaults=added, unclear=unclear, retyped=retyped)
    return now


def _emptied(now: StatementEffects, at: Point) -> StatementEffects:
    """Return the effects after a statement that removed all rows, also those that earlier statements left in the lake."""
    return replace(now, before=at, added_defaults=(), unclear="", kept=(), retyped=())


def _placed(defaults: Iterable[AddedDefault], statement: TableStatement, at: Point) -> tuple[PlacedDefault, ...]:
    return tuple(PlacedDefault(at, one, statement.gtid, statement.time) for one in defaults)


def swaps_in_earlier_shadow(table: str, manifests: Iterable[Manifest], since: Point | None) -> bool:
    """Whether an online schema change tool swapped in a shadow table that it had created before a point.

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


def expand_database_statements(manifest: Manifest, known: Collection[TableName]) -> Manifest:
    """Return a manifest whose statements on a whole database are replaced by one for each table.

    Args:
        manifest: of a window.
        known: every table that the lake may have.
    """
    statements: list[TableStatement] = []
    for one in manifest.statements:
        tables = [table for table in sorted(known) if table.database == one.table.database]
        statements += [replace(one, table=table) for table in tables] if is_of_database(one) else [one]
    return replace(manifest, statements=tuple(statements))
