"""Before a merge is published, the numbers of rows must add up: no delete was lost, and no row was appended twice or left out."""

from __future__ import annotations

import threading
from dataclasses import fields

import pyarrow as pa
import pytest

from cdc_lib.apply import table_part
from cdc_lib.apply.old_rows import KeysOfChanges
from cdc_lib.apply.table_part import TablePart
from cdc_lib.errors import MergeError
from cdc_lib.store.failed_tables import last_stopped
from spark_jobs.iceberg.row_files import RowFiles
from tests.harness.lake.batches import BIGINT, INT, Row, table
from tests.harness.lake.running import Lake

MODES = ("mirror", "soft_delete", "scd2")
COLUMNS = {"id": BIGINT, "v": INT}
BASE = [Row("c", 10 + i, {"id": i, "v": 1}) for i in range(1, 7)]
NEWER = [
    Row("u", 110, {"id": 1, "v": 2}),
    Row("d", 111, {"id": 3, "v": 0}),
    Row("c", 112, {"id": 7, "v": 2}),
]
"""Changes of a usual merge: two of three keys have a row, which the deletes must find."""
INSERTED_AND_CHANGED = [*NEWER[:2], Row("c", 112, {"id": 7, "v": 1}), Row("u", 113, {"id": 7, "v": 2})]
"""Only counting tells that key 7 had no row."""
PARTLY_OLDER = [
    *(Row("u", 110 + i, {"id": i, "v": 2}) for i in (1, 4, 5)),
    Row("u", 160, {"id": 2, "v": 3}),
    Row("d", 161, {"id": 3, "v": 0}),
    Row("c", 162, {"id": 7, "v": 3}),
]
"""Of a window that a snapshot of the table, read at 150, contains in part."""


class FirstKeyAlone(KeysOfChanges):
    def positions(self, file):
        positions, numbers = super().positions(file)
        return positions[numbers == 0], numbers[numbers == 0]


class LostRows:
    """Only the rows of one key are found."""

    owner, name = TablePart, "_deletes"

    @staticmethod
    def broken(real, files, asked, *more):
        return real(files, FirstKeyAlone(*(getattr(asked, one.name) for one in fields(asked))), *more)


class LostVersions:
    """Only the versions of one key are found, where every version is kept."""

    owner, name = TablePart, "_versions"

    @staticmethod
    def broken(real, *arguments):
        find, thread = table_part.positions_of, threading.get_ident()

        def first_key_alone(*given):
            positions, numbers = find(*given)
            kept = (numbers == 0) | (threading.get_ident() != thread)
            return positions[kept], numbers[kept]

        table_part.positions_of = first_key_alone
        try:
            return real(*arguments)
        finally:
            table_part.positions_of = find


class WrittenTwice:
    """Each new row is written twice."""

    owner, name = RowFiles, "write"

    @staticmethod
    def broken(real, rows, *more):
        return real(pa.concat_tables([rows, rows]), *more)


class PartlyWritten:
    """One new row is not written."""

    owner, name = RowFiles, "write"

    @staticmethod
    def broken(real, rows, *more):
        return real(rows.slice(1), *more)


def name_of(target):
    """Return the source table that something writes."""
    if isinstance(target, RowFiles):
        return ".".join(str(target.table.name()).split(".")[-2:])
    return target.of


FAULTS = [LostRows, WrittenTwice, PartlyWritten]


@pytest.fixture
def merged(lake, monkeypatch):
    """Merge changes into ``orders`` with a fault, and into ``items`` without one; return both tables' rows before and after."""

    def run(mode, fault, changes, *, base=BASE, snapshot_at=None):
        fault = LostVersions if (mode, fault) == ("scd2", LostRows) else fault
        config = lake.config.model_dump(mode="json") | {"modes": [{"tables": "*.*", "mode": mode}]}
        here = Lake(lake.spark, type(lake.config).model_validate(config), lake.store)
        orders, items = (table(f"{here.database}.{name}", COLUMNS, ("id",)) for name in ("orders", "items"))
        here.merge(here.batches.plan(100, here.batches.window(4, 100, {orders: base, items: base})))
        if snapshot_at is not None:
            values = [row.values for row in base]
            here.merge(here.batches.plan(100, here.batches.chunk(orders, snapshot_at, values, snapshot="s")))
        plan = here.batches.plan(200, here.batches.window(100, 200, {orders: changes, items: changes}))
        names = ("id", "v", "_epoch", "_binlog", "_offset", "_row")
        before = {one.name: (here.rows(one.name, *names), here.state(one.name)) for one in (orders, items)}
        real = getattr(fault.owner, fault.name)

        def broken(target, *arguments):
            if name_of(target) != orders.name:
                return real(target, *arguments)
            return fault.broken(lambda *given: real(target, *given), *arguments)

        with monkeypatch.context() as patch:
            patch.setattr(fault.owner, fault.name, broken)
            with pytest.raises(MergeError, match="does not add up") as caught:
                here.merge(plan)
        assert not caught.value.retryable
        rows, state = before[orders.name]
        assert here.rows(orders.name, *names) == rows
        assert here.state(orders.name).snapshot_id == state.snapshot_id
        # The other table is merged, and the next merge brings what is missing here.
        after = here.rows(items.name, *names)
        assert after != before[items.name][0]
        [stopped] = last_stopped(here.store, here.config.source).tables
        assert list(stopped.tables) == [orders.name]
        here.merge(here.batches.again(plan))
        if snapshot_at is None:
            assert here.rows(orders.name, *names) == after

    return run


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("mode", MODES)
def test_a_table_stops_before_wrong_rows_are_published(merged, mode, fault):
    merged(mode, fault, NEWER)


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("mode", MODES)
def test_a_table_stops_if_some_changes_are_older_than_its_rows(merged, mode, fault):
    """How many rows are to be appended is known only when it is read which ones are newer."""
    merged(mode, fault, PARTLY_OLDER, snapshot_at=150)


@pytest.mark.parametrize("mode", MODES)
def test_rows_are_counted_if_deletes_found_fewer_than_expected(merged, mode):
    merged(mode, LostRows, INSERTED_AND_CHANGED)


@pytest.mark.parametrize("mode", MODES)
def test_rows_of_many_keys_are_counted(merged, mode):
    base = [Row("c", 10, {"id": i, "v": 1}, i) for i in range(300)]
    merged(mode, LostRows, [Row("u", 110, {"id": i, "v": 2}, i) for i in range(250)], base=base)
