from __future__ import annotations

import os
from pathlib import Path

import pytest

from cdc_airflow.hooks import CdcHook
from cdc_airflow.operators.merge import job_secrets
from cdc_airflow.operators.spark_job import error_of, job_environment
from cdc_lib.config.credentials import take_handed
from cdc_lib.errors import IncompatibleSchema, MergeConflict, MergeError, dump_error
from tests.harness.airflow.versions import is_retried


def test_an_error_that_the_job_left_is_the_tasks(tmp_path: Path):
    """With its place and hint; trying again would find the same columns."""
    left = tmp_path / "error.json"
    left.write_bytes(dump_error(IncompatibleSchema("int to text", hint="Run ALTER TABLE", table="shop.orders")))
    found = error_of(1, left)
    assert isinstance(found, IncompatibleSchema)
    assert str(found) == "int to text [table=shop.orders]. Run ALTER TABLE"
    assert not is_retried(found)


def test_a_conflict_is_tried_again(tmp_path: Path):
    """Airflow sees the error itself, and takes the task's retries."""
    left = tmp_path / "error.json"
    left.write_bytes(dump_error(MergeConflict("somebody else committed")))
    found = error_of(75, left)
    assert isinstance(found, MergeConflict)
    assert is_retried(found)


@pytest.mark.parametrize("status", [137, 143, 1])
def test_a_job_that_left_no_error_is_tried_again(status: int, tmp_path: Path):
    """A kill by the system, a Java process that died."""
    found = error_of(status, tmp_path / "error.json")
    assert isinstance(found, MergeError)
    assert found.retryable
    assert f"status {status}" in str(found)


def test_the_job_gets_none_of_airflows_keys(monkeypatch: pytest.MonkeyPatch):
    """It runs other people's code in Java, and needs none of them."""
    monkeypatch.setenv("AIRFLOW__CORE__FERNET_KEY", "k")
    monkeypatch.setenv("AIRFLOW_CONN_OTHER", "mysql://a:b@c")
    monkeypatch.setenv("CDC_S3_ENDPOINT", "http://x")
    environment = job_environment()
    assert not [name for name in environment if "AIRFLOW" in name]
    assert environment["CDC_S3_ENDPOINT"] == "http://x"
    assert (Path(environment["PYTHONPATH"].split(os.pathsep)[0]) / "spark_jobs" / "merge.py").is_file()


def test_the_job_gets_the_login_of_a_connection_to_reselect_rows(sources: Path, monkeypatch: pytest.MonkeyPatch):
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
