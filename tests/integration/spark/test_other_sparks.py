"""The jobs on other versions of Spark: the strongest tests run again, in a process in which another pyspark comes first.

On the pinned version the same tests run with each commit or in turns.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from spark_jobs.runtime.jars import installed_spark
from tests.harness.spark.versions import OTHERS, spark_folder

ROOT = Path(__file__).parents[3]
SUITE = {
    "laws, with kills at every step": "tests/integration/spark/test_merge_laws.py",
    "modes": "tests/integration/spark/test_modes_of_a_source.py",
    "modes and layouts by the contract": "tests/contract/test_merge_target.py",
    "proof of commits": "tests/integration/spark/test_proof.py",
    "rows in Arrow": "tests/integration/spark/test_arrow_frames.py",
    "DDL": "tests/integration/spark/test_ddl.py",
    "keys": "tests/integration/spark/test_other_keys.py",
    "columns and predicates of Spark SQL": "tests/integration/spark/test_computed.py",
    "two catalogs": "tests/integration/spark/test_two_catalogs.py",
    "merges by tasks": "tests/integration/spark/test_spread_merges.py",
    "maintenance": "tests/integration/spark/test_maintenance.py",
    "layouts": "tests/integration/spark/test_layouts.py",
    "the job as a process, killed, on S3, with an executor": "tests/integration/spark/test_merge_job.py",
    "snapshot to verify": "tests/integration/spark/test_whole_run.py",
}


@pytest.mark.slow
@pytest.mark.parametrize("what", SUITE)
@pytest.mark.parametrize("version", OTHERS)
def test_jobs_are_right_on_another_spark(version, what):
    path = f"{spark_folder(version)}:{os.environ.get('PYTHONPATH', '')}"
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", "not slow", SUITE[what]]
    done = subprocess.run(command, cwd=ROOT, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True)
    assert re.search(r"^\d+ passed", done.stdout, re.MULTILINE), done.stdout[-4000:]
    assert done.returncode == 0, done.stdout[-4000:]


def test_other_versions_are_others():
    assert installed_spark() not in {".".join(version.split(".")[:2]) for version in OTHERS}
