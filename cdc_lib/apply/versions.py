"""The versions of rows (scd2) that changes make, by the rule of :mod:`cdc_lib.merge.scd2`, which DuckDB runs.

The rule sees numbers in place of keys and rows: equal ones have equal numbers, so that it needs no types.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from duckdb import DuckDBPyConnection
from numpy.typing import NDArray

from cdc_lib.apply.engine import connect, quoted
from cdc_lib.apply.removals import is_chosen
from cdc_lib.apply.rows import Order, less, numbers_of, order_of, with_column
from cdc_lib.merge.collapse import READ
from cdc_lib.merge.scd2.rewrite import RewriteRange, without_sql
from cdc_lib.merge.scd2.timeline import TimeCut, events_sql
from cdc_lib.merge.scd2.versions import SAME, versions_sql
from cdc_lib.model.lake_table import MODE_COLUMNS, ORDER
from cdc_lib.model.manifest import EPOCH, GTID, OP
from cdc_lib.model.table_commit import Superseded
from cdc_lib.model.table_mode import IS_CURRENT, TO_GTID, TO_ORDER, VALID_FROM, VALID_TO, TableReset

_CHANGES, _EXISTING, _MADE = "cdc_changes", "cdc_existing_versions", "cdc_made_versions"
_OF_EPOCH = "cdc_changes_of_epoch"
_KEY, _CELLS, _ROW = "cdc_key", "cdc_cells", "cdc_row_number"
_AT = pa.timestamp("us")
"""A time (UTC), whose type names no zone."""


@dataclass(frozen=True, slots=True)
class EarliestChange:
    """The first one of some changes.

    Args:
        order: its order key.
        at: the earliest time of one; None if no change has one.
    """

    order: tuple[int, ...]
    at: datetime | None

    @classmethod
    def of(cls, changes: pa.Table, rules: Sequence[Superseded] = ()) -> EarliestChange:
        """Look at changes, at least one, and at the ranges of rules of which all changes are merged again."""
        order = order_of(changes)
        first = np.lexsort(tuple(reversed(order)))[0]
        firsts = [tuple(int(part[first]) for part in order), *((*one.since, 0) for one in again_of(rules))]
        return cls(min(firsts), pc.min(changes.column(VALID_FROM)).as_py())

    def may_touch(self, versions: pa.Table, *, guard: bool) -> NDArray[np.bool_]:
        """Return which versions of the same keys the changes may touch.

        Args:
            versions: of the lake.
            guard: whether some of the changes may be older than the lake's.
        """
        touched = pc.fill_null(versions.column(IS_CURRENT), False).to_numpy() | self.is_since(versions, VALID_TO)
        if not guard:
            return np.asarray(touched)
        return np.asarray(touched | ~less(_order_of_ends(versions), self.order, or_equal=False))

    def is_since(self, versions: pa.Table, name: str) -> NDArray[np.bool_]:
        """Return for which versions a time is not before the first change."""
        column = versions.column(name)
        if self.at is None:
            return np.ones(len(column), np.bool_)
        since = pc.greater_equal(column, pa.scalar(self.at, column.type))
        return np.asarray(pc.fill_null(since, False).to_numpy())


def spliced(
    changes: pa.Table,
    existing: pa.Table,
    key: Sequence[str],
    own: Sequence[str],
    rules: Sequence[Superseded],
    unfinished: Sequence[int],
) -> tuple[pa.Table, NDArray[np.bool_]]:
    """Return the new versions, and which of the existing ones stay as they are.

    Args:
        changes: in the columns of the lake table, complete, at least one; ``_valid_from`` holds their commit times.
        existing: the lake's versions of their keys that they may touch, in the same columns.
        key: names of the key's columns.
        own: names of the source's other columns.
        rules: positions at which rows end without a change of their own, in order, and ranges of which all changes are merged again.
        unfinished: see :func:`cdc_lib.merge.scd2.epochs.unfinished_epochs`.
    """
    rows = pa.concat_tables([existing, changes.select(existing.column_names)])
    first, epoch = EarliestChange.of(changes), pc.max(changes.column(EPOCH)).as_py()
    late = first.is_since(existing, VALID_FROM) | first.is_since(existing, VALID_TO)
    replayed = bool(epoch > 1 and np.any(late & pc.less(existing.column(EPOCH), epoch).to_numpy()))
    cuts, again = cuts_of(rules), again_of(rules)
    events = _numbered(rows, key, own if replayed or again else (), rules)
    made = [_CELLS] if replayed or again else []
    with connect() as engine:
        engine.execute("SET threads = 1")
        before, after = events.slice(0, existing.num_rows), events.slice(existing.num_rows)
        engine.register(_EXISTING, before)
        engine.register(_CHANGES, after)
        if again:
            found = _rewritten(engine, before, after, cuts, again, unfinished)
        else:
            sql = events_sql(_CHANGES, _EXISTING, cuts, (_KEY,), (*made, _ROW), quoted)
            sql = versions_sql(
                f"({sql}) AS u", (_KEY,), made, quoted, carried=(_ROW,), replayed=replayed, unfinished=unfinished
            )
            found = engine.sql(sql).to_arrow_table()
    is_same = found.column(SAME).to_numpy()
    numbers = found.column(_ROW).to_numpy()
    stays = np.zeros(existing.num_rows, np.bool_)
    stays[numbers[is_same]] = True
    new = rows.take(pa.array(numbers[~is_same]))
    for name in (VALID_FROM, VALID_TO, IS_CURRENT, *TO_ORDER, TO_GTID):
        new = with_column(new, name, found.column(name).filter(pa.array(~is_same)))
    return new, stays


def _rewritten(
    engine: DuckDBPyConnection,
    existing: pa.Table,
    changes: pa.Table,
    cuts: Sequence[TimeCut],
    again: Sequence[RewriteRange],
    unfinished: Sequence[int],
) -> pa.Table:
    """Return the versions of the changes' keys, with the rewritten ranges spliced epoch by epoch."""
    columns = (_CELLS, _ROW)
    engine.execute(f"CREATE TABLE {_MADE} AS {without_sql(_EXISTING, again, cuts, (_KEY, *columns), quoted)}")
    for epoch in sorted({*changes.column(EPOCH).unique().to_pylist(), *(cut.reset.epoch for cut in cuts)}):
        engine.register(_OF_EPOCH, changes.filter(pc.equal(changes.column(EPOCH), epoch)))
        here = [cut for cut in cuts if cut.reset.epoch == epoch]
        events = events_sql(_OF_EPOCH, _MADE, here, (_KEY,), columns, quoted, keys_of=_CHANGES)
        sql = versions_sql(
            f"({events}) AS u", (_KEY,), (_CELLS,), quoted, carried=(_ROW,), replayed=epoch > 1, unfinished=unfinished
        )
        engine.execute(f"CREATE OR REPLACE TABLE {_MADE} AS {sql}")
    names = (_KEY, _CELLS, *MODE_COLUMNS["scd2"])
    lake = existing.select(names)
    found = engine.table(_MADE).to_arrow_table()
    alike = numbers_of(pa.concat_tables([lake, found.select(names).cast(lake.schema)]), names)
    # Of a row that is twice neither is right.
    _, place, copies = np.unique(numbers_of(lake, (_KEY, *ORDER)), return_inverse=True, return_counts=True)
    number_of = dict(zip(alike[: lake.num_rows].tolist(), range(lake.num_rows), strict=True))
    in_lake = [number_of.get(number, -1) for number in alike[lake.num_rows :].tolist()]
    is_same = np.array([number >= 0 and copies[place[number]] == 1 for number in in_lake], np.bool_)
    numbers = np.where(is_same, in_lake, found.column(_ROW).to_numpy())
    return (
        found.drop_columns([_ROW, SAME]).append_column(_ROW, pa.array(numbers)).append_column(SAME, pa.array(is_same))
    )


def cuts_of(rules: Iterable[Superseded]) -> list[TimeCut]:
    """Return the positions at which rows end, in order."""
    cuts = [
        TimeCut(TableReset(*rule.before, rule.at), rule.by_snapshot, _whose(rule))
        for rule in rules
        if rule.since is None
    ]
    return sorted(cuts, key=lambda cut: cut.reset[:3])


def again_of(rules: Iterable[Superseded]) -> list[RewriteRange]:
    """Return the ranges of which all changes are merged again."""
    return [RewriteRange(rule.since, rule.before, _whose(rule)) for rule in rules if rule.since is not None]


def without_rewritten(versions: pa.Table, rules: Iterable[Superseded]) -> pa.Table:
    """Return versions of the lake as far as changes that are merged again neither began nor ended them.

    Args:
        versions: with all columns of the table.
        rules: of which those with a lower bound are about ranges that are merged again.
    """
    for rule in rules:
        if rule.since is not None:
            read = pc.equal(versions.column(OP), READ).to_numpy()
            versions = versions.filter(pa.array(read | ~is_chosen(rule, versions, order_of(versions))))
            ended = is_chosen(rule, versions, _order_of_ends(versions))
            opened = pc.if_else(pa.array(ended), True, versions.column(IS_CURRENT))
            versions = with_column(versions, IS_CURRENT, opened)
    return versions


def _order_of_ends(versions: pa.Table) -> Order:
    return tuple(pc.fill_null(versions.column(name), -1).to_numpy().astype(np.int64) for name in TO_ORDER)


def _numbered(rows: pa.Table, key: Sequence[str], own: Sequence[str], rules: Sequence[Superseded]) -> pa.Table:
    """Return rows with numbers of their keys, of their cells and of themselves, and the columns that the rule reads."""
    times = {name: rows.column(name).cast(_AT) for name in (VALID_FROM, VALID_TO)}
    columns = {name: rows.column(name) for name in (OP, *ORDER, GTID, IS_CURRENT, *TO_ORDER, TO_GTID)}
    named = {name: rows.column(name) for one in rules for name in one.columns}
    numbers = {_KEY: numbers_of(rows, key), _CELLS: numbers_of(rows, own), _ROW: np.arange(rows.num_rows)}
    return pa.table({**named, **columns, **times, **numbers})


def _whose(rule: Superseded) -> str:
    texts = {name: value.replace("'", "''") for name, value in rule.columns.items()}
    return " AND ".join(f"{quoted(name)} = '{text}'" for name, text in texts.items())
