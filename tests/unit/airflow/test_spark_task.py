from __future__ import annotations

import os
from pathlib import Path

import pytest
from airflow.sdk.exceptions import AirflowFailException

from cdc_airflow.hooks import CdcHook
from cdc_airflow.merge import job_secrets
from cdc_airflow.spark_job import TRY_AGAIN, job_environment, judge
from cdc_lib.config.credentials import take_handed
from cdc_lib.errors import MergeError
from spark_jobs import entry

NAMED = "IncompatibleSchema: int to text [table=shop.orders]. Run ALTER TABLE"


def test_a_merge_that_went_well_ends_the_task_well():
    """Status 0 is success whatever was printed."""
    judge(0, [NAMED])


def test_an_error_that_the_job_named_fails_the_task_with_its_words():
    """Trying again would find the same columns."""
    with pytest.raises(AirflowFailException) as error:
        judge(1, ["many lines", NAMED, "Shutting down"])
    assert str(error.value) == NAMED


@pytest.mark.parametrize(
    ("status", "output"),
    [
        (TRY_AGAIN, ["MergeConflict: somebody else committed"]),
        (137, ["..."]),
        (1, ["Py4JNetworkError: gone"]),
        (143, []),
    ],
)
def test_what_may_go_away_is_tried_again(status: int, output: list[str]):
    """A conflict, a kill by the system, a Java process that died."""
    with pytest.raises(MergeError) as error:
        judge(status, output)
    assert error.value.retryable


def test_task_and_job_agree_about_the_status_that_asks_for_another_try():
    """The number stands in both, because the task must not import Spark."""
    assert entry.TRY_AGAIN == TRY_AGAIN


def test_the_job_gets_none_of_airflows_keys(monkeypatch: pytest.MonkeyPatch):
    """It runs other people's code in Java, and needs none of them."""
    monkeypatch.setenv("AIRFLOW__CORE__FERNET_KEY", "k")
    monkeypatch.setenv("AIRFLOW_CONN_OTHER", "mysql://a:b@c")
    monkeypatch.setenv("CDC_S3_ENDPOINT", "http://x")
    environment = job_environment()
    assert not [name for name in environment if "AIRFLOW" in name]
    assert environment["CDC_S3_ENDPOINT"] == "http://x"
    assert (Path(environment["PYTHONPATH"].split(os.pathsep)[0]) / "spark_jobs" / "merge.py").is_file()


def test_the_job_gets_the_log_in_of_a_connection_to_read_rows_back(sources: Path, monkeypatch: pytest.MonkeyPatch):
    """In variables that it takes out of its environment before anything else is started; what a variable holds already is not handed."""
    monkeypatch.setenv("AIRFLOW_CONN_SHOP_DB", '{"conn_type": "mysql", "login": "reader", "password": "lion-8"}')
    path = sources / "shop.yaml"
    assert job_secrets(CdcHook(path)) == {}
    text = path.read_text().replace("user: cdc, password_env: CDC_TEST_PASSWORD", "connection: shop_db")
    path.write_text(text)
    environment = {**job_secrets(CdcHook(path)), "OTHER": "x"}
    taken = take_handed(environment)
    assert taken is not None
    assert (taken.user, taken.password) == ("reader", "lion-8")
    assert environment == {"OTHER": "x"}
    assert take_handed(environment) is None
    path.write_text(f"{text}\nreselect: {{mode: never}}\n")
    assert job_secrets(CdcHook(path)) == {}
