from __future__ import annotations

import pytest
from airflow.sdk.exceptions import AirflowFailException

from cdc_airflow.errors import airflow_errors
from cdc_lib.errors import SourceUnavailable, UnknownEvent


def test_an_error_that_may_go_away_takes_the_retries():
    """It continues as it is, so that Airflow tries again."""
    with pytest.raises(SourceUnavailable), airflow_errors():
        raise SourceUnavailable("no route")


def test_an_error_that_needs_a_hand_fails_the_task_at_once_with_place_and_hint():
    """Retrying would only put off the moment when somebody looks."""
    with pytest.raises(AirflowFailException) as error, airflow_errors():
        raise UnknownEvent("event type 0x99 is not read", hint="Upgrade.", file="binlog.000003", offset=120)
    assert str(error.value) == "UnknownEvent: event type 0x99 is not read [file=binlog.000003, offset=120]. Upgrade."
    assert isinstance(error.value.__cause__, UnknownEvent)


def test_a_defect_is_left_as_it_is():
    """What is not of the tree keeps its traceback."""
    with pytest.raises(ZeroDivisionError), airflow_errors():
        _ = 1 // 0
