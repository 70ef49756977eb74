"""What the comparisons after merges say of a source: pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from cdc_lib.model.changed_rows import AfterMerge, ChangedRows, unresolved
from cdc_lib.model.finding import Finding
from cdc_lib.model.merge_plan import Cut
from cdc_lib.model.verify import Verified


def equal_tables(after: AfterMerge | None, verified: Sequence[Verified]) -> list[ChangedRows]:
    """Return the tables of which the rows that were compared last equal the source, and that have no wrong row from before.

    Args:
        after: what is known of changed rows; None before the first comparison.
        verified: the last comparison of each whole table.
    """
    wrong = {id(one) for one, _ in unresolved(after, verified)}
    tables = after.tables if after is not None else ()
    return [one for one in tables if one.equal_at is not None and id(one) not in wrong]


def changed_row_findings(
    source: str, after: AfterMerge | None, verified: Sequence[Verified], cut: Cut | None
) -> Iterator[Finding]:
    """Yield a finding for each table with wrong rows that merges changed, and one if the last merge's rows were not compared.

    Args:
        source: its name.
        after: what is known of changed rows; None before the first comparison.
        verified: the last comparison of each whole table: one without drift settles what was wrong before.
        cut: the last one.
    """
    for one, rows in unresolved(after, verified):
        last = rows[-1]
        yield Finding(
            "error",
            f"{one.table} has wrong rows that merges changed ({len(rows)}): {last.text}, found at {last.position}, "
            f"{last.at:%Y-%m-%d %H:%M:%S} UTC; {last.batch} changed it last",
            f"cdc verify {source} {one.table.in_shell} --repair",
        )
    if after is not None and after.not_checked and cut is not None and cut.merge_id == after.merge_id:
        yield Finding(
            "warning",
            f"the rows that the last merge changed were not compared with the source: {after.not_checked}",
            "The next merge tries again. verify.after_merge: 0 in the source file turns it off.",
        )
