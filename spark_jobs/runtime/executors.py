"""Whether executors can run this project's Python code, which the driver sends them."""

from __future__ import annotations

import hashlib
import logging
import os
import zipfile
from functools import cache
from io import BytesIO
from pathlib import Path

from py4j.protocol import Py4JError
from pyspark import SparkContext
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

import cdc_lib
from cdc_lib.apply.tasks import lacking
from spark_jobs.errors import said
from spark_jobs.runtime.jars import cache_dir
from spark_jobs.runtime.parallelism import is_local

log = logging.getLogger(__name__)

MODULES = (
    "numpy",
    "pyarrow",
    "pydantic",
    "yaml",
    "pyiceberg",
    "duckdb",
    "boto3",
    "cdc_lib.apply.tasks",
    "cdc_lib.lake.task_files",
)
"""What tasks import."""

_PYTHON = "spark.pyspark.python"
"""Spark's setting: the Python of executors."""

_SINCE = (1980, 1, 1, 0, 0, 0)
"""The first time that a ZIP file can hold: equal code makes equal files."""


def run_our_code(session: SparkSession) -> bool:
    """Whether executors on other machines can run tasks of merges; sends them the code."""
    return not is_local(session) and not lacking_on(session.sparkContext)


@cache
def lacking_on(context: SparkContext) -> str:
    """Return why executors cannot run tasks of merges; empty if they can.

    Args:
        context: of the application.
    """
    # What spark-submit passes on in the environment.
    context.pythonExec = context.getConf().get(_PYTHON, context.pythonExec)
    try:
        context.addPyFile(str(_code()))
        [why] = context.parallelize([MODULES], 1).map(lacking).collect()
    except (Py4JError, PySparkException) as error:
        *_, last = said(error).strip().splitlines()
        why = f"{context.pythonExec} fails there: {last}"
    if why:
        log.warning("executors run no tasks of merges, so the driver does all: %s", why)
    return why


def _code() -> Path:
    """Return a ZIP file with this project's library."""
    root, data = Path(cdc_lib.__file__).parent, BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(root.rglob("*.py")):
            archive.writestr(zipfile.ZipInfo(str(path.relative_to(root.parent)), _SINCE), path.read_bytes())
    folder = cache_dir() / "code"
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"lakecdc-{hashlib.sha256(data.getvalue()).hexdigest()[:16]}.zip"
    if not file.exists():
        part = file.with_suffix(f".{os.getpid()}")
        part.write_bytes(data.getvalue())
        part.replace(file)
    return file
