"""Runs jobs of many sources in one Spark: ``python -m spark_jobs.server --port 8998``; ``cdc spark serve`` starts it.

It ends with SIGTERM or SIGINT, after the jobs that run were cancelled, and with exit status 1 when Java ends.
"""

from __future__ import annotations

import argparse
import logging
import os
import sys
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from pyspark import SparkContext
from pyspark.sql import SparkSession

from cdc_lib.errors import CdcError, ConfigError
from cdc_lib.jobs.secrets import SERVER_TOKEN
from cdc_lib.serve.server import address, listener, run
from spark_jobs.job import spark_conf
from spark_jobs.runtime.gateway import RPC_SECRET
from spark_jobs.runtime.jars import jar_paths
from spark_jobs.runtime.java_options import QUICK
from spark_jobs.runtime.log_lines import say
from spark_jobs.runtime.session import CATALOG_DRIVERS, STORE_JARS, start_settings, started
from spark_jobs.runtime.trust_store import trust_store
from spark_jobs.server.app import make_app
from spark_jobs.server.jobs import Jobs
from spark_jobs.server.process import job_processes

SERVER_JARS = ("iceberg", *CATALOG_DRIVERS, "s3", *STORE_JARS.values())
"""Names in ``jars.lock`` of what the jobs of any source may need. The image has all of them: on a read-only disk nothing is fetched."""


SPARK_SECRET = "_SPARK_AUTH_SECRET"
"""Spark's own variable: master and workers read it, with ``spark.authenticate``; the driver of a cluster takes a setting only."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve until a signal ends the process."""
    options = _parser().parse_args(arguments)
    token = os.environ.pop(SERVER_TOKEN, "")
    logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stderr)
    try:
        processes = job_processes()
        with (
            # Before Spark, whose start takes seconds.
            listener(options.host, options.port, options.socket) as at,
            tempfile.TemporaryDirectory(prefix="cdc-spark-server-") as folder,
            _spark(options) as spark,
        ):
            jobs = Jobs(spark, processes, options.slots, Path(folder))
            say(f"Spark {spark.version} on {spark.sparkContext.master} runs jobs at {address(at)}")
            try:
                run(make_app(jobs, token), at)
            finally:
                jobs.close()
    except CdcError as error:
        say(f"{type(error).__name__}: {error}", sys.stderr)
        return 2 if isinstance(error, ConfigError) else 1
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m spark_jobs.server", description="Run Spark jobs of many sources.")
    parser.add_argument("--host", default="127.0.0.1", help="address to listen at")
    parser.add_argument("--port", type=int, default=8998, help="TCP port")
    parser.add_argument("--socket", type=Path, help="file of a socket to listen at instead")
    parser.add_argument("--master", default="local[*]", help="where Spark runs its tasks")
    parser.add_argument("--driver-memory", default="4g", help="memory of Java")
    parser.add_argument("--slots", type=int, default=4, help="jobs that run at the same time")
    parser.add_argument("--ca", type=Path, help="file with the certificates that Java trusts, beside the system's")
    parser.add_argument("--conf", action="append", default=[], metavar="NAME=VALUE", help="a setting of Spark")
    return parser


@contextmanager
def _spark(options: argparse.Namespace) -> Iterator[SparkSession]:
    conf = spark_conf(options.conf, "--conf")
    if secret := os.environ.pop(SPARK_SECRET, ""):
        conf = {"spark.authenticate": "true", RPC_SECRET: secret, **conf}
    jars, trust = jar_paths(SERVER_JARS), trust_store(options.ca)
    settings = start_settings(options.master, options.driver_memory, jars, conf, java=QUICK, trust=trust)
    spark = started("cdc-spark-server", settings)
    threading.Thread(target=_end_with_java, name="java", daemon=True).start()
    try:
        yield spark
    finally:
        spark.stop()


def _end_with_java() -> None:
    """End this process when Java does: whoever started it starts it again, and the jobs are tried again."""
    gateway = SparkContext._gateway  # noqa: SLF001 - no public way to Java's process
    process = getattr(gateway, "proc", None)
    if process is not None:
        process.wait()
        say("Java has ended; see its output above", sys.stderr)
        os._exit(1)


if __name__ == "__main__":
    sys.exit(main())
