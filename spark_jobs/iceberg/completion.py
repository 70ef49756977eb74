"""Completes changes that lack cells, from earlier changes in the batches and the existing row in the lake.

The timeline of a key contains all of its changes and the lake's existing row, in the order of the order key. A missing cell
takes the last earlier value, back to the last complete row; nothing is taken from before a delete. An update that moved a row
to another key takes cells of the old key: from the delete next to it, which is completed first.

A cell is a struct during the completion, to distinguish a NULL value, a missing cell, and a value that the binlog does not
contain.

A snapshot's row is in the timeline at its low watermark, but may have been read later. For a row that kept its key this is
harmless: later changes are applied to it again. But if a row got its key in between, the row that was read under its old key
may be the next row with that key. So it takes cells from its old key only if the old row was inserted in the binlog, and else
stays incomplete. The same holds for a row that got its key before the end of a re-selection.
A row that was inserted without all columns while the snapshot was read stays incomplete too: its key range may have been read
before the insert.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession

from cdc_lib.apply.complete import incomplete
from cdc_lib.apply.rows import BEFORE_READ, READ_AHEAD, WHILE_READ
from cdc_lib.merge.collapse import DELETE, MISSING, RANK, READ, last_change_sql
from cdc_lib.merge.plan import rows_not_logged
from cdc_lib.model.lake_table import CHANGE_TYPES, ORDER, LakeColumn, LakeTable
from cdc_lib.model.lexer import quoted
from cdc_lib.model.manifest import ABSENT, CELL_HERE, CELL_UNKNOWN, OP
from cdc_lib.model.table_commit import Filled
from cdc_lib.model.table_mode import MODE_TYPES
from spark_jobs.changes.added_defaults import filled_value
from spark_jobs.iceberg.key_filter import key_range, same_key
from spark_jobs.iceberg.temp_views import view_of
from spark_jobs.sql import as_text, text_literal

WHOLE, MOVED, LEAVES, EXISTING = "cdc_whole", "cdc_moved", "cdc_leaves", "cdc_existing"
PHASE, TRACED, BORN = "cdc_phase", "cdc_traced", "cdc_born"
CELLS_VIEW, NEEDED_VIEW, TIMELINE_VIEW = "cdc_cells", "cdc_needed", "cdc_timeline"

_MAX_NAMED_KEYS = 5
"""Most keys that an error names."""

_DELETE_FIRST = f"CASE WHEN {quoted(OP)} = '{DELETE}' THEN 0 ELSE 1 END"


@dataclass(frozen=True, slots=True)
class Completion:
    """Completes the changes of one merge of one table.

    Args:
        session: a session whose temporary views may be replaced.
        table: the lake table.
        lake: its SQL name.
        source_table: ``database.table`` at the source, for messages.
        resets: conditions on ``t``, the lake's rows, which are removed in the same commit.
        added_defaults: defaults that the lake's rows get in the same commit.
        deleted: whether deleted rows are completed too, because they are kept.
    """

    session: SparkSession
    table: LakeTable
    lake: str
    source_table: str
    resets: tuple[str, ...] = ()
    added_defaults: Sequence[Filled] = ()
    deleted: bool = False

    def last(self, changes: DataFrame, *, snapshot_to_come: bool) -> DataFrame:
        """Return the last change of each key, completed, with the missing columns for :meth:`check`.

        Args:
            changes: changes with ``_absent``, which has a character for each of the lake table's columns.
            snapshot_to_come: turn incomplete rows into deletes, because a snapshot will bring them. Without it, only changes
                before the end of a snapshot's read to rows that it did not return are deletes: these rows were deleted,
                unless they were inserted during the read.

        Raises:
            ValuesNotLogged: a row lacks a part of its key.
        """
        self._timeline(changes)
        # A change that is merged again overwrites its own earlier row, which may have been overwritten in between.
        ranked = self._sql(last_change_sql(self._view(TIMELINE_VIEW), self.table.primary_key, quoted, EXISTING)).drop(
            RANK
        )
        return ranked.where(f"NOT {EXISTING}").selectExpr(*self._plain(snapshot_to_come=snapshot_to_come))

    def every(self, changes: DataFrame, *, snapshot_to_come: bool) -> DataFrame:
        """Return all changes, completed like the last ones of :meth:`last`."""
        self._timeline(changes)
        every = self._sql(f"SELECT * FROM {self._view(TIMELINE_VIEW)} WHERE NOT {EXISTING}")
        return every.selectExpr(*self._plain(snapshot_to_come=snapshot_to_come))

    def _timeline(self, changes: DataFrame) -> None:
        """Create the view of all changes and existing rows, completed."""
        self._cells(changes).createOrReplaceTempView(self._view(CELLS_VIEW))
        facts = f"count_if({MISSING}), count_if({MOVED} AND NOT {WHOLE})"
        [(keyless, moved)] = self._sql(f"SELECT {facts} FROM {self._view(CELLS_VIEW)}").collect()
        if keyless:
            what = "rows lack columns of the key, which took their defaults"
            raise rows_not_logged(self.source_table, what, rows=keyless)
        timeline = self._filled(self._with_existing())
        if moved:
            timeline = self._with_moves(timeline)
        timeline.createOrReplaceTempView(self._view(TIMELINE_VIEW))

    def check(self, last: DataFrame, why: str = "") -> None:
        """Check that all resulting rows are complete.

        Args:
            last: result of :meth:`last`, perhaps with re-selected rows.
            why: why rows could not be re-selected.

        Raises:
            MergeError: a row is incomplete.
        """
        types = {column.name: column.type for column in self.table.columns}
        key = [as_text(quoted(name), types[name]) for name in self.table.primary_key]
        missing = last.where(f"{MISSING} <> '' AND {quoted(OP)} <> '{DELETE}'")
        rows = missing.selectExpr(*key, MISSING).limit(_MAX_NAMED_KEYS).collect()
        if rows:
            keys = "; ".join(_key_text(self.table.primary_key, row) for row in rows)
            what = "rows lack columns that neither the batches nor the lake hold"
            raise incomplete(self.source_table, what, column=rows[0][MISSING], key=keys, reselect=why or None)

    @property
    def _own(self) -> list[LakeColumn]:
        """Columns whose cells may be absent."""
        fixed = {*self.table.primary_key, *CHANGE_TYPES, *MODE_TYPES}
        return [column for column in self.table.columns if column.name not in fixed]

    @property
    def _fixed(self) -> list[str]:
        """Quoted names of the other columns."""
        own = {column.name for column in self._own}
        return [quoted(OP), *(quoted(c.name) for c in self.table.columns if c.name not in own and c.name != OP)]

    def _cells(self, changes: DataFrame) -> DataFrame:
        """Wrap the cells, and find updates that moved a row to another key: a delete comes right before them."""
        marks = {column.name: f"substring({ABSENT}, {i}, 1)" for i, column in enumerate(self.table.columns, 1)}
        event = "PARTITION BY " + ", ".join(map(quoted, ORDER[:-1])) + f" ORDER BY {quoted(ORDER[-1])}, {_DELETE_FIRST}"
        op, row = quoted(OP), quoted(ORDER[-1])
        moved = f"{op} = 'u' AND lag({op}) OVER ({event}) = '{DELETE}' AND lag({row}) OVER ({event}) = {row} - 1"
        leaves = f"{op} = '{DELETE}' AND lead({op}) OVER ({event}) = 'u' AND lead({row}) OVER ({event}) = {row} + 1"
        key_here = " AND ".join(f"{marks[name]} = '{CELL_HERE}'" for name in self.table.primary_key)
        return changes.selectExpr(
            *self._fixed,
            *(_wrapped(column, marks[column.name]) for column in self._own),
            f"{ABSENT} IS NULL AS {WHOLE}",
            f"coalesce({moved}, false) AS {MOVED}",
            f"coalesce({leaves}, false) AS {LEAVES}",
            f"coalesce(NOT ({key_here}), false) AS {MISSING}",
            f"false AS {EXISTING}",
            f"coalesce(substring({ABSENT}, {len(self.table.columns) + 1}, 1), '') AS {PHASE}",
            f"{ABSENT} IS NULL AND {op} <> '{READ}' AS {TRACED}",
            f"{op} = 'c' AS {BORN}",
        )

    def _with_existing(self) -> DataFrame:
        """Add the lake's rows of incomplete keys to the timeline."""
        cells = self._sql(f"SELECT * FROM {self._view(CELLS_VIEW)}").drop(MISSING)
        if self.table.empty:
            return cells
        which = "true" if self.deleted else f"({quoted(OP)} <> '{DELETE}' OR {LEAVES})"
        needed = self._sql(f"SELECT * FROM {self._view(CELLS_VIEW)} WHERE NOT {WHOLE} AND {which}")
        needed.createOrReplaceTempView(self._view(NEEDED_VIEW))
        last = self._sql(last_change_sql(self._view(NEEDED_VIEW), self.table.primary_key, quoted)).drop(RANK)
        last.createOrReplaceTempView(self._view(NEEDED_VIEW))
        keys = key_range(self.session, self._view(NEEDED_VIEW), self.table)
        if keys.rows == 0:
            return cells
        fixed = [f"'{READ}' AS {name}" if name == quoted(OP) else f"t.{name}" for name in self._fixed]
        values = {c.name: filled_value(c, self.added_defaults, f"t.{quoted(c.name)}", "t") for c in self._own}
        own = [f"named_struct('v', {value}, 'known', true) AS {quoted(name)}" for name, value in values.items()]
        flags = [f"true AS {WHOLE}", f"false AS {MOVED}", f"false AS {LEAVES}", f"true AS {EXISTING}"]
        flags += [f"'' AS {PHASE}", f"false AS {TRACED}", f"false AS {BORN}"]
        existing = self._sql(
            f"SELECT {', '.join((*fixed, *own, *flags))} FROM {self.lake} AS t JOIN {keys.relation} AS s"
            f" ON {same_key(self.table.primary_key)}{keys.within('t')}"
            + "".join(f" AND NOT ({condition})" for condition in self.resets)
        )
        return cells.unionByName(existing)

    def _filled(self, timeline: DataFrame) -> DataFrame:
        """Fill each missing cell from earlier changes of the same key."""
        timeline.createOrReplaceTempView(self._view(TIMELINE_VIEW))
        keys = ", ".join(map(quoted, self.table.primary_key))
        # A change that is merged again takes missing cells from its own earlier row.
        order = ", ".join(map(quoted, ORDER)) + f", {_DELETE_FIRST}, NOT {EXISTING}"
        # A delete right after a delete is the same one, replayed in a later epoch.
        ended = f"lag({quoted(OP)}) OVER (PARTITION BY {keys} ORDER BY {order}) = '{DELETE}'"
        begins_again = f"coalesce({quoted(OP)} <> '{DELETE}' AND {ended}, false)"
        begins = f"SELECT *, CASE WHEN {WHOLE} OR {begins_again} THEN 1 ELSE 0 END AS cdc_begins FROM {self._view(TIMELINE_VIEW)}"
        until = "ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW"
        lifetime = f"sum(cdc_begins) OVER (PARTITION BY {keys} ORDER BY {order} {until}) AS cdc_lifetime"
        lifetimes = f"SELECT *, {lifetime} FROM ({begins}) AS b"
        over = f"OVER (PARTITION BY {keys}, cdc_lifetime ORDER BY {order} {until})"
        own = [f"last_value({quoted(c.name)}) IGNORE NULLS {over} AS {quoted(c.name)}" for c in self._own]
        since = [f"bool_or({name}) {over} AS {name}" for name in (TRACED, BORN)]
        kept = (*self._fixed, *own, WHOLE, MOVED, LEAVES, EXISTING, PHASE, *since)
        return self._sql(f"SELECT {', '.join(kept)} FROM ({lifetimes}) AS l")

    def _incomplete_moves(self, timeline: DataFrame) -> int:
        """Return the number of moved rows that lack cells."""
        lacks = " OR ".join(f"{quoted(column.name)} IS NULL" for column in self._own)
        return timeline.where(f"{MOVED} AND NOT {WHOLE} AND ({lacks})").count() if lacks else 0

    def _with_moves(self, timeline: DataFrame) -> DataFrame:
        """Fill moved rows from the deletes next to them, repeatedly for rows that moved several times."""
        before = -1
        while True:
            timeline = timeline.localCheckpoint()
            still = self._incomplete_moves(timeline)
            if still == 0:
                return timeline
            if still == before:
                return self._filled(self._with_unknown(timeline))
            before = still
            timeline.createOrReplaceTempView(self._view(TIMELINE_VIEW))
            pair = [*(f"d.{quoted(name)} = u.{quoted(name)}" for name in ORDER[:-1])]
            pair += [f"d.{quoted(ORDER[-1])} = u.{quoted(ORDER[-1])} - 1", f"(u.{PHASE} = '' OR d.{TRACED})"]
            own = [f"coalesce(u.{quoted(c.name)}, d.{quoted(c.name)}) AS {quoted(c.name)}" for c in self._own]
            kept = (*(f"u.{name}" for name in self._fixed), *own, f"u.{WHOLE}", MOVED, f"u.{LEAVES}", f"u.{EXISTING}")
            traced = f"u.{TRACED} OR coalesce(d.{TRACED}, false) AS {TRACED}"
            leaving = ", ".join(quoted(name) for name in (*ORDER, *(c.name for c in self._own)))
            filled = self._sql(
                f"SELECT {', '.join((*kept, f'u.{PHASE}', traced, f'u.{BORN}'))} FROM {self._view(TIMELINE_VIEW)} AS u LEFT JOIN"
                f" (SELECT {leaving}, {TRACED} FROM {self._view(TIMELINE_VIEW)} WHERE {LEAVES}) AS d ON {MOVED} AND {' AND '.join(pair)}"
            )
            timeline = self._filled(filled)

    def _with_unknown(self, timeline: DataFrame) -> DataFrame:
        """Mark missing cells of moved rows as unknown if the row that was read under their old key may be another one."""
        timeline.createOrReplaceTempView(self._view(TIMELINE_VIEW))
        own = [
            f"CASE WHEN {MOVED} AND {PHASE} IN ('{WHILE_READ}', '{READ_AHEAD}') THEN coalesce({quoted(c.name)}, {_unknown(c)})"
            f" ELSE {quoted(c.name)} END AS {quoted(c.name)}"
            for c in self._own
        ]
        kept = (*self._fixed, *own, WHOLE, MOVED, LEAVES, EXISTING, PHASE, TRACED, BORN)
        return self._sql(f"SELECT {', '.join(kept)} FROM {self._view(TIMELINE_VIEW)}")

    def _plain(self, *, snapshot_to_come: bool) -> Iterator[str]:
        """Unwrap the cells; MISSING names the missing ones of an existing row."""
        names = [f"CASE WHEN {_is_missing(c)} THEN {text_literal(c.name)} END" for c in self._own]
        missing = f"concat_ws(', ', {', '.join(names)})" if names else "''"
        missing = f"CASE WHEN {quoted(OP)} = '{DELETE}' THEN '' ELSE {missing} END"
        known = " AND ".join(f"coalesce({quoted(c.name)}.known, true)" for c in self._own) or "true"
        deleted = f"{PHASE} = '{BEFORE_READ}' OR ({PHASE} = '{WHILE_READ}' AND {known} AND NOT {BORN})"
        deleted_since = "true" if snapshot_to_come else deleted
        for name in self._fixed:
            if name == quoted(OP):
                yield f"CASE WHEN {missing} <> '' AND ({deleted_since}) THEN '{DELETE}' ELSE {name} END AS {name}"
            else:
                yield name
        yield from (f"{quoted(column.name)}.v AS {quoted(column.name)}" for column in self._own)
        yield f"{missing} AS {MISSING}"

    def _view(self, name: str) -> str:
        return view_of(self.session, name)

    def _sql(self, statement: str) -> DataFrame:
        return self.session.sql(statement)


def _wrapped(column: LakeColumn, mark: str) -> str:
    name = quoted(column.name)
    here = f"named_struct('v', {name}, 'known', true)"
    return (
        f"CASE WHEN {ABSENT} IS NULL OR {mark} = '{CELL_HERE}' THEN {here}"
        f" WHEN {mark} = '{CELL_UNKNOWN}' THEN {_unknown(column)} END AS {name}"
    )


def _unknown(column: LakeColumn) -> str:
    return f"named_struct('v', CAST(NULL AS {column.type}), 'known', false)"


def _is_missing(column: LakeColumn) -> str:
    return f"{quoted(column.name)} IS NULL OR NOT {quoted(column.name)}.known"


def _key_text(names: Sequence[str], row: Sequence[object]) -> str:
    return ", ".join(f"{name}={value}" for name, value in zip(names, row, strict=False))


def refuse_absent(changes: DataFrame, table: LakeTable, source_table: str) -> None:
    """Refuse incomplete changes for a table that keeps every change, which no existing row can complete.

    Raises:
        ValuesNotLogged: a change of a table without a key is incomplete.
        MergeError: a change of another table is incomplete: the source file wants all of them, which no snapshot has.
    """
    if ABSENT not in changes.columns:
        return
    count = changes.where(f"{ABSENT} IS NOT NULL").count()
    if count:
        what = "every change of the table is kept as it is, and no existing row has the rest"
        raise (incomplete if table.primary_key else rows_not_logged)(source_table, what, rows=count)
