"""For which tables earlier versions of rows are read from batches, and whether a time is within their reach; pure."""

from __future__ import annotations

from datetime import datetime

from cdc_lib.errors import BatchesMissing, ConfigError
from cdc_lib.lake.routing import RoutedTable
from cdc_lib.model.lake_table import Marker
from cdc_lib.model.table_mode import ONE_VERSION_MODES
from cdc_lib.read.archive.reach import Floor

_KEEP = "store.keep_batches_for in the source file says how long batches are kept."


def refuse_table(routed: RoutedTable, mode: str, marker: Marker, source_uuid: str, *, computes: bool = False) -> None:
    """Refuse a table whose rows in the lake do not follow from its batches alone.

    Args:
        routed: the source table and where its rows go.
        mode: of the lake table.
        marker: of the source table in the lake table.
        source_uuid: id of the source.
        computes: whether the lake table has computed columns.

    Raises:
        ConfigError: names the reason, and what to do instead.
    """
    if mode not in ONE_VERSION_MODES:
        why = f"it is in {mode} mode, and archived versions are those of mirror and soft_delete tables"
        raise _refused(why, "Use versions.", routed)
    if routed.target.routed:
        raise _refused("a route makes it, perhaps from several tables", "Read its changes with cdc consumers.", routed)
    if routed.target.where:
        raise _refused(
            "the source file filters its rows",
            "Without filters: the batches also have the changes of rows that the lake leaves out.",
            routed,
        )
    if computes:
        raise _refused(
            "it has computed columns, which only Spark computes",
            "Use the table's snapshots, or a source without computed columns.",
            routed,
        )
    if marker.is_blank:
        raise _refused("no merge of this source wrote it", "Read it again after the next merge: cdc run.", routed)
    if marker.source_uuid and source_uuid and marker.source_uuid != source_uuid:
        raise _refused("it is of another source of the same name", "Open the lake with the source's own store.", routed)


def _refused(why: str, hint: str, routed: RoutedTable) -> ConfigError:
    return ConfigError(f"earlier versions of the table's rows are not read: {why}", hint=hint, table=routed.table)


def refuse_without_zone(*times: datetime | None) -> None:
    """Refuse a time that may be any moment of a day.

    Raises:
        ConfigError: a time has no time zone.
    """
    if any(one is not None and one.tzinfo is None for one in times):
        raise ConfigError("the time of a version needs a time zone", hint="For example 2026-01-31T12:00:00+00:00.")


def refuse_before(asked: datetime, complete_since: datetime | None, floor: Floor, table: str) -> None:
    """Refuse versions from a time on if the stored batches do not have all of them.

    Args:
        asked: the first commit time.
        complete_since: commit time from which on all changes are known; None if no change is.
        floor: why not earlier.
        table: ``database.table``.

    Raises:
        BatchesMissing: the batches do not reach back to it.
    """
    if complete_since is None:
        raise BatchesMissing(f"no earlier version of a row is known: {floor.why}", hint=_KEEP, table=table)
    if asked < complete_since:
        raise BatchesMissing(
            f"all versions of rows are known since {complete_since.isoformat(' ')}, and not since {asked.isoformat(' ')}: "
            f"{floor.why}",
            hint=f"Ask for later ones. {_KEEP}",
            table=table,
        )
