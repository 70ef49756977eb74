"""Rewrite of versions: those of a range of the stream are removed from the lake's, and made again from the range's changes.

A version that a read row (of a snapshot, a chunk of one, a repair) began or ended, and one that a snapshot ended, are kept: no
window holds that row. The changes are taken one epoch after another, as the daily merges did, so that a replayed change is
recognized by the versions of earlier epochs. The SQL has no dialect of one engine, like that of the versions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cdc_lib.merge.collapse import READ, Quote
from cdc_lib.merge.scd2.timeline import TimeCut
from cdc_lib.model.lake_table import MODE_COLUMNS, ORDER
from cdc_lib.model.manifest import OP
from cdc_lib.model.position import Point
from cdc_lib.model.table_mode import IS_CURRENT, STATEMENT_ROW, TO_GTID, TO_ORDER, VALID_TO


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


def after(names: Sequence[str], order_key: Sequence[int]) -> str:
    """Return the condition that an order key is this one or after it; column by column, so that files are left out by it."""
    (name, *names), (value, *order_key) = names, order_key
    return f"({name} > {value} OR ({name} = {value} AND {after(names, order_key) if names else 'true'}))"


def without_sql(
    existing: str, ranges: Sequence[RewriteRange], cuts: Sequence[TimeCut], own: Sequence[str], quote: Quote
) -> str:
    """Return a SELECT of the lake's versions as they would be without the changes and statements of the ranges.

    Args:
        existing: relation of the lake's versions, ready for SQL.
        ranges: whose changes are removed.
        cuts: points at which rows end; those of statements end their rows again, after the changes before them.
        own: names of the row's own columns, key and all.
        quote: quotes a name for the engine.
    """
    begun = " OR ".join(_within(one, ORDER, quote) for one in ranges)
    changed = " OR ".join(_within(one, TO_ORDER, quote) for one in ranges)
    ended = [f"({changed}) AND {quote(TO_ORDER[-1])} >= 0"]
    ended += [_at_statement(cut, quote) for cut in cuts if not cut.by_snapshot]
    reopened = f"coalesce({' OR '.join(f'({one})' for one in ended)}, false)"
    opened = {
        quote(name): f"CASE WHEN {reopened} THEN NULL ELSE {quote(name)} END" for name in (*TO_ORDER, TO_GTID, VALID_TO)
    }
    opened[quote(IS_CURRENT)] = f"({quote(IS_CURRENT)} OR {reopened})"
    names = [quote(name) for name in (*own, *MODE_COLUMNS["scd2"])]
    listed = ", ".join(f"{opened[name]} AS {name}" if name in opened else name for name in names)
    return f"SELECT {listed} FROM {existing} WHERE {quote(OP)} = '{READ}' OR NOT ({begun})"


def _at_statement(cut: TimeCut, quote: Quote) -> str:
    """Return the condition that a version was ended by a statement such as TRUNCATE."""
    order_key = (cut.reset.epoch, cut.reset.file, cut.reset.offset, STATEMENT_ROW)
    found = " AND ".join(f"{quote(name)} = {value}" for name, value in zip(TO_ORDER, order_key, strict=True))
    return f"{found} AND {cut.whose}" if cut.whose else found


def _within(rewrite_range: RewriteRange, order: Sequence[str], quote: Quote) -> str:
    names = [quote(name) for name in order[:-1]]
    found = f"{after(names, rewrite_range.since)} AND NOT {after(names, rewrite_range.end)}"
    return f"({found} AND {rewrite_range.whose})" if rewrite_range.whose else f"({found})"
