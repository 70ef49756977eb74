"""Stores the last comparison of each lake table: one small document, which the next one overwrites."""

from __future__ import annotations

from dataclasses import replace

from cdc_lib.model.verify import CleanCheck, Report, TableReport, Verified
from cdc_lib.ports import ObjectStore
from cdc_lib.store import documents, layout

KEPT_CHECKS = 100
"""Comparisons without drift that are kept of each table, so that older cuts and versions know theirs."""


def last_verified(store: ObjectStore, source: str) -> list[Verified]:
    """Return the last comparison of each table, by name."""
    return documents.below(Verified, store, layout.verified_prefix(source))


def keep(store: ObjectStore, report: Report) -> None:
    """Write the result of a comparison for each table that was not skipped.

    The comparisons without drift are copied from the previous document.
    """
    for one in report.tables:
        if one.skipped or one.position is None:
            continue
        key = layout.verified_key(report.source, one.table, one.lake_table)
        before = documents.find(Verified, store, key)
        store.put(key, documents.dump(_verified(report, one, before)))


def _verified(report: Report, one: TableReport, before: Verified | None) -> Verified:
    if one.position is None:
        raise AssertionError(one.table)
    found = Verified(
        source=report.source,
        table=one.table,
        lake_table=one.lake_table,
        epoch=report.epoch,
        position=one.position,
        gtid_set=report.gtid_set if one.position == report.position else "",
        at=report.ended_at,
        rows=one.source_rows,
        missing=one.missing,
        extra=one.extra,
        different=one.different,
        in_flight=one.in_flight,
        unexamined=one.unexamined,
        uncompared=tuple(column.column for column in one.uncompared),
    )
    checks = before.known_clean if before is not None else ()
    if found.clean:
        check = CleanCheck(found.epoch, found.position, found.gtid_set, found.at, found.in_flight)
        return replace(
            found,
            clean_position=found.position,
            clean_epoch=found.epoch,
            clean_at=found.at,
            clean_checks=(*checks, check)[-KEPT_CHECKS:],
        )
    if before is None:
        return found
    return replace(
        found,
        clean_position=before.clean_position,
        clean_epoch=before.clean_epoch,
        clean_at=before.clean_at,
        clean_checks=checks,
    )
