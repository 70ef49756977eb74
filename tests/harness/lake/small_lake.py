"""A lake of a source in SQLite and a folder, written by PyIceberg: for tests of reading that need no Spark."""

from __future__ import annotations

import json
import weakref
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

import pyarrow as pa
from pyiceberg.catalog import Catalog
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.types import (
    BinaryType,
    BooleanType,
    IcebergType,
    IntegerType,
    LongType,
    NestedField,
    StringType,
    TimestamptzType,
)

from cdc_lib.config import SourceConfig
from cdc_lib.lake.catalog import open_catalog
from cdc_lib.model.lake_table import KEY_PROPERTY, MARKER_PROPERTY, MODE_PROPERTY, Marker
from cdc_lib.model.manifest import OP, TS
from cdc_lib.model.merge_plan import Cut, TableCut
from cdc_lib.model.table_mode import IS_DELETED
from cdc_lib.model.table_name import TableName
from cdc_lib.store.cuts import publish
from cdc_lib.store.objects.open import open_store
from tests.harness.lake.batches import START_TIME, at

COLUMNS = {
    "country": StringType(),
    "id": LongType(),
    "name": StringType(),
    "raw": BinaryType(),
    "_epoch": IntegerType(),
    "_binlog": IntegerType(),
    "_offset": LongType(),
    "_row": LongType(),
}

_OF_MODES: dict[str, dict[str, IcebergType]] = {
    "soft_delete": {IS_DELETED: BooleanType()},
    "append": {OP: StringType(), TS: TimestamptzType()},
}


def row(country: str, number: int, name: str, offset: int = 1) -> dict[str, Any]:
    """Return a row of such a table."""
    return {"country": country, "id": number, "name": name, "raw": b"\x00\xff", "_epoch": 1, "_binlog": 1, "_offset": offset, "_row": 0}  # fmt: skip


class SmallLake:
    """The lake of a source; its catalog is closed with the last reference to it.

    Args:
        config: the source; its catalog is a SQLite file that exists.
    """

    def __init__(self, config: SourceConfig) -> None:
        self.config = config
        self.catalog: Catalog = open_catalog(config)
        weakref.finalize(self, self.catalog.close)
        self.catalog.create_tables()  # type: ignore[attr-defined]
        self.catalog.create_namespace(config.source)

    def make(
        self,
        name: str,
        rows: list[dict[str, Any]],
        mode: str = "mirror",
        key: Sequence[str] = ("country", "id"),
        marker: Marker | None = None,
    ) -> Table:
        """Make a table with rows, as a merge with this marker left it."""
        columns = COLUMNS | _OF_MODES.get(mode, {})
        schema = Schema(*(NestedField(i, one, of) for i, (one, of) in enumerate(columns.items(), 1)))
        properties = {KEY_PROPERTY: json.dumps(key), MODE_PROPERTY: mode}
        table = self.catalog.create_table((self.config.source, name), schema, properties=properties)
        self.add(table, rows, marker)
        return table

    def add(self, table: Table, rows: list[dict[str, Any]], marker: Marker | None = None) -> None:
        """Append rows, as a merge with this marker does; in ``append`` mode each is an insert, committed ``_offset`` seconds after the start."""
        properties = {MARKER_PROPERTY: marker.to_json()} if marker is not None else {}
        if OP in table.schema().column_names:
            rows = [{OP: "c", TS: START_TIME + timedelta(seconds=one["_offset"])} | one for one in rows]
        table.append(pa.Table.from_pylist(rows, table.schema().as_arrow()), snapshot_properties=properties)

    def cut(self, number: int, time: datetime, *tables: Table, gtid_set: str = "") -> Cut:
        """Publish a cut of tables as they are now, at offset 100 times its number."""
        found = []
        for table in tables:
            database, name = table.name()
            snapshot = table.refresh().current_snapshot()
            assert snapshot is not None
            found.append(TableCut(TableName(database, name), f"lake.{database}.{name}", snapshot.snapshot_id, 1))
        place = at(100 * number)
        merge = f"000001-{place.sortable}-abc"
        made = Cut(self.config.source, merge, 1, place, time, time, tuple(found), gtid_set=gtid_set)
        return publish(open_store(self.config.store), made)
