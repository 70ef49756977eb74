"""What waits in a lake table for its maintenance, and which tables come first."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from cdc_lib.config.maintenance import MaintenanceConfig
from cdc_lib.lake.layout import has_layout
from cdc_lib.lake.upkeep_need import FILE_BYTES, need_of, pressing, surplus_files, waits_for
from cdc_lib.model.layout import Layout, Partition, SortField

NOW = datetime(2026, 1, 31, tzinfo=UTC)
SETTINGS = MaintenanceConfig()


def summary(files=1, size=1000, rows=100, deleted=0):
    """A snapshot's summary as Iceberg writes it."""
    return {
        "total-data-files": str(files),
        "total-files-size": str(size),
        "total-records": str(rows),
        "total-position-deletes": str(deleted),
    }


def need(ages=(0,), *, other_layout=False, **figures):
    """The need of a table whose snapshots have these ages in days."""
    committed = [NOW - timedelta(days=age) for age in ages]
    return need_of(summary(**figures), committed, SETTINGS, NOW, other_layout=other_layout)


@pytest.mark.parametrize(
    ("files", "size", "surplus"), [(1, 10, 0), (7, 10, 6), (7, 7 * FILE_BYTES, 0), (7, 6 * FILE_BYTES + 1, 0)]
)
def test_a_table_needs_as_many_files_as_its_size(files, size, surplus):
    """One for each 48 MB, the last one not full."""
    assert surplus_files(summary(files, size)) == surplus


def test_the_current_snapshot_is_never_old():
    """It stays, however old; a table without a snapshot has none."""
    assert need(ages=(30,)).old_snapshots == 0
    assert need(ages=(30, 20, 6, 5, 1)).old_snapshots == 3
    assert need_of({}, [], SETTINGS, NOW).old_snapshots == 0


def test_what_is_below_the_limits_does_not_wait():
    """The next maintenance would not change it."""
    assert waits_for(need(files=SETTINGS.min_small_files, deleted=9), SETTINGS) == ""
    waiting = need(ages=(9, 0), files=1001, rows=1000, deleted=333, other_layout=True)
    assert waits_for(waiting, SETTINGS) == "another layout, 1,000 small files, 33% of the rows deleted, 1 old snapshot"


def test_the_table_that_needs_it_most_comes_first():
    """Another layout before all; then small files, deleted rows and snapshots together."""
    tables = {
        "layout": need(other_layout=True),
        "files": need(files=1001),
        "both": need(files=51, deleted=60),
        "deleted": need(deleted=60),
        "snapshots": need(ages=range(100)),
        "nothing": need(),
    }
    ordered = sorted(tables, key=lambda one: pressing(tables[one], SETTINGS), reverse=True)
    assert ordered == ["layout", "files", "both", "deleted", "snapshots", "nothing"]


def test_a_layout_is_the_table_s_own_without_regard_to_case():
    """A column that the table does not have is never there."""
    wanted = Layout(partition_by=(Partition("identity", "REGION"),), sort_by=(SortField("Name"),))
    has = Layout(partition_by=(Partition("identity", "region"),), sort_by=(SortField("name"),))
    assert has_layout(has, wanted, ["id", "name", "region"])
    assert not has_layout(has, wanted, ["id", "name"])
    assert not has_layout(Layout(), wanted, ["id", "name", "region"])
