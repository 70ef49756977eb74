"""Row versions (SCD2) in an Iceberg table: reads the versions of a merge's keys, splices in the changes and writes new versions.

Current versions are in a separate partition, so a merge reads no more than that of a mirror. Closed versions are read if they
end at or after the first change's time (clocks may go back, and epochs may replay changes) or, for late changes, at or after
the first one's position. Changes that are merged again (:mod:`cdc_lib.merge.scd2.rewrite`) replace those of the table.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession

from cdc_lib.merge.collapse import RANK, last_change_sql
from cdc_lib.merge.scd2.rewrite import RewriteRange, after, same_sql, without_sql
from cdc_lib.merge.scd2.timeline import TimeCut, events_sql
from cdc_lib.merge.scd2.versions import SAME, versions_sql
from cdc_lib.model.lake_table import MODE_COLUMNS, ORDER, LakeTable
from cdc_lib.model.lexer import quoted
from cdc_lib.model.manifest import EPOCH, GTID, OP
from cdc_lib.model.table_commit import Superseded, TableCommit
from cdc_lib.model.table_mode import IS_CURRENT, STATEMENT_ROW, TO_ORDER, VALID_FROM, VALID_TO, TableReset
from spark_jobs.iceberg.key_filter import BROADCAST_ROWS, KeyRange, key_range, same_key
from spark_jobs.iceberg.temp_views import view_of
from spark_jobs.sql import belongs

CHANGES_VIEW, KEYS_VIEW, EXISTING_VIEW, REPLACED_VIEW = "cdc_changes", "cdc_last", "cdc_existing_versions", "cdc_gone"
MADE_VIEW = "cdc_made_versions"


@dataclass(frozen=True, slots=True)
class Spliced:
    """Result of splicing changes into the versions of their keys.

    Args:
        changes: number of changes.
        new: versions to write, with the columns of the lake table.
        rows: number of versions to write.
        replaced: number of versions to delete.
        deletes: the MERGE that deletes replaced versions, without ``MERGE INTO`` and the table's name; empty for none.
    """

    changes: int
    new: DataFrame
    rows: int
    replaced: int
    deletes: str


@contextmanager
def spliced(
    session: SparkSession,
    table: LakeTable,
    lake: str,
    changes: DataFrame,
    commit: TableCommit,
    *,
    guard: bool,
) -> Iterator[Spliced]:
    """Splice changes into the versions of a table; its cached frames are released after the block.

    Args:
        session: a session whose temporary views may be replaced.
        table: the lake table.
        lake: its SQL name.
        changes: all changes, complete.
        commit: with positions at which rows end without a change, and ranges that are rewritten.
        guard: whether the table may hold changes that are newer than some of these.
    """
    kept: list[DataFrame] = []

    def keep(frame: DataFrame) -> DataFrame:
        kept.append(frame.persist())
        return frame

    cuts, again = cuts_of(commit.supersedes), _ranges(commit.supersedes)
    try:
        fresh = keep(changes.selectExpr(*map(quoted, (*_row(table), OP, *ORDER, GTID, VALID_FROM))))
        fresh.createOrReplaceTempView(view_of(session, CHANGES_VIEW))
        session.sql(last_change_sql(view_of(session, CHANGES_VIEW), table.primary_key, quoted)).drop(
            RANK
        ).createOrReplaceTempView(view_of(session, KEYS_VIEW))
        keys = key_range(session, view_of(session, KEYS_VIEW), table)
        first_change = _FirstChange.of(fresh, again)
        existing = keep(session.sql(_existing_sql(table, lake, keys, first_change, guard=guard)))
        existing.createOrReplaceTempView(view_of(session, EXISTING_VIEW))
        own = [name for name in _row(table) if name not in table.primary_key]
        if again:
            found = keep(_rewritten(session, table, own, cuts, again, commit.unfinished_epochs))
        else:
            events = events_sql(
                view_of(session, CHANGES_VIEW), view_of(session, EXISTING_VIEW), cuts, table.primary_key, own, quoted
            )
            replayed, unfinished = first_change.has_replayed_changes(existing), commit.unfinished_epochs
            sql = versions_sql(
                f"({events}) AS u", table.primary_key, own, quoted, replayed=replayed, unfinished=unfinished
            )
            found = keep(session.sql(sql))
        new = found.where(f"NOT {SAME}")
        replaced, deletes = _deletes(table, keys, existing, found, again=bool(again))
        yield Spliced(first_change.changes, new, new.count(), replaced, deletes)
    finally:
        for frame in kept:
            frame.unpersist()


def _rewritten(
    session: SparkSession,
    table: LakeTable,
    own: Sequence[str],
    cuts: Sequence[TimeCut],
    again: Sequence[RewriteRange],
    unfinished: Sequence[int],
) -> DataFrame:
    """Return the versions of the changes' keys, with the rewritten ranges spliced epoch by epoch."""
    key = table.primary_key
    without = without_sql(view_of(session, EXISTING_VIEW), again, cuts, [*key, *own], quoted)
    session.sql(without).createOrReplaceTempView(view_of(session, MADE_VIEW))
    epochs = {
        row[0]
        for row in session.sql(f"SELECT DISTINCT {quoted(EPOCH)} FROM {view_of(session, CHANGES_VIEW)}").collect()
    }
    for epoch in sorted(epochs | {cut.reset.epoch for cut in cuts}):
        changes = f"(SELECT * FROM {view_of(session, CHANGES_VIEW)} WHERE {quoted(EPOCH)} = {epoch}) AS c"
        here = [cut for cut in cuts if cut.reset.epoch == epoch]
        events = events_sql(
            changes, view_of(session, MADE_VIEW), here, key, own, quoted, keys_of=view_of(session, CHANGES_VIEW)
        )
        sql = versions_sql(f"({events}) AS u", key, own, quoted, replayed=epoch > 1, unfinished=unfinished)
        made = session.sql(sql)
        # Without its plan: each epoch uses the previous one twice, so the plan would double with each.
        made.localCheckpoint().createOrReplaceTempView(view_of(session, MADE_VIEW))
    return session.sql(same_sql(view_of(session, MADE_VIEW), view_of(session, EXISTING_VIEW), key, own, quoted))


def ended_before(supersedes: Iterable[Superseded]) -> str:
    """Return the condition on ``t`` of versions that none of the changes can use."""
    ended = f"NOT t.{quoted(IS_CURRENT)}"
    since = min((one.since for one in _ranges(supersedes)), default=None)
    return ended if since is None else f"{ended} AND NOT {after(_to_order('t'), since)}"


def cuts_of(supersedes: Iterable[Superseded]) -> list[TimeCut]:
    """Return the positions at which rows end, in order."""
    cuts = [
        TimeCut(TableReset(*rule.before, rule.at), rule.by_snapshot, _of_table(rule))
        for rule in supersedes
        if rule.since is None
    ]
    return sorted(cuts, key=lambda cut: cut.reset[:3])


def _ranges(supersedes: Iterable[Superseded]) -> list[RewriteRange]:
    return [RewriteRange(rule.since, rule.before, _of_table(rule)) for rule in supersedes if rule.since is not None]


def _to_order(relation: str) -> list[str]:
    return [f"{relation}.{quoted(name)}" for name in TO_ORDER[:-1]]


def cut_sql(table: str, cut: TimeCut) -> str:
    """Return the UPDATE that closes the current versions before a position, of keys without a change in the merge."""
    order_key = (cut.reset.epoch, cut.reset.file, cut.reset.offset, STATEMENT_ROW)
    values = [f"{quoted(name)} = {value}" for name, value in zip(TO_ORDER, order_key, strict=True)]
    at = f"TIMESTAMP '{cut.reset.at:%Y-%m-%d %H:%M:%S.%f}+00:00'" if cut.reset.at is not None else "NULL"
    values += [f"{quoted(VALID_TO)} = greatest({quoted(VALID_FROM)}, {at})", f"{quoted(IS_CURRENT)} = false"]
    order = ", ".join(map(quoted, ORDER[:-1]))
    where = [
        quoted(IS_CURRENT),
        f"struct({order}) < struct({order_key[0]}, {order_key[1]}, {order_key[2]}L)",
        *filter(None, [cut.whose]),
    ]
    return f"UPDATE {table} SET {', '.join(values)} WHERE {' AND '.join(where)}"


def _of_table(rule: Superseded) -> str:
    return " AND ".join(belongs(rule.columns))


def _row(table: LakeTable) -> list[str]:
    """Return the names of the source's columns; computed ones follow from them when a version is written."""
    others = {*MODE_COLUMNS["scd2"], *(name.lower() for name in table.computed)}
    return [column.name for column in table.columns if column.name.lower() not in others]


@dataclass(frozen=True, slots=True)
class _FirstChange:
    """Position and time of the first change, the last epoch, and the number of changes."""

    order_key: tuple[int, ...]
    micros: int | None
    epoch: int
    changes: int

    @classmethod
    def of(cls, changes: DataFrame, again: Iterable[RewriteRange]) -> _FirstChange:
        first = f"min(struct({', '.join(map(quoted, ORDER))})) AS order_key"
        time = f"unix_micros(min({quoted(VALID_FROM)})) AS micros"
        [row] = changes.selectExpr(first, time, f"max({quoted(EPOCH)})", "count(*)").collect()
        order_key = min([tuple(row[0] or (0, 0, 0, 0)), *((*one.since, 0) for one in again)])
        return cls(order_key, row[1], row[2] or 0, row[3])

    def since(self, name: str) -> str:
        """Return the condition that a time is not before the first change."""
        return f"{name} >= timestamp_micros({self.micros}L)" if self.micros is not None else "true"

    def has_replayed_changes(self, existing: DataFrame) -> bool:
        """Whether versions of an earlier epoch are late enough that the changes may be replayed ones."""
        late = f"{self.since(quoted(VALID_FROM))} OR {self.since(quoted(VALID_TO))}"
        return self.epoch > 1 and not existing.where(f"{quoted(EPOCH)} < {self.epoch} AND ({late})").isEmpty()


def _existing_sql(table: LakeTable, lake: str, keys: KeyRange, first_change: _FirstChange, *, guard: bool) -> str:
    names = ", ".join(f"t.{quoted(column.name)}" for column in table.columns)
    if table.empty:  # also one that is about to have these columns
        cells = ", ".join(f"CAST(NULL AS {column.type}) AS {quoted(column.name)}" for column in table.columns)
        return f"SELECT {cells} WHERE false"
    if keys.rows == 0:
        return f"SELECT {names} FROM {lake} AS t WHERE false"
    conditions = [f"t.{quoted(IS_CURRENT)}", first_change.since(f"t.{quoted(VALID_TO)}")]
    conditions += [after([f"t.{quoted(name)}" for name in TO_ORDER], first_change.order_key)] if guard else []
    return (
        f"SELECT {names} FROM {lake} AS t JOIN {keys.relation} AS s"
        f" ON {same_key(table.primary_key)}{keys.within('t')} WHERE {' OR '.join(conditions)}"
    )


def _deletes(
    table: LakeTable, keys: KeyRange, existing: DataFrame, found: DataFrame, *, again: bool
) -> tuple[int, str]:
    """Return the number of replaced versions, and the MERGE that deletes them."""
    session, order_key = found.sparkSession, [*table.primary_key, *ORDER]
    kept = found.where(SAME).select(*map(quoted, order_key))
    replaced = existing.select(*map(quoted, (*order_key, IS_CURRENT))).join(kept, order_key, "left_anti")
    # Spark plans no copy-on-write MERGE whose source reads the table that it writes.
    replaced = replaced.localCheckpoint() if table.copies_on_write else replaced
    (replaced.dropDuplicates(order_key) if again else replaced).createOrReplaceTempView(view_of(session, REPLACED_VIEW))
    rows, current = replaced.selectExpr("count(*)", f"count_if({quoted(IS_CURRENT)})").collect()[0]
    if not rows:
        return 0, ""
    # So the partition of closed versions is not read.
    only = f" AND t.{quoted(IS_CURRENT)}" if rows == current else ""
    hint = f"/*+ BROADCAST({view_of(session, REPLACED_VIEW)}) */ " if rows <= BROADCAST_ROWS else ""
    return rows, (
        f" AS t USING (SELECT {hint}* FROM {view_of(session, REPLACED_VIEW)}) AS s"
        f" ON {same_key(order_key)}{keys.within('t')}{only} WHEN MATCHED THEN DELETE"
    )
