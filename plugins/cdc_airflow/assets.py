"""Lake tables as Airflow assets: a DAG that is scheduled on one runs when its table has changed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from airflow.sdk import Asset, AssetAlias

from cdc_airflow.airflow_versions import announce_keys
from cdc_lib.model.table_name import TableName

if TYPE_CHECKING:
    from cdc_lib.model.changed_rows import ChangedRows
    from cdc_lib.model.merge_plan import Cut, TableCut
    from cdc_lib.model.verify import Verified
    from cdc_lib.status.coverage import CoveredRows


@dataclass(frozen=True, slots=True)
class CutContext:
    """What is known beside a cut when its tables are announced.

    Args:
        gtid_set: GTIDs of all transactions before the cut's position; empty when that is not known.
        lag_seconds: age of the oldest change that is not in the lake; None when it is unknown.
        verified: the last comparison, by source table and lake table.
        changed: the last comparison of the rows that merges changed, likewise; tables with wrong rows are left out.
        covered: what comparisons of key ranges say, likewise; tables with wrong rows are left out.
    """

    gtid_set: str = ""
    lag_seconds: float | None = None
    verified: Mapping[tuple[TableName, str], Verified] = field(default_factory=dict)
    changed: Mapping[tuple[TableName, str], ChangedRows] = field(default_factory=dict)
    covered: Mapping[tuple[TableName, str], CoveredRows] = field(default_factory=dict)


def table_asset(source: str, table: str) -> Asset:
    """Return the asset of one table of a source, for the ``schedule`` of a DAG that reads it.

    Args:
        source: name of the source.
        table: ``database.table`` at the source; its asset is ``cdc://<source>/<database>/<table>``.
    """
    database, name = TableName.parse(table).pair
    uri = f"cdc://{source}/{quote(database, safe='')}/{quote(name, safe='')}"
    return Asset(uri, extra={"source": source, "database": database, "table": name})


def changed_tables(source: str) -> AssetAlias:
    """Return the alias under which a merge of the source announces the tables that it changed."""
    return AssetAlias(f"cdc_{source}")


def sealed_days(source: str) -> Asset:
    """Return the asset of the days of a source that are complete in the lake; each day is a partition such as ``2026-11-20``.

    For the ``schedule`` of a DAG that reads whole days: ``PartitionedAssetTimetable(assets=sealed_days("shop"))``.
    """
    return Asset(f"cdc://{source}/days", extra={"source": source})


def announce(cut: Cut, events: Any, known: CutContext | None = None) -> list[str]:
    """Emit an event for each table that the merge of a cut changed; tables without changes emit none.

    Args:
        cut: what the merge published.
        events: Airflow's ``outlet_events`` of a task whose outlet is :func:`changed_tables`.
        known: what else is known of it.

    Returns:
        The addresses of the assets.
    """
    announced = []
    for table in cut.tables:
        if table.changes:
            asset = table_asset(cut.source, table.table)
            events[changed_tables(cut.source)].add(asset, extra=_extra(cut, table, known or CutContext()))
            announced.append(str(asset.uri))
    return announced


def announce_days(cut: Cut, days: Sequence[date], events: Any, *, time_zone: str) -> None:
    """Emit one event for each day, with the day as its partition.

    Args:
        cut: the cut that has everything of the days.
        days: that are announced.
        events: Airflow's ``outlet_events`` of a task whose outlet is :func:`sealed_days`.
        time_zone: name of the zone whose midnights end the days.
    """
    event = events[sealed_days(cut.source)]
    announce_keys(event, [day.isoformat() for day in days])
    event.extra.update(
        merge_id=cut.merge_id,
        cut_at=cut.at.isoformat(),
        epoch=cut.epoch,
        position=str(cut.position),
        time_zone=time_zone,
        quarantined=sorted({str(one.table) for one in cut.tables if one.as_of is not None}),
    )


def _extra(cut: Cut, table: TableCut, known: CutContext) -> dict[str, Any]:
    """Return what an event carries; what is not known has no key."""
    extra: dict[str, Any] = {
        "merge_id": cut.merge_id,
        "cut_at": cut.at.isoformat(),
        "epoch": cut.epoch,
        "position": str(cut.position),
        "lake_table": table.lake_table,
        "lake_snapshot": str(table.lake_snapshot),  # 64 bits: JSON readers in browsers would round it
        "changes": table.changes,
    }
    if cut.event_time is not None:
        extra["event_time"] = cut.event_time.isoformat()
    if known.gtid_set:
        extra["gtid_set"] = known.gtid_set
    if table.rows is not None:
        rows = table.rows
        extra["rows"] = {"c": rows.inserts, "u": rows.updates, "d": rows.deletes, "r": rows.reads}
    if known.lag_seconds is not None:
        extra["lag_seconds"] = round(known.lag_seconds, 3)
    last = known.verified.get((table.table, table.lake_table))
    if last is not None and last.clean_position is not None and last.clean_at is not None:
        extra["verified_to"] = {
            "epoch": last.clean_epoch,
            "position": str(last.clean_position),
            "at": last.clean_at.isoformat(),
        }
    compared = known.changed.get((table.table, table.lake_table))
    if compared is not None and compared.merge_id == cut.merge_id and compared.compared:
        extra["changed_rows_verified"] = {
            "compared": compared.compared,
            "equal": compared.equal,
            "in_flight": compared.in_flight,
            "sampled": compared.sampled,
            "at": compared.at.isoformat(),
        }
    ranges = known.covered.get((table.table, table.lake_table))
    if ranges is not None and ranges.position is not None:
        extra["covered"] = {
            "ratio": round(ranges.ratio, 4),
            "oldest_at": ranges.oldest_at.isoformat() if ranges.oldest_at is not None else None,
            "epoch": ranges.epoch,
            "position": str(ranges.position),
        }
    if table.as_of is not None:
        extra["as_of"] = str(table.as_of)
    return extra
