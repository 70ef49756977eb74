"""The reading client is light: a notebook or a service imports it."""

from __future__ import annotations

import subprocess
import sys

HEAVY = ("airflow", "boto3", "duckdb", "llvmlite", "numba", "pandas", "pymysql", "pyspark")


def test_it_imports_no_airflow_no_spark_no_compiler_and_no_driver():
    code = f"import sys, cdc_lib.read; print([name for name in {HEAVY} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_command_that_reads_a_row_imports_no_drain():
    """Its start is most of what a person waits for."""
    heavy = ("boto3", "cdc_lib.pipeline", "llvmlite", "numba", "pymysql", "pyspark", "sqlglot")
    code = f"import sys, cdc_lib.cli.get, cdc_lib.read.lake; print([name for name in {heavy} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
