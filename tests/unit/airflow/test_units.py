"""What `drain` is mapped over."""

from __future__ import annotations

import json
from dataclasses import replace

from cdc_airflow.units import FEWEST_SHARES, NOTHING, beyond, mapped, snapshots_of, title_of
from cdc_lib.model.cursor import DRAIN, Cursor
from cdc_lib.model.position import Position
from cdc_lib.model.server_identity import ServerIdentity
from cdc_lib.model.window import SnapshotTask, TaskRange, Window
from cdc_lib.store.documents import to_plain, unit_from_plain

WINDOW = Window("shop", 1, Position("binlog.000007", 154), Position("binlog.000007", 98765))


def snapshots(number):
    return [SnapshotTask("shop", 1, "000001-000007.000000000154", "shop", f"t{n:04d}") for n in range(number)]


def cursor_of(tasks):
    return Cursor("shop", DRAIN, 1, 1, ServerIdentity("mysql", "uuid", 1), WINDOW.start, snapshots=tuple(tasks))


def test_few_units_have_a_task_each():
    units = [WINDOW, *snapshots(FEWEST_SHARES)]
    assert [unit_from_plain(one) for one in mapped(units, 1)] == units


def test_each_of_many_snapshots_is_in_one_share():
    """Windows come first, one each; a share is found again in the cursor."""
    tasks = snapshots(1000)
    plain = json.loads(json.dumps(mapped([WINDOW, *tasks], 4)))
    assert unit_from_plain(plain[0]) == WINDOW
    assert len(plain) == 1 + FEWEST_SHARES
    cursor = cursor_of(tasks)
    shared = [unit for one in plain[1:] for unit in snapshots_of(one, cursor)]
    assert sorted(shared, key=lambda task: task.id) == tasks


def test_a_plan_that_is_made_again_has_a_form_for_each_task_that_is_there():
    """Whoever runs after them waits for each; a task that was never mapped, or that only begins like one of them, is none."""
    there = {"drain_0": "success", "drain_9": "removed", "drain_10": "failed", "drain_files": None}
    assert beyond(9, there, {"drain"}) == [{"kind": NOTHING}] * 2
    assert beyond(11, there, {"drain"}) == beyond(12, there, {"drain"}) == []
    assert beyond(0, {"drain": "skipped"}, {"drain"}) == beyond(0, {}, {"drain"}) == []
    assert beyond(0, {"drain_1": "success", "report": "success"}, {"report", "drain"}) == [{"kind": NOTHING}] * 2


def test_each_range_of_a_large_table_is_a_unit():
    """It has a task, or is in a share, until it is read to its end; its title says which of how many."""
    ranges = (TaskRange(None, ("5",)), TaskRange(("5",), ("9",), 3, complete=True), TaskRange(("9",), None))
    (whole,) = snapshots(1)
    task = replace(whole, ranges=ranges, range_key=("id int",))
    units = cursor_of([task]).snapshot_units
    assert [title_of(unit) for unit in units] == [f"snapshot of shop.t0000, range {n} of 3" for n in (1, 3)]
    assert [unit_from_plain(one) for one in json.loads(json.dumps(mapped(units, 1)))] == list(units)
    many = replace(task, ranges=(TaskRange(None, None),) * (FEWEST_SHARES + 1))
    shares = mapped(cursor_of([many]).snapshot_units, 1)
    shared = [unit for share in shares for unit in snapshots_of(share, cursor_of([many]))]
    assert sorted(unit.range_number for unit in shared) == list(range(FEWEST_SHARES + 1))


def test_what_a_plan_of_a_thousand_tables_hands_on_stays_small():
    """In Airflow's database it is read again for each mapped task; as units with all they know it would be four times as large."""
    plan = mapped([WINDOW, *snapshots(1000)], 4)
    assert len(json.dumps(plan)) < 64 * 1024
    assert len(json.dumps([to_plain(task) for task in snapshots(1000)])) > 4 * len(json.dumps(plan))


def test_a_complete_snapshot_of_a_share_is_no_work():
    """Nor is one that the cursor does not know any more."""
    tasks = snapshots(1000)
    share = mapped(tasks, 4)[0]
    cursor = cursor_of([replace(tasks[0], chunks=1, complete=True), tasks[32]])
    assert snapshots_of(share, cursor) == [tasks[32]]
    assert snapshots_of(share, None) == []
