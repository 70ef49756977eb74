"""Rows that a statement or a snapshot removes, without a change of their own: they go, or get the marks of the table's mode."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from cdc_lib.apply.key_rows import Rows
from cdc_lib.apply.rows import Order, is_before, less, order_of, with_column
from cdc_lib.drain.erased import erased_among
from cdc_lib.merge.collapse import DELETE, READ
from cdc_lib.model.erasure import Erasure
from cdc_lib.model.lake_table import ORDER
from cdc_lib.model.manifest import BINLOG, EPOCH, GTID, OFFSET, OP, ROW, TS
from cdc_lib.model.position import SNAPSHOT_ROW
from cdc_lib.model.table_commit import Erased, Filled, Superseded
from cdc_lib.model.table_mode import IS_CURRENT, IS_DELETED, STATEMENT_ROW, TO_ORDER, VALID_FROM, VALID_TO, Mode


def removed_by(rules: Sequence[Superseded], rows: pa.Table, mode: str) -> Rows:
    """Return for each row of a lake table the number of the rule that removes or marks it; -1 for none.

    Args:
        rules: in order; the first one counts.
        rows: with the columns of the order key, those that the rules name, and the mark of the mode if the table has it.
        mode: of the lake table.
    """
    order, found = order_of(rows), np.full(rows.num_rows, -1)
    for number, rule in enumerate(rules):
        found[_applies(rule, rows, order, mode) & (found < 0)] = number
    if mode == "soft_delete" and IS_DELETED in rows.column_names:
        found[pc.fill_null(rows.column(IS_DELETED), False).to_numpy()] = -1
    return found


def needed_columns(rules: Sequence[Superseded], mode: Mode) -> list[str]:
    """Return the columns of a lake table that show which of its rows are removed."""
    of_mode = {"soft_delete": (IS_DELETED,), "scd2": (IS_CURRENT,), "append": (OP,), "mirror": ()}[mode]
    return sorted({*ORDER, *of_mode, *(name for rule in rules for name in rule.columns)})


def _applies(rule: Superseded, rows: pa.Table, order: Order, mode: str) -> NDArray[np.bool_]:
    if mode in ("mirror", "append"):
        found = is_chosen(rule, rows, order)
        # Only append tables keep the operation that shows rows of snapshots.
        if mode == "append" and not rule.reads:
            found &= pc.fill_null(pc.not_equal(rows.column(OP), READ), False).to_numpy()
        return found
    return is_chosen(rule, rows, order, (*rule.before, STATEMENT_ROW))


def is_chosen(
    rule: Superseded | Filled, rows: pa.Table, order: Order, last: tuple[int, ...] | None = None
) -> NDArray[np.bool_]:
    """Return which rows are of the source table and the positions that a rule is about.

    Args:
        rule: the rule.
        rows: with the columns that it names.
        order: of the rows.
        last: order key of the last row; rows before the point of the rule by default.
    """
    found = less(order[:3], tuple(rule.before), or_equal=False) if last is None else less(order, last, or_equal=True)
    if rule.since is not None:
        found &= ~less(order[:3], tuple(rule.since), or_equal=False)
    return found & is_of_source(rule.columns, rows)


def erased_by(rules: Sequence[Erased], rows: pa.Table) -> NDArray[np.bool_]:
    """Return which rows of a lake table are erased.

    Args:
        rules: which keys.
        rows: with the columns that :func:`needed_to_erase` names.
    """
    found = np.zeros(rows.num_rows, np.bool_)
    for rule in rules:
        before = is_before_erasure(rule.erasure, rows) & is_of_source(rule.columns, rows)
        found |= erased_among(rule.erasure, rows, rule.key, before)
    return found


def is_before_erasure(erasure: Erasure, rows: pa.Table) -> NDArray[np.bool_]:
    """Return which rows with an order key are from before an erasure; one that was read by SELECT has the position before it."""
    return less(order_of(rows), (*erasure.point, SNAPSHOT_ROW), or_equal=True)


def needed_to_erase(rules: Sequence[Erased]) -> list[str]:
    """Return the columns of a lake table that show which of its rows are erased."""
    return sorted({*ORDER, *(name for rule in rules for name in (*rule.key, *rule.columns))})


def statement_numbers(rows: pa.Table, rules: Sequence[Superseded]) -> Rows:
    """Return for each row how many statements that removed all rows of its source table come before it."""
    order, found = order_of(rows), np.zeros(rows.num_rows, np.int64)
    for rule in rules:
        if rule.since is None and not rule.by_snapshot:
            found += ~is_before(order, rule.before) & is_of_source(rule.columns, rows)
    return found


def is_of_source(constants: Mapping[str, str], rows: pa.Table) -> NDArray[np.bool_]:
    """Return which rows have these values in these columns."""
    found = np.ones(rows.num_rows, np.bool_)
    for name, value in constants.items():
        found &= pc.fill_null(pc.equal(rows.column(name), value), False).to_numpy()
    return found


def with_marks(rows: pa.Table, removed: Rows, rules: Sequence[Superseded]) -> pa.Table:
    """Return rows of a soft_delete table with the marks of the rules that removed them.

    Args:
        rows: with any columns of the table.
        removed: number of each row's rule; -1 for none.
        rules: all rules.
    """
    for number in np.unique(removed[removed >= 0]).tolist():
        rows = _with_values(rows, removed == number, {IS_DELETED: True, **_values(rules[number])})
    return rows


def closed(versions: pa.Table, removed: Rows, rules: Sequence[Superseded]) -> pa.Table:
    """Return current versions of a table, each ended by its rule.

    Args:
        versions: with all columns of the table.
        removed: number of each one's rule.
        rules: all rules.
    """
    for number in np.unique(removed).tolist():
        rule = rules[number]
        place = dict(zip(TO_ORDER, (*rule.before, STATEMENT_ROW), strict=True))
        versions = _with_values(versions, removed == number, {IS_CURRENT: False, **place})
        at = began = versions.column(VALID_FROM)
        if rule.at is not None:
            at = pa.scalar(rule.at, began.type)
            at = pc.if_else(pc.fill_null(pc.less(began, at), True), at, began)
        ended = pc.if_else(pa.array(removed == number), at, versions.column(VALID_TO))
        versions = with_column(versions, VALID_TO, ended)
    return versions


def with_mode(last: pa.Table, mode: Mode, rules: Sequence[Superseded]) -> pa.Table:
    """Return the last changes of keys with the columns of the mode; those before a statement that removed all rows end there.

    Args:
        last: the changes, with ``_op``.
        mode: of the lake table.
        rules: in order.
    """
    if mode not in ("soft_delete", "scd2"):
        return last
    deleted = pc.equal(last.column(OP), DELETE).to_numpy()
    for rule in rules:
        before, is_of = is_before(order_of(last), rule.before), is_of_source(rule.columns, last)
        if mode == "scd2" and rule.at is not None:
            began, at = last.column(VALID_FROM), pa.scalar(rule.at, last.schema.field(VALID_FROM).type)
            later = pc.and_(pa.array(~before & is_of), pc.less(began, at))
            last = with_column(last, VALID_FROM, pc.if_else(later, at, began))
        removed = before & is_of & ~deleted
        if not rule.by_snapshot and removed.any():
            deleted |= removed
            last = _with_values(last, removed, {OP: DELETE, **_values(rule)})
    name, mark = (IS_DELETED, deleted) if mode == "soft_delete" else (IS_CURRENT, ~deleted)
    return with_column(last, name, pa.array(mark)) if name in last.column_names else last


def _values(rule: Superseded) -> dict[str, Any]:
    """Return what a removed row has of the statement."""
    position = dict(zip((EPOCH, BINLOG, OFFSET), rule.before, strict=True))
    at = {TS: rule.at} if rule.at is not None else {}
    return {**position, ROW: STATEMENT_ROW, GTID: None, **at}


def _with_values(rows: pa.Table, chosen: NDArray[np.bool_], values: dict[str, Any]) -> pa.Table:
    """Give the chosen rows these values, as far as there are such columns."""
    mask = pa.array(chosen)
    for name, value in values.items():
        if name in rows.column_names:
            column = rows.column(name)
            rows = with_column(rows, name, pc.if_else(mask, pa.scalar(value, column.type), column))
    return rows
