from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace

import pytest
from airflow.timetables.base import TimeRestriction

from cdc_airflow.backfill import PARAMS, BackfillOperator
from cdc_airflow.factory import make_dags
from cdc_airflow.on_request import DaysOnRequest
from cdc_airflow.spark_job import SparkJobOperator

DAY, NEXT = datetime(2026, 11, 20, tzinfo=UTC), datetime(2026, 11, 21, tzinfo=UTC)


def test_each_source_has_a_dag_for_backfills(sources: Path):
    """Beside that of its changes, which refuses them."""
    dag = make_dags(sources)["cdc_shop.backfill"]
    assert dag.task_ids == ["backfill"]
    assert dag.catchup is False
    assert dag.allowed_run_types is None
    assert set(dag.params) == set(PARAMS)


def test_the_scheduler_creates_no_run_and_a_backfill_creates_one_for_each_day():
    """The first asks without catchup, as the DAG has it."""
    days = DaysOnRequest.deserialize(DaysOnRequest().serialize())
    asked = TimeRestriction(DAY, datetime(2026, 11, 30, tzinfo=UTC), catchup=False)
    assert days.next_dagrun_info(last_automated_data_interval=None, restriction=asked) is None
    found = days.next_dagrun_info(last_automated_data_interval=None, restriction=asked._replace(catchup=True))
    assert found is not None
    assert (found.data_interval.start, found.data_interval.end) == (DAY, NEXT)
    assert days.can_be_scheduled
    assert days.periodic


@pytest.mark.parametrize(
    ("given", "start", "times"),
    [
        ({}, DAY, ["--since", "2026-11-20T00:00:00+00:00", "--until", "2026-11-21T00:00:00+00:00"]),
        ({}, NEXT, []),
        ({"since": "2026-11-01T06:00:00Z"}, DAY, ["--since", "2026-11-01T06:00:00Z"]),
    ],
)
def test_a_run_merges_its_logical_date_or_the_given_period(
    sources: Path, monkeypatch: pytest.MonkeyPatch, given: dict[str, str], start: datetime, times: list[str]
):
    """A run by hand has no date, and takes all that is stored."""
    called: list[tuple[str, ...]] = []
    monkeypatch.setattr(
        SparkJobOperator, "run_job", lambda _self, _context, *arguments, **_more: called.append(arguments)
    )
    run = SimpleNamespace(data_interval_start=start, data_interval_end=NEXT)
    task = BackfillOperator(
        task_id="backfill",
        source_file=str(sources / "shop.yaml"),
        tables='["shop.*"]',
        into="copy",
        copy_suffix="_b",
        **given,
    )
    task.execute({"dag_run": run})
    assert called == [("backfill", *times, "--into", "copy", "--copy-suffix", "_b", "--", "shop.*")]
