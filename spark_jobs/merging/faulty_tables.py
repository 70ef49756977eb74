"""What a merge does about lake tables that it refuses: it reports them, stores them, and excludes them where the source file says so."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime

from cdc_lib.config.source import SourceConfig
from cdc_lib.errors import CdcError, CursorMoved, ForeignChange, MergeConflict
from cdc_lib.model.cursor import DRAIN, LAKE, Cursor
from cdc_lib.model.failed_table import Stopped, StoppedTable
from cdc_lib.model.merge_plan import MergePlan
from cdc_lib.model.quarantine import Fault
from cdc_lib.model.table_name import TableName
from cdc_lib.ports import ObjectStore
from cdc_lib.quarantine.records import FaultyTable
from cdc_lib.quarantine.resnapshot import ResnapshotRequest
from cdc_lib.quarantine.tables import Quarantine
from cdc_lib.store.cursors import ObjectCursorStore, required_cursor
from cdc_lib.store.failed_tables import keep_stopped
from cdc_lib.store.foreign import note_commits
from spark_jobs.merging.foreign_changes import ForeignChangeDetector
from spark_jobs.merging.reselect import Say

Refused = Mapping[str, tuple[tuple[TableName, ...], ForeignChange]]
"""By lake table, the affected source tables and the error."""

ATTEMPTS = 3
"""Attempts to change the drain cursor when another task moves it."""


def report_foreign_commits(store: ObjectStore, watch: ForeignChangeDetector, say: Say) -> None:
    """Report the foreign commits that were found, and store them."""
    for one in watch.noticed:
        say(f"{one}. cdc verify {watch.source} finds rows that differ from the source.")
    note_commits(store, watch.source, watch.noticed)


def plan_again_without(
    config: SourceConfig, store: ObjectStore, watch: ForeignChangeDetector, error: CdcError, stopped: set[str]
) -> None:
    """Exclude tables that others changed, if the source file says so.

    Raises:
        MergeConflict: the merge can be planned again without them.
    """
    if not stopped <= set(watch.refused):
        return  # other tables failed for other reasons
    if done := exclude_faulty(config, store, watch.refused):
        raise MergeConflict(
            f"tables that somebody else changed are {done}: {error.message}",
            hint="The next merge is planned without them.",
            source=config.source,
            tables=", ".join(table for tables, _ in watch.refused.values() for table in tables),
        ) from error


def keep_faults(store: ObjectStore, plan: MergePlan, watch: ForeignChangeDetector, say: Say) -> None:
    """Store and report the faults of tables that the merge did not change."""
    report_foreign_commits(store, watch, lambda _: None)
    for lake_table, (_, error) in watch.refused.items():
        error.fill(source=watch.source, lake_table=lake_table)
    found = [StoppedTable.by(error, tables, lake_table) for lake_table, (tables, error) in watch.refused.items()]
    for one in found:
        say(f"{', '.join(one.tables)}: {one.what}. {one.hint}")
    if found:
        keep_stopped(store, Stopped(watch.source, plan.merge_id, datetime.now(UTC), tuple(found)))


def exclude_faulty(config: SourceConfig, store: ObjectStore, refused: Refused) -> str:
    """Exclude the tables at fault from the merge if the source file says so; returns what was done with them.

    With ``lake.foreign_changes: snapshot`` they get new snapshots; else with ``on_error: quarantine`` they are quarantined until
    they are released. Both are recorded in the drain cursor, so the merge is planned again without them.

    Returns:
        A description for messages; empty if nothing was done.

    Raises:
        CursorMoved: other tasks moved the cursor in each attempt.
    """
    again = config.lake.foreign_changes == "snapshot"
    if not again and config.on_error != "quarantine":
        return ""
    cursors = ObjectCursorStore(store)
    record = _resnapshotted if again else _excluded
    for attempt in range(ATTEMPTS):
        drain, lake = required_cursor(cursors, config.source, DRAIN), required_cursor(cursors, config.source, LAKE)
        moved = record(Quarantine(config, store), drain, lake, refused)
        if moved == drain:
            return ""
        try:
            cursors.swap(drain, moved)
            break
        except CursorMoved:
            if attempt == ATTEMPTS - 1:
                raise
    return "read again" if again else "quarantined"


def _resnapshotted(quarantine: Quarantine, drain: Cursor, lake: Cursor, refused: Refused) -> Cursor:
    for tables, error in refused.values():
        request = ResnapshotRequest(error.message, datetime.now(UTC), "merge")
        drain = quarantine.with_new_snapshots(drain, lake, tables, request)
    return drain


def _excluded(quarantine: Quarantine, drain: Cursor, lake: Cursor, refused: Refused) -> Cursor:
    for tables, error in refused.values():
        fault = Fault(lake.position, error.code, error.message, error.hint)
        for table in tables:
            faulty = FaultyTable(table, fault, None, None)
            drain = quarantine.excluded(drain, lake, faulty, at=datetime.now(UTC), by="merge")
    return drain
