from __future__ import annotations

import logging

import pytest

from cdc_airflow.errors import errors_first
from cdc_airflow.operators import DrainOperator, PlanOperator
from cdc_lib.errors import CdcError, MergeConflict, UnknownEvent, error_classes
from tests.harness.airflow.versions import ends_with, is_retried, of_3_3


@pytest.mark.parametrize("kind", error_classes().values())
def test_each_error_says_itself_whether_it_is_tried_again(kind: type[CdcError]):
    """Retrying what cannot pass would only put off the moment when somebody looks."""
    assert is_retried(kind("it broke")) is kind.retryable


@of_3_3
def test_a_defect_takes_the_retries_of_the_task():
    """Nobody knows whether it passes."""
    from airflow.sdk import RetryAction

    from cdc_airflow.retry_policy import CdcRetryPolicy

    assert CdcRetryPolicy().evaluate(ZeroDivisionError(), 1, 3).action is RetryAction.DEFAULT


@of_3_3
def test_every_task_has_the_policy_also_a_mapped_one():
    """A mapped operator is made with the defaults of Airflow as arguments."""
    from cdc_airflow.retry_policy import CdcRetryPolicy

    assert isinstance(PlanOperator(task_id="plan", source_file="shop.yaml").retry_policy, CdcRetryPolicy)
    mapped = DrainOperator.partial(task_id="drain", source_file="shop.yaml").expand(unit=[{}])
    assert isinstance(mapped.unmap({"unit": {}}).retry_policy, CdcRetryPolicy)


def test_the_error_comes_first_in_the_log_with_what_to_do(caplog: pytest.LogCaptureFixture):
    """Before the traceback, which Airflow logs when the error reaches it."""
    with (
        caplog.at_level(logging.ERROR),
        pytest.raises(ends_with(UnknownEvent)),
        errors_first(logging.getLogger("task")),
    ):
        raise UnknownEvent("event type 0x99 is not read", hint="Upgrade.", file="binlog.000003", offset=120)
    assert caplog.messages == [
        "UnknownEvent: event type 0x99 is not read [file=binlog.000003, offset=120]",
        "What to do: Upgrade.",
    ]


def test_the_log_says_that_airflow_tries_again(caplog: pytest.LogCaptureFixture):
    """An error without a hint and a place is one line more."""
    with pytest.raises(MergeConflict), errors_first(logging.getLogger("task")):
        raise MergeConflict("somebody else committed")
    assert caplog.messages == ["MergeConflict: somebody else committed", "Airflow tries again."]


def test_a_defect_is_left_as_it_is(caplog: pytest.LogCaptureFixture):
    """What is not of the tree keeps its traceback."""
    with pytest.raises(ZeroDivisionError), errors_first(logging.getLogger("task")):
        _ = 1 // 0
    assert caplog.messages == []
