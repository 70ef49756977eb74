"""The client of a Spark server, without a server."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from cdc_lib.config import load_source
from cdc_lib.config.work import SparkServerConfig
from cdc_lib.errors import ConfigError, IncompatibleSchema, MergeConflict, MergeError, SparkUnavailable, dump_error
from cdc_lib.jobs.client import SparkServer, _start_of, job_request, raise_for
from cdc_lib.jobs.request import JobStatus, State
from tests.harness.lake.running import lake_config
from tests.harness.servers.process import free_port


def ended(state: State = "ended", code: int | None = 0, error: MergeError | None = None) -> JobStatus:
    document = json.loads(dump_error(error)) if error is not None else None
    return JobStatus(id="j1", key="k", job="merge", source="shop", state=state, exit_code=code, error=document)


@pytest.mark.parametrize(
    ("job", "kind", "text"),
    [
        (ended(code=1, error=IncompatibleSchema("int to text", hint="Run ALTER TABLE")), IncompatibleSchema, "int to text"),
        (ended(code=1), MergeError, "ended with code 1"),
        (ended(code=-9), MergeConflict, "signal 9"),
        (ended("cancelled", -15), MergeConflict, "was cancelled"),
        (ended("cancelled", None), MergeConflict, "was cancelled"),
        (ended(code=None, error=SparkUnavailable("Java has ended")), SparkUnavailable, "Java has ended"),
    ],
)  # fmt: skip
def test_a_job_that_failed_is_its_own_error(job: JobStatus, kind: type[MergeError], text: str) -> None:
    """Or one that can be tried again if somebody ended it."""
    with pytest.raises(kind, match=text) as caught:
        raise_for(job)
    assert type(caught.value) is kind


def test_exit_codes_that_are_no_failure_are_returned() -> None:
    assert raise_for(ended(code=3), (0, 3)) == 3
    assert raise_for(ended()) == 0


def test_a_server_that_does_not_run_is_an_error_that_can_be_tried_again() -> None:
    server = SparkServer(SparkServerConfig(url=f"http://127.0.0.1:{free_port()}"), {})
    with pytest.raises(SparkUnavailable, match="does not answer") as caught:
        server.status()
    assert caught.value.retryable


@pytest.mark.parametrize(
    ("url", "token", "command"),
    [
        ("unix:///run/cdc/the_spark&.sock", None, "cdc spark serve --socket '/run/cdc/the_spark&.sock'"),
        ("http://127.0.0.1:9001", None, "cdc spark serve --port 9001"),
        ("http://spark.internal:8998/", "TOKEN", "cdc spark serve --host 0.0.0.0 --port 8998 --token-env TOKEN"),
        ("https://spark.internal", "TOKEN", "cdc spark serve --host 0.0.0.0 --token-env TOKEN"),
    ],
)
def test_the_command_that_starts_the_server_is_that_of_the_source_file(
    url: str, token: str | None, command: str
) -> None:
    """A server on other options would not be the one of the file."""
    assert _start_of(SparkServerConfig(url=url, token_env=token)) == command


def test_a_token_that_is_not_set_is_named() -> None:
    with pytest.raises(ConfigError, match="CDC_NO_TOKEN"):
        SparkServer(SparkServerConfig(url="http://h:1", token_env="CDC_NO_TOKEN"), {})


def test_a_request_holds_the_source_file_with_its_variables_filled_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And the secrets that the file names, which another machine does not have; the server reads the same values."""
    monkeypatch.setenv("CDC_TEST_PASSWORD", "canary")
    monkeypatch.setenv("CDC_OTHER", "not asked for")
    config = lake_config(tmp_path, reselect={"when_lag_exceeds": "90s"}, start="latest")
    request = job_request(config, "verify", "--repair", key="k", handed={"CDC_HANDED_USER": "u"}, report=True)
    assert request.secrets["CDC_TEST_PASSWORD"] == "canary"
    assert request.secrets["CDC_HANDED_USER"] == "u"
    assert "CDC_OTHER" not in request.secrets
    file = tmp_path / "shop.yaml"
    file.write_text(json.dumps(request.config))
    assert load_source(file) == config
    assert yaml.safe_load(file.read_text())["reselect"] == {"when_lag_exceeds": "90s"}
