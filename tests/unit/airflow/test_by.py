"""Who moved a cursor: the task, and the person who started its run."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from cdc_airflow.operators.plan import PlanOperator

TASK = SimpleNamespace(dag_id="cdc_shop", run_id="manual__1", task_id="plan", try_number=2)
SCHEDULED = "airflow cdc_shop manual__1 plan try 2"


@pytest.mark.parametrize(
    ("run", "by"),
    [
        ({"dag_run": SimpleNamespace(triggering_user_name="ada")}, f"{SCHEDULED}, started by ada"),
        ({"dag_run": SimpleNamespace(triggering_user_name=None)}, SCHEDULED),
        ({"dag_run": SimpleNamespace()}, SCHEDULED),  # a release of Airflow that does not say it
        ({}, SCHEDULED),
    ],
)
def test_a_move_names_the_person_who_started_the_run(run, by):
    """A run of the schedule has none."""
    assert PlanOperator(task_id="plan", source_file="shop.yaml").by({"ti": TASK, **run}) == by
