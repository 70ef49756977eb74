"""The comparison after a merge, as the tasks and commands that merge call it: nothing that it meets makes them fail."""

from __future__ import annotations

import importlib
import importlib.util
import logging
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from cdc_lib.config import StoreKeys
from cdc_lib.errors import CdcError, ConfigError
from cdc_lib.merge.planner import plan_of
from cdc_lib.model.changed_rows import AfterMerge, ChangedRows
from cdc_lib.model.cursor import LAKE
from cdc_lib.model.pace import counted
from cdc_lib.source import Source
from cdc_lib.store.after_merge import keep_after_merge, last_after_merge

log = logging.getLogger(__name__)

SHOWN_ROWS = 10
"""Wrong rows of one table that are named; the document has more."""


def check_changed_rows(source: Source, keys: StoreKeys | None = None) -> AfterMerge | None:
    """Compare the rows that the merge in flight changed with the source, as ``verify.after_merge`` says.

    Call it after the merge and before its ack. The merge is complete by then: an error here is kept in the result as the reason why
    nothing was compared.

    Returns:
        What was found; None if the source file turns it off, or nothing was merged.
    """
    if not source.config.verify.after_merge:
        return None
    try:
        found: AfterMerge | None = _comparison()(source, keys)
    except CdcError as error:
        return _not_checked(source, error.message)
    except Exception:  # a defect here must not undo a merge that is published
        log.warning("the rows that the merge changed could not be compared", exc_info=True)
        return _not_checked(source, "an unexpected error, which the log shows")
    return found


def _comparison() -> Any:
    """Return :func:`cdc_lib.verify.changed.merged_tables.compare_changed_rows`.

    Raises:
        ConfigError: pyiceberg is not installed.
    """
    if importlib.util.find_spec("pyiceberg") is None:
        raise ConfigError(
            "comparing rows after a merge needs pyiceberg, which is not installed",
            hint='pip install "lakecdc[read]", or verify.after_merge: 0',
        )
    return importlib.import_module("cdc_lib.verify.changed.merged_tables").compare_changed_rows


def _not_checked(source: Source, why: str) -> AfterMerge | None:
    try:
        lake = source.cursor(LAKE)
        if lake is None or not lake.is_merging:
            return None
        before = last_after_merge(source.store, source.name)
        tables = before.tables if before is not None else ()
        after = AfterMerge(source.name, plan_of(lake).merge_id, datetime.now(UTC), why, tables)
        keep_after_merge(source.store, after)
    except CdcError as error:
        log.warning("that rows were not compared (%s) could not be stored: %s", why, error)
        return None
    return after


def not_compared(why: str) -> str:
    """Return the line that says why nothing was compared."""
    return f"the rows that this merge changed were not compared with the source: {why}"


def said(after: AfterMerge | None) -> Iterator[tuple[bool, str]]:
    """Yield what a comparison found, in lines, each with whether it is a warning."""
    if after is None:
        return
    if after.not_checked:
        yield True, not_compared(after.not_checked)
        return
    for one in after.tables:
        if one.merge_id == after.merge_id:
            yield from _said(after.source, one)


def _all(rows: int) -> str:
    return "the one row" if rows == 1 else f"all {counted(rows, 'row')}"


def _said(source: str, one: ChangedRows) -> Iterator[tuple[bool, str]]:
    if one.skipped:
        yield False, f"{one.table}: changed rows were not compared: {one.skipped}"
        return
    sample = f"{one.compared:,} at random of the rows" if one.sampled else _all(one.compared)
    flight = f"{one.in_flight} changed again at the source, compared after a later merge" if one.in_flight else ""
    equal = f"{one.equal} equal" if one.equal or not flight else ""
    found = ", ".join(filter(None, (equal, flight)))
    yield False, f"{one.table}: compared {sample} that this merge changed with the source: {found}"
    if not one.wrong:
        return
    for row in one.differences[-one.wrong :][:SHOWN_ROWS]:
        yield True, f"{one.table}: row {row.text} in {one.lake_table}; {row.batch} changed it last"
    hint = f"cdc verify {source} {one.table.in_shell} --repair"
    yield True, f"{one.table}: merges brought {counted(one.wrong, 'wrong row')}. {hint}"
