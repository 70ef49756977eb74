"""Versions of a stretch of the stream that is merged again: what the lake has of it is taken out, and made again of the changes.

What begins or ends by a row that was read (by a snapshot, a part of one, a repair) and what ends by a snapshot stays: no window
tells of it. The changes of several epochs are taken one epoch after another, as daily merges had them: what an epoch brought
again is known by what stood before it. The SQL has nothing of one engine in it, as that of the versions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cdc_lib.merge.collapse import Quote
from cdc_lib.merge.scd2.versions import READ, SAME
from cdc_lib.model.lake_table import MODE_COLUMNS, ORDER
from cdc_lib.model.manifest import OP
from cdc_lib.model.position import Point
from cdc_lib.model.table_mode import IS_CURRENT, TO_GTID, TO_ORDER, VALID_TO

_COPIES = "cdc_copies"


@dataclass(frozen=True, slots=True)
class RewriteRange:
    """A part of the stream of which all changes are at hand.

    Args:
        since: first point that belongs to it.
        end: first point that no longer does.
        whose: condition of the rows that are meant, ready for SQL; empty for all.
    """

    since: Point
    end: Point
    whose: str = ""


def after(names: Sequence[str], place: Sequence[int]) -> str:
    """Return the condition that an order is a place or after it; column by column, so that files are left out by it."""
    (name, *names), (value, *place) = names, place
    return f"({name} > {value} OR ({name} = {value} AND {after(names, place) if names else 'true'}))"


def without_sql(standing: str, stretches: Sequence[RewriteRange], own: Sequence[str], quote: Quote) -> str:
    """Return a SELECT of the lake's versions as they would be without the changes of the stretches.

    Args:
        standing: relation of the lake's versions, ready to stand in SQL.
        stretches: what is taken out.
        own: names of the row's own columns, key and all.
        quote: quotes a name for the engine.
    """
    begun = " OR ".join(_within(one, ORDER, quote) for one in stretches)
    ended = " OR ".join(_within(one, TO_ORDER, quote) for one in stretches)
    change = f"coalesce(({ended}) AND {quote(TO_ORDER[-1])} >= 0, false)"
    opened = {
        quote(name): f"CASE WHEN {change} THEN NULL ELSE {quote(name)} END" for name in (*TO_ORDER, TO_GTID, VALID_TO)
    }
    opened[quote(IS_CURRENT)] = f"({quote(IS_CURRENT)} OR {change})"
    names = [quote(name) for name in (*own, *MODE_COLUMNS["scd2"])]
    listed = ", ".join(f"{opened[name]} AS {name}" if name in opened else name for name in names)
    return f"SELECT {listed} FROM {standing} WHERE {quote(OP)} = '{READ}' OR NOT ({begun})"


def same_sql(found: str, standing: str, key: Sequence[str], own: Sequence[str], quote: Quote) -> str:
    """Return a SELECT of versions, and whether each of them is in the lake just so: :data:`SAME`.

    Args:
        found: relation of the versions as they are to be.
        standing: relation of the lake's versions of the same keys.
        key: names of the primary key's columns.
        own: names of the others of the row.
        quote: quotes a name for the engine.
    """
    names = [quote(name) for name in (*key, *own, *MODE_COLUMNS["scd2"])]
    place = ", ".join(quote(name) for name in (*key, *ORDER))
    # Of a row that is twice neither is right.
    lake = f"SELECT *, count(*) OVER (PARTITION BY {place}) AS {_COPIES} FROM {standing}"
    alike = " AND ".join(f"f.{name} IS NOT DISTINCT FROM s.{name}" for name in names)
    listed = ", ".join(f"f.{name}" for name in names)
    return (
        f"SELECT {listed}, s.{_COPIES} IS NOT NULL AS {SAME} FROM {found} AS f"
        f" LEFT JOIN ({lake}) AS s ON s.{_COPIES} = 1 AND {alike}"
    )


def _within(stretch: RewriteRange, order: Sequence[str], quote: Quote) -> str:
    names = [quote(name) for name in order[:-1]]
    found = f"{after(names, stretch.since)} AND NOT {after(names, stretch.end)}"
    return f"({found} AND {stretch.whose})" if stretch.whose else f"({found})"
