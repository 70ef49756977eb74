"""What the Spark server does without Spark."""

from __future__ import annotations

import json
import socket
import tempfile
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient
from hypothesis import example, given
from hypothesis import strategies as st

from cdc_lib.jobs.request import JobRequest
from spark_jobs.server import output
from spark_jobs.server.__main__ import main
from spark_jobs.server.app import make_app
from spark_jobs.server.bucket_keys import BucketKeys
from spark_jobs.server.gateways import Gateway
from spark_jobs.server.jobs import ServedJob
from spark_jobs.server.output import lines_from

SECRET = "canary-7"


def request(**changed: Any) -> JobRequest:
    plain: dict[str, Any] = {"key": "k", "job": "merge", "source": "shop", "config": {}, "secrets": {"P": SECRET}}
    return JobRequest.model_validate({**plain, **changed})


class OneJob:
    """Jobs that know one job, which does not run."""

    def __init__(self, folder: Path) -> None:
        self.job = ServedJob("j1", request(), folder, own_file_systems=False)

    def submit(self, asked: JobRequest) -> ServedJob:
        assert asked == self.job.request
        return self.job

    def find(self, job_id: str) -> ServedJob | None:
        return self.job if job_id == self.job.id else None

    def listed(self) -> list[ServedJob]:
        return [self.job]


def client(folder: Path, token: str = "", host: str = "127.0.0.1") -> TestClient:
    jobs: Any = OneJob(folder)
    return TestClient(make_app(jobs, token), base_url=f"http://{host}:8998")


@pytest.mark.parametrize(
    ("job", "arguments"),
    [
        ("merge", ["--config", "/etc/passwd"]),
        ("merge", ["--conf=/etc/passwd"]),  # the job's parser takes abbreviations
        ("merge", ["--err=/home/cdc/.bashrc"]),
        ("merge", ["--spark-conf", "--error=/home/cdc/.bashrc"]),
        ("verify", ["--report=/home/cdc/.bashrc"]),
        ("verify", ["--values=/etc/passwd", "--", "a.b"]),
        ("backfill", ["--source-dir=/etc"]),
        ("maintain", ["--by=somebody"]),
        ("probe", ["--spark-master=spark://elsewhere:7077"]),
        ("probe", ["-h"]),
    ],
)
def test_a_request_names_no_file_of_the_servers_machine(tmp_path: Path, job: str, arguments: list[str]) -> None:
    body = {**request().model_dump(mode="json"), "job": job, "arguments": arguments}
    answer = client(tmp_path).post("/v1/jobs", json=body)
    assert (answer.status_code, f"the job {job} takes only" in answer.text) == (422, True)


@pytest.mark.parametrize(
    ("job", "arguments"),
    [
        ("verify", ["--repair", "--wait=5s", "--statement-delay=1ms", "--", "--a.b"]),
        (
            "backfill",
            ["--since", "2026-11-20T00:00:00Z", "--until", "x", "--into", "copy", "--copy-suffix", "_1", "--", "a.*"],
        ),
        ("backfill", ["--batches", "file:///again"]),
        ("maintain", ["--table=a.b"]),
        ("merge", ["--spark-conf=spark.x=1"]),
    ],
)
def test_a_request_has_the_options_of_its_job(job: str, arguments: list[str]) -> None:
    assert request(job=job, arguments=arguments).arguments == tuple(arguments)


@pytest.mark.parametrize("changed", [{"source": "s" * 300}, {"source": "../x"}, {"source": "a\n"}, {"key": "k" * 1001}])
def test_a_name_that_no_source_has_is_refused(tmp_path: Path, changed: dict[str, str]) -> None:
    """It would be that of a file."""
    answer = client(tmp_path).post("/v1/jobs", json={**request().model_dump(mode="json"), **changed})
    assert answer.status_code == 422


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=9))
@example("shop.\U0001f600 and \U00020000")
def test_a_job_reads_the_text_that_was_sent(text: str) -> None:
    """Also characters outside the Basic Multilingual Plane, which JSON writes as pairs that YAML does not know."""
    sent = {"source": "shop", "tables": {"include": [text]}, "masks": {text: text}}
    with tempfile.TemporaryDirectory() as folder:
        job = ServedJob("j1", request(config=sent), Path(folder), own_file_systems=False)
        job.start(Gateway(1, "secret"))
        assert json.loads(job.config.read_text()) == sent


@given(st.lists(st.text("aé\n", max_size=9)), st.integers(4, 40), st.booleans())
def test_the_parts_of_an_output_are_all_of_its_lines(texts: list[str], part: int, ended: bool) -> None:
    """In parts of any size; a line without its end waits until the job has ended."""
    text = "".join(texts)
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(output, "PART", 64 + part)
        file = Path(folder) / "output.log"
        assert lines_from(file, 7, ended=ended) == ((), 7)
        file.write_text(text)
        offset, found = 0, []
        while (step := lines_from(file, offset, ended=ended))[1] != offset:
            found += step[0]
            offset = step[1]
    whole = text if ended else text[: text.rfind("\n") + 1]
    assert found == whole.splitlines()


def test_the_answers_of_the_server_have_no_secret(tmp_path: Path) -> None:
    """Neither a job, nor the list, nor what is wrong in a request."""
    with client(tmp_path) as server:
        answers = [
            server.post("/v1/jobs", content=request().model_dump_json(), headers={"Content-Type": "application/json"}),
            server.get("/v1/jobs/j1"),
            server.get("/v1/jobs"),
            server.post("/v1/jobs", json={**request().model_dump(), "job": SECRET, "more": SECRET}),
        ]
    assert [answer.status_code for answer in answers] == [200, 200, 200, 422]
    assert all(SECRET not in answer.text for answer in answers)
    assert SECRET not in repr(request())
    assert "body.job" in answers[-1].json()["error"]


@pytest.mark.parametrize("given", ["", "Bearer wrong", "Bearer "])
def test_nobody_without_the_token_gets_an_answer(tmp_path: Path, given: str) -> None:
    with client(tmp_path, token="t0ken", host="spark.internal") as server:
        assert server.get("/v1/jobs", headers={"Authorization": given}).status_code == 401
        assert server.get("/v1/jobs", headers={"Authorization": "Bearer t0ken"}).status_code == 200


def test_a_job_that_is_not_known_is_an_error(tmp_path: Path) -> None:
    with client(tmp_path) as server:
        answer = server.get("/v1/jobs/other")
    assert (answer.status_code, answer.json()) == (404, {"error": "there is no job other"})


def test_other_keys_for_the_same_bucket_are_noticed() -> None:
    """The first job's keys are those of the open connections; a local store has none."""
    keys = BucketKeys()
    config = {"store": {"url": "s3://one/a", "access_key_env": "A", "secret_key_env": "S"}}
    assert not keys.are_others(config, {"A": "1", "S": "2"})
    assert not keys.are_others({"store": {**config["store"], "url": "s3://one/b"}}, {"A": "1", "S": "2"})
    assert keys.are_others(config, {"A": "1", "S": "3"})
    assert not keys.are_others({"store": {**config["store"], "url": "s3://two"}}, {"A": "1", "S": "3"})
    assert keys.are_others({"store": {"url": "s3://two"}}, {"AWS_ACCESS_KEY_ID": "x"})
    assert not keys.are_others({"store": {"url": "file:///s"}}, {"A": "9"})
    lake = {"lake": {"warehouse": "gs://lake/tables"}}
    assert not keys.are_others({"store": {"url": "gs://three/a", "service_account_env": "K"}} | lake, {"K": "1"})
    assert keys.are_others({"store": {"url": "gs://four/a", "service_account_env": "K"}} | lake, {"K": "2"})
    assert not keys.are_others({"store": {"url": "gs://four/a", "service_account_env": "K"}}, {"K": "2"})
    google = {"store": {"url": "gs://one/a", "service_account_env": "K"}}
    assert not keys.are_others(google, {"K": "1"})
    assert keys.are_others(google, {"K": "2"})
    azure = {"store": {"url": "abfss://one@account.dfs.core.windows.net/a", "azure_secret_env": "K"}}
    assert not keys.are_others(azure, {"K": "1"})
    assert keys.are_others(azure, {"K": "2"})


def test_a_used_port_is_an_error_before_spark_starts(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        assert main(["--port", str(port)]) == 2
    assert f"cannot listen at 127.0.0.1:{port}" in capsys.readouterr().err


def test_a_wrong_setting_is_an_error_before_spark_starts(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    assert main(["--port", str(port), "--conf", "memory=1"]) == 2
    assert "is not a Spark setting" in capsys.readouterr().err
