"""The checks of ``cdc doctor --spark``: tasks run, read the store, and write and read a table of the lake."""

from __future__ import annotations

import io
import secrets
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa
import pyarrow.parquet as pq
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from cdc_lib.config.source import SourceConfig
from cdc_lib.errors import CdcError, MergeError
from cdc_lib.model.finding import Finding
from cdc_lib.model.lake_table import LakeName
from cdc_lib.model.lexer import quoted
from cdc_lib.store.objects.open import open_store
from cdc_lib.store.objects.probe import PROBES
from spark_jobs.errors import said
from spark_jobs.lake_format import LAKE_FORMAT
from spark_jobs.probing.faults import cause_of, fault
from spark_jobs.probing.limits import STORE
from spark_jobs.runtime.attach import tag_thread
from spark_jobs.runtime.executors import lacking_on
from spark_jobs.runtime.parallelism import is_local
from spark_jobs.runtime.session import set_for, store_session, table_session
from spark_jobs.runtime.versions import iceberg_version, refuse_other_versions
from spark_jobs.sql import full_name

MOST_TASKS = 8
"""Tasks of one check at most; more would only take longer."""

WAIT_FOR_TASK = 60.0
"""Seconds that a cluster has to start executors and to run the first tasks."""

PYTHON_THERE = "Spark's executors share merges of more than a million changes"
PYTHON_MISSING = (
    "Spark's executors cannot share merges of more than a million changes, which the driver does alone: {why}"
)
PYTHON_HINT = (
    "Install this Python and pip install lakecdc[spark] at the same path on all machines of the cluster, or send an archive with them "
    "(spark.archives), and name its Python: spark.pyspark.python."
)

_COLUMN = "number"
_HOST = "java_method('java.net.InetAddress', 'getLocalHost')"


def check_tasks(spark: SparkSession, config: SourceConfig, wait: float = WAIT_FOR_TASK) -> Iterator[Finding]:
    """Yield a finding about tasks on the executors, which need no server.

    Raises:
        MergeError: no executor takes a task in time, or a task fails.
    """
    tag_thread(spark)
    master, tasks = str(spark.sparkContext.master), tasks_of(spark)
    with _doing(f"run a task on {master}"), _cancelled_after(spark, wait, master):
        rows = spark.range(0, tasks, 1, tasks).selectExpr(f"{_HOST} AS host").distinct().collect()
    hosts = ", ".join(sorted({row.host.partition("/")[0] or row.host for row in rows}))
    yield Finding("ok", f"Spark {spark.version} on {master} runs the jobs of {config.source}, its tasks on {hosts}")
    if is_local(spark):
        return
    with _cancelled_after(spark, wait, master):
        lacks = lacking_on(spark.sparkContext)
    yield Finding("warning", PYTHON_MISSING.format(why=lacks), PYTHON_HINT) if lacks else Finding("ok", PYTHON_THERE)


def check_store(spark: SparkSession, config: SourceConfig) -> Iterator[Finding]:
    """Yield a finding about files in the store: written by the driver, as drains do, and read by executors.

    Raises:
        CdcError: the store cannot be written or read.
    """
    session, tasks = store_session(spark, config), tasks_of(spark)
    store = open_store(config.store)
    written: list[str] = []
    try:
        for number in range(tasks):
            key = f"{PROBES}/{secrets.token_hex(8)}.parquet"
            store.put(key, _parquet(number))
            written.append(key)
        with _doing(f"read the store {config.store.url}"), set_for(session, STORE):
            frame = session.read.schema(f"{_COLUMN} BIGINT").parquet(*map(store.url, written))
            _refuse_other_rows(sorted(row[0] for row in frame.collect()), tasks, "the store")
    finally:
        if written:
            store.delete(written)
    yield Finding("ok", f"Spark's executors read the store {config.store.url}")


def check_lake(spark: SparkSession, config: SourceConfig) -> Iterator[Finding]:
    """Yield findings about commits, and about a table that is created, written by executors, read by executors, and dropped.

    Raises:
        CdcError: one of it fails.
    """
    lake = config.lake
    with _doing("open the lake's catalog"):
        session = table_session(spark, config)
        refuse_other_versions(session)
        LAKE_FORMAT.prove(session)
    yield Finding("ok", f"Spark {spark.version} with Iceberg {iceberg_version(session)} commits merges")
    name = f"cdc_probe_{secrets.token_hex(4)}"
    table = LakeName(lake.catalog, lake.namespace_of(config.source, name), name)
    with _namespace(session, table), _table(session, table):
        tasks, warehouse = tasks_of(spark), lake.warehouse or lake.catalog
        with _doing(f"write to the warehouse {warehouse}"):
            session.range(0, tasks, 1, tasks).toDF(_COLUMN).writeTo(full_name(table)).append()
        with _doing(f"read from the warehouse {warehouse}"):
            rows = sorted(row[0] for row in session.table(full_name(table)).collect())
            _refuse_other_rows(rows, tasks, "the warehouse")
    yield Finding("ok", f"Spark's executors write and read tables in the warehouse {warehouse}")


def tasks_of(spark: SparkSession) -> int:
    """Return how many tasks a check has: one for each core, up to a limit."""
    return max(1, min(MOST_TASKS, spark.sparkContext.defaultParallelism))


@contextmanager
def _doing(what: str) -> Iterator[None]:
    """Translate a failure of Spark in the block."""
    try:
        yield
    except (Py4JError, PySparkException) as error:
        raise fault(what, said(error)) from error
    except CdcError as error:
        cause = error.__cause__
        if isinstance(cause, (Py4JError, PySparkException)) and cause_of(said(cause)) is not None:
            raise fault(what, said(cause)) from cause
        raise


@contextmanager
def _cancelled_after(spark: SparkSession, seconds: float, master: str) -> Iterator[None]:
    """Cancel what this thread runs in Spark after some time; Spark itself waits for executors for ever."""
    tag, context = f"cdc-probe-{secrets.token_hex(4)}", spark.sparkContext
    expired = threading.Event()

    def cancel() -> None:
        expired.set()
        context.cancelJobsWithTag(tag)

    timer = threading.Timer(seconds, cancel)
    timer.daemon = True
    context.addJobTag(tag)
    timer.start()
    try:
        yield
    except (Py4JError, PySparkException) as error:
        if not expired.is_set():
            raise
        raise MergeError(
            f"no executor of {master} took a task within {seconds:.0f} s",
            hint="Give the cluster free cores and memory (spark.executor.memory, spark.executor.cores), and let its "
            "machines connect to this one (spark.driver.host, spark.driver.port).",
        ) from error
    finally:
        timer.cancel()
        context.removeJobTag(tag)


@contextmanager
def _namespace(session: SparkSession, table: LakeName) -> Iterator[None]:
    """Create the namespace of a table if it does not exist, and then drop it at the end."""
    name = ".".join(map(quoted, (table.catalog, *table.namespace)))
    with _doing("create a namespace in the lake's catalog"):
        exists = session.catalog.databaseExists(name)
        if not exists:
            session.sql(f"CREATE NAMESPACE {name}")
    with _dropped(session, None if exists else f"NAMESPACE {name}"):
        yield


@contextmanager
def _table(session: SparkSession, table: LakeName) -> Iterator[None]:
    name = full_name(table)
    with _doing("create a table in the lake's catalog"):
        session.sql(f"CREATE TABLE {name} ({_COLUMN} BIGINT) USING iceberg")
    with _dropped(session, f"TABLE {name} PURGE"):
        yield


@contextmanager
def _dropped(session: SparkSession, what: str | None) -> Iterator[None]:
    """Drop something at the end of the block; an error of the block comes first, and names what is left."""
    try:
        yield
    except CdcError as error:
        try:
            _drop(session, what)
        except MergeError:
            error.context["left"] = what or ""
        raise
    _drop(session, what)


def _drop(session: SparkSession, what: str | None) -> None:
    if what is not None:
        with _doing(f"drop {what}"):
            session.sql(f"DROP {what}")


def _parquet(number: int) -> bytes:
    file = io.BytesIO()
    pq.write_table(pa.table({_COLUMN: pa.array([number], pa.int64())}), file)
    return file.getvalue()


def _refuse_other_rows(rows: list[int], tasks: int, where: str) -> None:
    if rows != list(range(tasks)):
        raise MergeError(
            f"of {tasks} rows that were written to {where}, {len(rows)} were read",
            hint="A folder must be one that all machines of Spark share, at the same path; else use S3.",
        )
