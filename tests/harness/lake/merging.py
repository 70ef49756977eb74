"""The expected merge, without Spark: the rows of a lake table after the batches of the lake cursor."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from cdc_lib.merge.load import load_plan
from cdc_lib.merge.publish import publish_cut
from cdc_lib.model.manifest import CELL_ABSENT, Manifest
from cdc_lib.model.merge_plan import TableCut
from cdc_lib.model.table_name import TableName
from cdc_lib.store.cuts import last_cut
from tests.harness.binlog.capture import SOURCE, Capture

_ORDER = ("_epoch", "_binlog", "_offset", "_row")


class Lake:
    """The rows of one table by key; the change with the greatest order key wins, and absent cells keep their value."""

    def __init__(self, table: str, key: str = "id") -> None:
        self.table = table
        self.key = key
        self.rows: dict[Any, dict[str, Any]] = {}
        self.order: dict[Any, tuple[int, ...]] = {}
        self.changes: list[dict[str, Any]] = []

    def merge_all(self, capture: Capture) -> int:
        """Merge and acknowledge until no plan is left; returns the number of merges."""
        return merge_all(capture, self)

    def merge(self, capture: Capture, manifests: list[Manifest]) -> None:
        """Merge the batches of one plan; as in the lake, nothing is left of a row that is deleted."""
        for change in sorted(self._changes(capture, manifests), key=_position):
            self._apply(change)
        self.order = {key: at for key, at in self.order.items() if key in self.rows}

    def _changes(self, capture: Capture, manifests: list[Manifest]) -> list[dict[str, Any]]:
        changes = []
        for manifest in manifests:
            for data in capture.tables(manifest, self.table):
                names = [name for name in data.column_names if not name.startswith("_")]
                for row in data.to_pylist():
                    marks = row.pop("_absent", None) or ""
                    left_out = {name for name, mark in zip(names, marks, strict=False) if mark == CELL_ABSENT}
                    changes.append({name: value for name, value in row.items() if name not in left_out})
        return changes

    def _apply(self, change: dict[str, Any]) -> None:
        key, at = change[self.key], _position(change)
        self.changes.append(change)
        if key in self.order and at < self.order[key]:
            return
        self.order[key] = at
        if change["_op"] == "d":
            self.rows.pop(key, None)
        else:
            cells = {name: value for name, value in change.items() if not name.startswith("_")}
            self.rows[key] = {**self.rows.get(key, {}), **cells}


def merge_all(capture: Capture, *lakes: Lake) -> int:
    """Merge several tables and acknowledge, until no plan is left; returns the number of merges."""
    merges = 0
    while (plan := capture.pipeline.plan_merge(by="test")) is not None:
        batches = load_plan(capture.store, plan)
        for lake in lakes:
            lake.merge(capture, [batch.manifest for batch in batches])
        tables = [TableCut(TableName(capture.database, lake.table), lake.table, 1, 0) for lake in lakes if lake.changes]
        publish_cut(
            capture.store,
            plan,
            batches,
            tables,
            last_cut(capture.store, SOURCE, plan.last_merge),
            datetime.now(UTC),
            0.0,
        )
        capture.pipeline.ack_lake(by="test")
        merges += 1
    return merges


def _position(change: dict[str, Any]) -> tuple[int, ...]:
    return tuple(change[name] for name in _ORDER)


def drain_all(capture: Capture) -> int:
    """Plan, drain and acknowledge until no unit is left; returns the number of units."""
    drained = 0
    while units := capture.pipeline.plan(by="test"):
        for unit in units:
            capture.pipeline.drain(unit)
        capture.pipeline.ack_drain(by="test")
        drained += len(units)
    return drained
