"""What comparisons with the source say of the tables of a cut, and of one version of a row; pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from cdc_lib.model.changed_rows import AfterMerge, ChangedRows
from cdc_lib.model.merge_plan import Cut
from cdc_lib.model.pace import counted
from cdc_lib.model.position import Point
from cdc_lib.model.table_name import TableName
from cdc_lib.model.verify import CleanCheck, Verified


@dataclass(frozen=True, slots=True)
class CheckedRows:
    """The comparison of the rows that the merge of a cut changed.

    Args:
        at: wall clock (UTC).
        changes: changes of the table in the merge's batches.
        compared: number of rows that were compared.
        sampled: whether these are a random sample of the changed rows.
        in_flight: of the compared rows, those that differed because of a change that may not be merged yet.
        wrong: of the compared rows, those that were wrong.
    """

    at: datetime
    changes: int
    compared: int
    sampled: bool
    in_flight: int
    wrong: int


@dataclass(frozen=True, slots=True)
class TableVerification:
    """What is known of one table of a cut.

    Args:
        table: ``database.table`` at the source.
        lake_table: full name in the catalog.
        equal: the last comparison of the whole table without drift at the cut's position or before it; without one, the first
            after it. None without either.
        where: the position of ``equal``, seen from the cut: ``at`` it, ``before`` or ``after``. Only ``at`` says that the table
            equals the source in this cut. Empty without ``equal``.
        changed_rows: the comparison of the rows that this cut's merge changed; None if none was stored.
        wrong: rows that the last comparison of the whole table found wrong, or that comparisons after merges found wrong since.
    """

    table: TableName
    lake_table: str
    equal: CleanCheck | None = None
    where: str = ""
    changed_rows: CheckedRows | None = None
    wrong: int = 0

    @property
    def text(self) -> str:
        """One line about the whole table, and about wrong rows."""
        said = "never found equal"
        if self.equal is not None:
            gtids = f" (GTIDs {self.equal.gtid_set})" if self.equal.gtid_set else ""
            later = ", after this cut" if self.where == "after" else ""
            flight = f", {counted(self.equal.in_flight, 'row')} in flight" if self.equal.in_flight else ""
            said = f"equal at {self.equal.position}{gtids}, checked at {self.equal.at:%Y-%m-%d %H:%M:%S} UTC{flight}{later}"
        return f"{said}; {counted(self.wrong, 'row')} wrong since" if self.wrong else said


def verification_of(
    cut: Cut, verified: Iterable[Verified], after: AfterMerge | None
) -> dict[TableName, tuple[TableVerification, ...]]:
    """Return what is known of each source table of a cut; of several lake tables of one source table, each.

    Args:
        cut: the cut.
        verified: the last comparison of each whole table.
        after: what is known of changed rows; None before the first comparison.
    """
    whole = {(one.table, one.lake_table): one for one in verified}
    changed = after.by_table if after is not None else {}
    found: dict[TableName, tuple[TableVerification, ...]] = {}
    for table in cut.tables:
        pair = (table.table, table.lake_table)
        # A table in quarantine is as of an earlier position than its cut.
        at = Point.at(cut.epoch, table.as_of or cut.position)
        one = _verification(pair, cut.merge_id, at, whole.get(pair), changed.get(pair))
        found[table.table] = (*found.get(table.table, ()), one)
    return found


def _verification(
    pair: tuple[TableName, str], merge_id: str, at: Point, whole: Verified | None, changed: ChangedRows | None
) -> TableVerification:
    equal = _nearest(whole.known_clean if whole is not None else (), at)
    where = ""
    if equal is not None:
        where = "at" if equal.point == at else "before" if equal.point < at else "after"
    wrong = whole.missing + whole.extra + whole.different if whole is not None else 0
    if changed is not None:
        wrong += len([one for one in changed.unresolved(whole) if whole is None or one.at > whole.at])
    return TableVerification(*pair, equal, where, _checked(merge_id, changed), wrong)


def _checked(merge_id: str, changed: ChangedRows | None) -> CheckedRows | None:
    if changed is None or changed.merge_id != merge_id or changed.skipped:
        return None
    return CheckedRows(changed.at, changed.changes, changed.compared, changed.sampled, changed.in_flight, changed.wrong)


def _nearest(checks: Sequence[CleanCheck], at: Point) -> CleanCheck | None:
    """Return the last check at a point or before it, else the first one after it."""
    until = [one for one in checks if one.point <= at]
    later = [one for one in checks if one.point > at]
    if until:
        return max(until, key=lambda one: (one.point, one.at))
    return min(later, key=lambda one: (one.point, one.at), default=None)


def said_of_cut(tables: Iterable[TableVerification]) -> str:
    """Return how many tables of a cut equal the source at it, before it and after it, as one text."""
    known = list(tables)
    counts = [(sum(one.where == where for one in known), where) for where in ("at", "before", "after")]
    parts = [f"{count} {where}" for count, where in counts if count]
    wrong = sum(bool(one.wrong) for one in known)
    return ", ".join([*parts, *([f"{wrong} with wrong rows"] if wrong else [])]) or "none"


@dataclass(frozen=True, slots=True)
class VersionCheck:
    """A comparison that covered one version of a row.

    Args:
        by: ``verify``: the whole table was found equal while this was the row's version. ``after_merge``: all rows that the
            merge of this version changed were found equal. ``sample``: a random sample of them was, perhaps without this row.
            ``wrong``: the row was found wrong.
        position: of the lake or of the cut that was compared.
        at: wall clock (UTC).
        note: what limits or tells it; may be empty.
    """

    by: str
    position: str
    at: datetime
    note: str = ""


def checks_of_version(
    point: Point,
    next_point: Point | None,
    merge_id: str,
    key: Sequence[str],
    verified: Verified | None,
    changed: ChangedRows | None,
) -> tuple[VersionCheck, ...]:
    """Return the comparisons that covered a version of a row.

    Args:
        point: where its event starts.
        next_point: where the event of the next version starts; None if it is the last one.
        merge_id: the first cut that has it; empty if none is stored.
        key: texts of the key, in its order.
        verified: the last comparison of the whole table; None before the first.
        changed: the last comparison of the rows that a merge changed; None before the first.
    """
    found = [
        VersionCheck(
            "verify", str(one.position), one.at, f"{counted(one.in_flight, 'row')} in flight" if one.in_flight else ""
        )
        for one in (verified.known_clean if verified is not None else ())
        if point < one.point and (next_point is None or one.point <= next_point)
    ]
    if changed is None:
        return tuple(found)
    if changed.merge_id == merge_id and not changed.skipped and not changed.wrong and changed.compared:
        limits = [f"{counted(changed.compared, 'row')} compared"] if changed.sampled else []
        limits += [f"{counted(changed.in_flight, 'row')} in flight"] if changed.in_flight else []
        by = "sample" if changed.sampled else "after_merge"
        found.append(VersionCheck(by, str(changed.position), changed.at, ", ".join(limits)))
    for row in changed.differences:
        at = Point.at(row.epoch, row.position)
        if list(row.key.values()) == list(key) and point < at and (next_point is None or at <= next_point):
            columns = f": {', '.join(row.columns)}" if row.columns else ""
            found.append(VersionCheck("wrong", str(row.position), row.at, f"{row.kind}{columns}"))
    return tuple(found)
