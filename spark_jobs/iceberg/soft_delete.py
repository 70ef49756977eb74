"""Soft deletes: marks deleted rows in changes and in the lake."""

from __future__ import annotations

from collections.abc import Iterable

from pyspark.sql import DataFrame
from pyspark.sql.functions import expr

from cdc_lib.merge.collapse import DELETE
from cdc_lib.merge.scd2.timeline import TimeCut
from cdc_lib.model.lexer import quoted
from cdc_lib.model.manifest import BINLOG, EPOCH, GTID, OFFSET, OP, ROW, TS
from cdc_lib.model.table_mode import IS_DELETED, STATEMENT_ROW

_POSITION = (EPOCH, BINLOG, OFFSET)


def marked(rows: DataFrame, cuts: Iterable[TimeCut]) -> DataFrame:
    """Return the last changes of rows with the delete mark; rows that a later statement removed get its position.

    Args:
        rows: the last change of each key.
        cuts: positions at which rows end without a change, in order.
    """
    removed = [(f"{quoted(OP)} <> '{DELETE}' AND {_before(cut)}", cut) for cut in cuts if not cut.by_snapshot]
    names = (*_POSITION, ROW, TS, GTID)
    columns = {name: expr(_case([(when, _values(cut)[name]) for when, cut in removed], quoted(name))) for name in names}
    deleted = " OR ".join((f"{quoted(OP)} = '{DELETE}'", *(f"({when})" for when, _ in removed)))
    return rows.withColumns({**columns, IS_DELETED: expr(deleted)})


def mark_sql(table: str, cut: TimeCut) -> str:
    """Return the UPDATE that marks the lake's rows before a position, of keys without a change in the merge."""
    values = {**_values(cut), IS_DELETED: "true"}
    assignments = ", ".join(f"{quoted(name)} = {value}" for name, value in values.items())
    # A row that was marked by this cut has its position; without the mark, it was unmarked since.
    order = f"struct({', '.join(map(quoted, (*_POSITION, ROW)))})"
    before = f"{order} <= struct({cut.reset.epoch}, {cut.reset.file}, {cut.reset.offset}L, {STATEMENT_ROW}L)"
    return f"UPDATE {table} SET {assignments} WHERE {quoted(IS_DELETED)} IS NOT TRUE AND {_of_cut(before, cut)}"


def _before(cut: TimeCut) -> str:
    position = f"struct({', '.join(map(quoted, _POSITION))}) < struct({cut.reset.epoch}, {cut.reset.file}, {cut.reset.offset}L)"
    return _of_cut(position, cut)


def _of_cut(condition: str, cut: TimeCut) -> str:
    return f"{condition} AND {cut.whose}" if cut.whose else condition


def _values(cut: TimeCut) -> dict[str, str]:
    at = f"TIMESTAMP '{cut.reset.at:%Y-%m-%d %H:%M:%S.%f}+00:00'" if cut.reset.at is not None else quoted(TS)
    position = (str(cut.reset.epoch), str(cut.reset.file), f"{cut.reset.offset}L", f"{STATEMENT_ROW}L")
    return {**dict(zip((*_POSITION, ROW), position, strict=True)), TS: at, GTID: "CAST(NULL AS STRING)"}


def _case(whens: list[tuple[str, str]], otherwise: str) -> str:
    cases = " ".join(f"WHEN {when} THEN {value}" for when, value in whens)
    return f"CASE {cases} ELSE {otherwise} END" if cases else otherwise
