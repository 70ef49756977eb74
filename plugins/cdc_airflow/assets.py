"""Lake tables as Airflow assets: a DAG that is scheduled on one runs when its table has changed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from airflow.sdk import Asset, AssetAlias

from cdc_lib.model.table_name import TableName

if TYPE_CHECKING:
    from cdc_lib.model.merge_plan import Cut, TableCut


def table_asset(source: str, table: str) -> Asset:
    """Return the asset of one table of a source, for the ``schedule`` of a DAG that reads it.

    Args:
        source: name of the source.
        table: ``database.table`` at the source; its asset is ``cdc://<source>/<database>/<table>``.
    """
    database, name = TableName.parse(table).pair
    return Asset(f"cdc://{source}/{quote(database, safe='')}/{quote(name, safe='')}")


def changed_tables(source: str) -> AssetAlias:
    """Return the alias under which a merge of the source announces the tables that it changed."""
    return AssetAlias(f"cdc_{source}")


def announce(cut: Cut, events: Any) -> list[str]:
    """Emit an event for each table that the merge of a cut changed; tables without changes emit none.

    Args:
        cut: what the merge published.
        events: Airflow's ``outlet_events`` of a task whose outlet is :func:`changed_tables`.

    Returns:
        The addresses of the assets.
    """
    announced = []
    for table in cut.tables:
        if table.changes:
            asset = table_asset(cut.source, table.table)
            events[changed_tables(cut.source)].add(asset, extra=_extra(cut, table))
            announced.append(str(asset.uri))
    return announced


def _extra(cut: Cut, table: TableCut) -> dict[str, Any]:
    return {
        "merge_id": cut.merge_id,
        "epoch": cut.epoch,
        "position": str(cut.position),
        "lake_table": table.lake_table,
        "lake_snapshot": str(table.lake_snapshot),  # 64 bits: JSON readers in browsers would round it
        "changes": table.changes,
    }
