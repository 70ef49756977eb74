"""A job of a Spark server that does what a test says, while others run: ``python -m tests.harness.spark.attached_job FILE``."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from cdc_lib.config import load_source
from spark_jobs.runtime.attach import TAG
from spark_jobs.runtime.session import spark_session
from spark_jobs.server.gateways import open_gateway


class AttachedJob:
    """The test's side of such a job; its process has a session as :func:`spark_session` gives it to all jobs."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def sql(self, statement: str) -> Any:
        """Run a statement; returns its rows, or the name of Spark's error."""
        return self._ask("sql", statement)

    def sql_again(self, statement: str) -> Any:
        """Run a statement in a session that the job asks for once more, as a merge that is planned again does."""
        return self._ask("again", statement)

    def setting(self, name: str) -> str | None:
        """Return a setting of its session, None if it has none of this name."""
        value: str | None = self._ask("setting", name)
        return value

    def _ask(self, what: str, text: str) -> Any:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(json.dumps([what, text]), file=self._process.stdin, flush=True)
        line = self._process.stdout.readline()
        assert line, f"the job ended with {self._process.wait()}"
        return json.loads(line)


@contextmanager
def attached_job(spark: SparkSession, tag: str, file: Path, variables: dict[str, str]) -> Iterator[AttachedJob]:
    """Start a job of a source in a running Spark, and end it after the block.

    Args:
        spark: in the place of the server's.
        tag: of the job's work in Spark.
        file: the source file.
        variables: environment variables that it names.
    """
    with open_gateway(spark) as gateway:
        environment = {**os.environ, **variables, **gateway.variables, TAG: tag}
        command = [sys.executable, "-m", __name__, str(file)]
        process = subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        with process:
            try:
                yield AttachedJob(process)
            finally:
                process.kill()


def main(file: str) -> None:
    """Answer each line of the input with a line."""
    source = load_source(Path(file))
    with spark_session(source) as spark:
        for line in sys.stdin:
            what, text = json.loads(line)
            if what == "again":
                with spark_session(source) as again:
                    print(json.dumps(_rows(again, text)), flush=True)
                continue
            print(json.dumps(spark.conf.get(text, None) if what == "setting" else _rows(spark, text)), flush=True)


def _rows(spark: SparkSession, statement: str) -> list[list[Any]] | str | None:
    try:
        return [list(row) for row in spark.sql(statement).collect()]
    except PySparkException as error:
        return error.getCondition()


if __name__ == "__main__":
    main(sys.argv[1])
