"""The events of rows whose versions are kept: their changes, what the lake has of them, and what took them without a change."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from cdc_lib.merge.collapse import DELETE, Quote
from cdc_lib.merge.scd2.versions import BY_SNAPSHOT, BY_STATEMENT, CUT, EXISTING
from cdc_lib.model.lake_table import ORDER
from cdc_lib.model.manifest import GTID, OP
from cdc_lib.model.table_mode import IS_CURRENT, STATEMENT_ROW, TO_GTID, TO_ORDER, VALID_FROM, VALID_TO, TableReset

_ENDS = (VALID_TO, *TO_ORDER)


@dataclass(frozen=True, slots=True)
class TimeCut:
    """A point at which rows end without a change of their own.

    Args:
        reset: the statement or snapshot that ends them.
        by_snapshot: rows that a snapshot of the same merge has continue.
        whose: condition of the rows that are meant, ready for SQL; empty for all.
    """

    reset: TableReset
    by_snapshot: bool = False
    whose: str = ""


def events_sql(
    changes: str,
    existing: str,
    cuts: Iterable[TimeCut],
    key: Sequence[str],
    own: Sequence[str],
    quote: Quote,
    keys_of: str = "",
) -> str:
    """Return a SELECT of the events that :func:`cdc_lib.merge.scd2.versions.versions_sql` takes.

    Args:
        changes: relation of the changes, all of them; ``_valid_from`` holds their commit times.
        existing: relation of the lake's versions of the same keys, those that may be touched.
        cuts: points at which rows of these keys end.
        key: names of the primary key's columns.
        own: names of the others of the row.
        quote: quotes a name for the engine.
        keys_of: relation of the rows that the cuts may end; the changes when empty.
    """
    row = [quote(name) for name in (*key, *own)]
    order, to = [quote(name) for name in ORDER], [quote(name) for name in TO_ORDER]
    gtid, began, ended = quote(GTID), quote(VALID_FROM), quote(VALID_TO)
    nulls = [f"NULL AS {quote(name)}" for name in _ENDS]

    def event(*parts: str, of: str, existing: bool, cut: str = "") -> str:
        flags = (f"{str(existing).lower()} AS {EXISTING}", f"'{cut}' AS {CUT}")
        return f"SELECT {', '.join((*parts, *flags))} FROM {of}"

    placed = [f"{end} AS {start}" for end, start in zip(to, order, strict=True)]
    closed = (f"'{DELETE}' AS {quote(OP)}", *placed, f"{quote(TO_GTID)} AS {gtid}", f"{ended} AS {began}")
    parts = [
        # The first one names the columns' types.
        event(*row, quote(OP), *order, gtid, began, *map(quote, _ENDS), of=existing, existing=True),
        event(*row, *closed, *nulls, of=f"{existing} WHERE NOT {quote(IS_CURRENT)}", existing=True),
        event(*row, quote(OP), *order, gtid, began, *nulls, of=changes, existing=False),
    ]
    keys = ", ".join(map(quote, key))
    for cut in cuts:
        order_key = dict(zip(order, (cut.reset.epoch, cut.reset.file, cut.reset.offset, STATEMENT_ROW), strict=True))
        at = f"TIMESTAMP '{cut.reset.at:%Y-%m-%d %H:%M:%S.%f}+00:00'" if cut.reset.at is not None else "NULL"
        values = [f"'{DELETE}' AS {quote(OP)}", *(f"{value} AS {name}" for name, value in order_key.items())]
        values += [f"NULL AS {gtid}", f"{at} AS {began}", *nulls]
        of = f"(SELECT DISTINCT {keys} FROM {keys_of or changes}{f' WHERE {cut.whose}' if cut.whose else ''}) AS k"
        rows = [*map(quote, key), *(f"NULL AS {quote(name)}" for name in own)]
        parts.append(event(*rows, *values, of=of, existing=False, cut=BY_SNAPSHOT if cut.by_snapshot else BY_STATEMENT))
    return " UNION ALL ".join(parts)
