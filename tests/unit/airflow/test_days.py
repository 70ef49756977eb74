"""The task that announces complete days, over a real store; Airflow's part is what it writes when a task succeeds."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.sdk import Asset
from airflow.sdk.exceptions import AirflowRuntimeError, ErrorType
from airflow.sdk.execution_time.comms import ErrorResponse

from cdc_airflow.airflow_versions import AirflowSkipException
from cdc_airflow.factory import make_dags
from cdc_airflow.hooks import CdcHook
from cdc_airflow.operators import PlanOperator
from cdc_airflow.operators.seal_days import SealDaysOperator
from cdc_lib.errors import ConfigError
from cdc_lib.model.cursor import DRAIN, LAKE, Cursor
from cdc_lib.model.merge_plan import Cut, TableCut
from cdc_lib.model.position import Position
from cdc_lib.model.server_identity import ServerIdentity
from cdc_lib.model.table_name import TableName
from cdc_lib.store.announced_days import announced_days
from cdc_lib.store.complete import note_complete
from cdc_lib.store.cursors import ObjectCursorStore
from cdc_lib.store.cuts import publish
from cdc_lib.store.objects.local import LocalStore
from tests.harness.airflow.versions import ends_with

AT = Position("binlog.000007", 400)


@dataclass
class Airflow:
    """What Airflow keeps: the events of tasks that succeeded."""

    events: list[tuple[str | None, dict[str, Any]]] = field(default_factory=list)
    states: dict[str, dict[str, str]] = field(default_factory=dict)
    lists: bool = True

    def run(self, task: SealDaysOperator, run_id: str = "", *, succeeds: bool = True) -> list[str]:
        """Run the task once; of one that is killed before its end, nothing is kept."""
        run_id = run_id or f"run {len(self.states)}"
        inlets = _ByUri(lambda: _Inlet(self))
        outlets = _ByUri(_Outlet)
        ti = SimpleNamespace(try_number=1, dag_id="cdc_shop", run_id=run_id, task_id=task.task_id)
        ti.get_task_states = lambda run_ids, **_: {run: self.states[run] for run in run_ids if run in self.states}
        self.states[run_id] = {task.task_id: "running"}
        try:
            days = task.execute({"ti": ti, "inlet_events": inlets, "outlet_events": outlets})
        except AirflowSkipException:
            self.states[run_id] = {task.task_id: "skipped"}
            assert not outlets.made
            return []
        if succeeds:
            (outlet,) = outlets.made.values()
            self.events += [(key, outlet.extra) for key in outlet.keys or [None]]
        self.states[run_id] = {task.task_id: "success" if succeeds else "failed"}
        return days

    @property
    def announced(self) -> list[str]:
        """The days of all events: partitions, or before Airflow 3.3 in what the events carry."""
        return [day for key, extra in self.events for day in ([key] if key else extra["days"])]


class _ByUri:
    """What Airflow keeps for each asset; an asset of Airflow 3.1 is no key of a dict."""

    def __init__(self, make: Callable[[], Any]) -> None:
        self.made: dict[str, Any] = defaultdict(make)

    def __getitem__(self, asset: Asset) -> Any:
        return self.made[str(asset.uri)]


class _Inlet:
    """The events of an asset; Airflow 3.1 lists all of them."""

    def __init__(self, air: Airflow) -> None:
        self.air = air

    def after(self, _time: str) -> _Inlet:
        return self

    def __iter__(self) -> Iterator[Any]:
        if not self.air.lists:
            raise AirflowRuntimeError(ErrorResponse(error=ErrorType.API_SERVER_ERROR, detail={"status_code": 500}))
        return iter([SimpleNamespace(partition_key=key, extra=extra) for key, extra in self.air.events])


class _Outlet:
    def __init__(self) -> None:
        self.keys: list[str] = []
        self.extra: dict[str, Any] = {}

    def add_partitions(self, keys: list[str]) -> None:
        self.keys += keys


@dataclass
class Source:
    """The source shop, whose lake is as far as the test says."""

    file: Path
    store: LocalStore

    def ends(self, day: int, hour: int = 1) -> Source:
        """Let the server be asked on a day of November, when the lake has everything."""
        at = datetime(2026, 11, day, hour, tzinfo=UTC)
        note_complete(self.store, "shop", at, at)
        return self

    @property
    def task(self) -> SealDaysOperator:
        """The task, made again for each try."""
        return SealDaysOperator(task_id="seal_days", source="shop", source_file=str(self.file))


@pytest.fixture
def source(sources: Path, tmp_path: Path) -> Source:
    """A source with a cut in which one table is quarantined."""
    file = sources / "shop.yaml"
    file.write_text(
        re.sub(r"^store: .*", f'store: {{url: "file://{tmp_path}/store"}}', file.read_text(), flags=re.MULTILINE)
    )
    store = LocalStore(tmp_path / "store")
    identity = ServerIdentity("mysql", "6f1c", 1, 0, "db.example", 3306)
    for consumer in (DRAIN, LAKE):
        ObjectCursorStore(store).swap(None, Cursor("shop", consumer, 0, 1, identity, AT))
    orders = TableCut(TableName("shop", "orders"), "lake.shop.orders", 7, 0)
    stock = replace(orders, table=TableName("shop", "stock"), as_of=Position("binlog.000006", 4))
    publish(store, Cut("shop", "m1", 1, AT, None, datetime(2026, 11, 1, tzinfo=UTC), (orders, stock)))
    return Source(file, store)


def test_each_day_is_announced_once(source: Source):
    """With the cut that has it, and the tables that are not as of the cut."""
    air = Airflow()
    assert air.run(source.ends(20).task) == []
    assert announced_days(source.store, "shop").through == date(2026, 11, 19)
    assert air.run(source.task) == []
    assert air.run(source.ends(21).task) == ["2026-11-20"]
    assert air.run(source.task) == []
    assert air.run(source.ends(24).task) == ["2026-11-21", "2026-11-22", "2026-11-23"]
    assert air.run(source.task) == []
    assert air.announced == ["2026-11-20", "2026-11-21", "2026-11-22", "2026-11-23"]
    extra = air.events[0][1]
    assert extra.pop("days", ["2026-11-20"]) == ["2026-11-20"]
    assert extra == {
        "merge_id": "m1",
        "cut_at": "2026-11-01T00:00:00+00:00",
        "epoch": 1,
        "position": "binlog.000007:400",
        "time_zone": "UTC",
        "quarantined": ["shop.stock"],
    }


def test_what_a_killed_task_announced_comes_again(source: Source):
    """Airflow keeps no event of it."""
    air = Airflow()
    air.run(source.ends(20).task)
    assert air.run(source.ends(22).task, succeeds=False) == ["2026-11-20", "2026-11-21"]
    assert air.run(source.ends(23).task) == ["2026-11-20", "2026-11-21", "2026-11-22"]


def test_days_go_on_while_airflow_lists_no_events(source: Source):
    """A report whose run waits to start hides all events; the state of the last task says as much."""
    air = Airflow()
    air.run(source.ends(20).task)
    air.lists = False
    assert air.run(source.ends(21).task) == ["2026-11-20"]  # nothing was ever announced
    assert air.run(source.ends(22).task, succeeds=False) == ["2026-11-21"]
    assert (
        air.run(source.ends(23).task) == []
    )  # the task that was killed may have announced the day, as far as is known
    air.lists = True
    assert air.run(source.task, "cleared") == ["2026-11-21", "2026-11-22"]
    air.lists = False
    assert (
        air.run(source.ends(24).task, "cleared") == []
    )  # it was announced before the clear, which its state does not show
    air.states["cleared"] = {"seal_days": "success"}
    assert air.run(source.task) == ["2026-11-23"]
    assert air.announced == ["2026-11-20", "2026-11-21", "2026-11-22", "2026-11-23"]


def test_events_that_airflow_removed_are_not_repeated(source: Source):
    """The store remembers what they said. Events of other kinds, made by hand, are no day."""
    air = Airflow()
    air.run(source.ends(20).task)
    air.run(source.ends(22).task)
    air.run(source.task)
    assert announced_days(source.store, "shop").through == date(2026, 11, 21)
    air.events = [(None, {}), ("x", {})]
    assert air.run(source.task) == []
    assert air.run(source.ends(23).task) == ["2026-11-22"]


def test_a_day_that_somebody_announced_by_hand_is_not_announced_again(source: Source):
    """And the days before it are."""
    air = Airflow([("2026-11-21", {})])
    air.run(source.ends(20).task)
    assert air.run(source.ends(23).task) == ["2026-11-20", "2026-11-22"]


def test_the_days_of_another_source_are_refused(source: Source, sources: Path):
    """Its DAGs would start for a lake that has nothing to do with them."""
    with pytest.raises(ends_with(ConfigError), match="announces days of stock"):
        SealDaysOperator(task_id="seal_days", source="stock", source_file=str(source.file)).execute({})


def test_airflow_runs_one_such_task_at_a_time(sources: Path):
    """Two would both find no event of the day. It reads and writes the events of one asset."""
    task = make_dags(sources)["cdc_shop"].get_task("seal_days")
    assert task.max_active_tis_per_dag == 1
    assert [str(one.uri) for one in (*task.inlets, *task.outlets)] == ["cdc://shop/days"] * 2


def needless(source: Source, sources: Path) -> set[str]:
    """Return the tasks that a plan leaves out when there is nothing to do."""
    plan = make_dags(sources)["cdc_shop"].get_task("plan")
    assert isinstance(plan, PlanOperator)
    return {task.task_id for task in plan._needless(CdcHook(source.file).lake_pipeline())}


def test_a_run_without_changes_still_announces_a_day(source: Source, sources: Path):
    """All other tasks are left out, and this one too while no day waits."""
    chain = {"drain", "ack_drain", "plan_merge", "merge", "ack_lake"}
    assert needless(source.ends(20), sources) == chain  # nobody noted yet from which day on
    air = Airflow()
    air.run(source.task)
    assert needless(source, sources) == {*chain, "seal_days"}
    assert needless(source.ends(21), sources) == chain
    air.run(source.task)
    assert needless(source, sources) == chain  # whether Airflow has the event is not known yet
    air.run(source.task)
    assert needless(source, sources) == {*chain, "seal_days"}
