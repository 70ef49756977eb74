"""Metadata of lake tables from the catalog, without Spark. Needs the ``read`` extra of the installation."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime

from pyiceberg.catalog import Catalog
from pyiceberg.exceptions import NoSuchTableError
from pyiceberg.table import Table

from cdc_lib.config import SourceConfig
from cdc_lib.lake.catalog import open_catalog, open_table, translate_errors
from cdc_lib.lake.layout import has_layout, layout_of
from cdc_lib.lake.routing import LakeMerge, lake_merges
from cdc_lib.lake.upkeep_need import need_of, waits_for
from cdc_lib.model.lake_table import KEY_PROPERTY, MODE_PROPERTY
from cdc_lib.model.layout import LAYOUT_PROPERTY, Layout


@dataclass(frozen=True, slots=True)
class TableDescription:
    """One lake table.

    Args:
        lake_table: full name, for example ``lake.shop.orders``.
        tables: ``database.table`` of the source tables whose rows go into it.
        mode: how it keeps rows; ``missing`` if the catalog does not have the table.
        key: names of the key's columns; empty without a key.
        rows: number of rows; None if its metadata do not show it.
        files: number of data files.
        waits_for: what the next maintenance changes; empty if nothing, as far as the metadata show it.
    """

    lake_table: str
    tables: tuple[str, ...]
    mode: str
    key: tuple[str, ...]
    rows: int | None
    files: int = 0
    waits_for: str = ""


@dataclass(frozen=True, slots=True)
class IcebergColumn:
    """One column of a lake table; ``type`` is Iceberg's name of the type."""

    name: str
    type: str
    nullable: bool
    is_key: bool


def described(config: SourceConfig, tables: Iterable[str]) -> list[TableDescription]:
    """Return the lake tables of source tables.

    Args:
        config: the source.
        tables: ``database.table`` of each.

    Raises:
        ConfigError: there is no lake yet, or its type cannot be read without Spark.
        StoreError: the catalog or a table cannot be read.
    """
    merges = lake_merges(config, tables)
    if not merges:
        return []
    with translate_errors():
        catalog = open_catalog(config)
    with catalog:
        return [_described(config, lake, catalog) for lake in merges]


def _described(config: SourceConfig, lake: LakeMerge, catalog: Catalog) -> TableDescription:
    try:
        with translate_errors(str(lake.name)):
            table = catalog.load_table((*lake.name.namespace, lake.name.name))
    except NoSuchTableError:
        return TableDescription(str(lake.name), lake.tables, "missing", (), None)
    summary = _summary(table)
    need = need_of(
        summary,
        [datetime.fromtimestamp(one.timestamp_ms / 1000, UTC) for one in table.snapshots()],
        config.maintenance,
        datetime.now(UTC),
        other_layout=_has_other_layout(config, lake, table),
    )
    return TableDescription(
        str(lake.name),
        lake.tables,
        table.properties.get(MODE_PROPERTY, "unknown"),
        _key(table),
        _rows(table),
        files=int(summary.get("total-data-files", 0)),
        waits_for=waits_for(need, config.maintenance),
    )


def columns_of(config: SourceConfig, table: str) -> list[IcebergColumn]:
    """Return the columns of the lake table of ``database.table``, in order.

    Raises:
        ConfigError: there is no such lake or no such table, or the catalog's type cannot be read without Spark.
        StoreError: the catalog or the table cannot be read.
    """
    with open_table(config, table) as opened:
        key, fields = _key(opened), opened.schema().fields
    return [IcebergColumn(one.name, str(one.field_type), not one.required, one.name in key) for one in fields]


def _key(table: Table) -> tuple[str, ...]:
    return tuple(json.loads(table.properties.get(KEY_PROPERTY, "[]")))


def _summary(table: Table) -> dict[str, str]:
    snapshot = table.current_snapshot()
    if snapshot is None or snapshot.summary is None:
        return {}
    return dict(snapshot.summary.additional_properties)


def _has_other_layout(config: SourceConfig, lake: LakeMerge, table: Table) -> bool:
    has = Layout.from_json(table.properties.get(LAYOUT_PROPERTY))
    return not has_layout(has, layout_of(config, lake), [one.name for one in table.schema().fields])


def _rows(table: Table) -> int | None:
    """Return the number of live rows, from the summary of the current snapshot."""
    snapshot = table.current_snapshot()
    if snapshot is None:
        return 0
    summary = snapshot.summary
    records = summary["total-records"] if summary is not None else None
    if summary is None or records is None or int(summary["total-equality-deletes"] or 0):
        return None
    return int(records) - int(summary["total-position-deletes"] or 0)
