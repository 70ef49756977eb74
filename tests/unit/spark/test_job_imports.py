"""What a job imports before it knows what it has to do: each merge that starts a process waits for it."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import get_args

import pytest

from cdc_lib.jobs.request import JobName

OF_THE_DRAIN = {"numba", "llvmlite", "pymysql", "zstandard", "boto3", "pymysqlreplication"}
"""What reads servers and binlogs, and the client of S3: their import takes longer than all else together."""


@pytest.mark.parametrize("module", ["spark_jobs.merge", "spark_jobs.backfill", "spark_jobs.maintain"])
def test_a_job_imports_no_decoder_and_no_driver(module):
    """Only a merge that reads rows from the source needs them, and imports them then."""
    code = f"import json, sys, {module}\nprint(json.dumps([*sys.modules]))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    imported = {name.partition(".")[0] for name in json.loads(done.stdout)}
    assert "pyspark" in imported
    assert imported & OF_THE_DRAIN == set()


@pytest.mark.parametrize("job", get_args(JobName))
def test_each_job_is_a_program(job):
    """As ``cdc`` starts it, where a source has no Spark server."""
    command = [sys.executable, "-m", f"spark_jobs.{job}", "--help"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert f"usage: python -m spark_jobs.{job}" in done.stdout
