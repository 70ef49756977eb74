"""Runs work on several lake tables in parallel in one Spark application; all are tried before a failure is raised."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from pyspark.sql import SparkSession

from cdc_lib.config.source import SourceConfig
from cdc_lib.errors import CdcError, MergeError
from cdc_lib.model.pace import counted
from spark_jobs.runtime.heartbeat import Heartbeat
from spark_jobs.runtime.parallelism import cores_of, tables_at_once
from spark_jobs.runtime.session import table_session

T = TypeVar("T")
Result = TypeVar("Result")


def in_parallel(
    spark: SparkSession,
    config: SourceConfig,
    tables: Mapping[str, T],
    work: Callable[[SparkSession, T], Result],
    say: Callable[[str], None],
    *,
    done: str,
    hint: str,
) -> list[Result]:
    """Run work on several tables, as many at once as ``merge.parallelism`` says or the cores suggest.

    Args:
        spark: the application.
        config: the source.
        tables: by display name.
        work: gets a session that no other thread uses, and a table.
        say: receives a line for each table that fails.
        done: what is done with the tables: "merged".
        hint: hint of an error of several failures.

    Returns:
        The results of ``work``, in the order of the tables.

    Raises:
        CdcError: of a table; its text lists all failures.
    """
    local = threading.local()

    def attempt(name: str) -> Result | CdcError:
        if not hasattr(local, "session"):
            local.session = table_session(spark, config)
        try:
            with beat.on(name):
                return work(local.session, tables[name])
        except CdcError as error:
            say(f"{name}: could not be {done}: {error.message}")
            return error

    beat = Heartbeat(done, len(tables), say)
    at_once = tables_at_once(config.merge, cores_of(spark))
    pool = ThreadPoolExecutor(max_workers=max(1, min(at_once, len(tables))))
    try:
        with beat:
            results = list(pool.map(attempt, tables))
    finally:
        # All tables are done unless the job is interrupted; then it must not wait for tables that have not started.
        pool.shutdown(wait=False, cancel_futures=True)
    failed = {name: result for name, result in zip(tables, results, strict=True) if isinstance(result, CdcError)}
    if failed:
        raise all_failures(failed, len(tables), done, hint)
    return [result for result in results if not isinstance(result, CdcError)]


def all_failures(failed: Mapping[str, CdcError], tables: int, done: str, hint: str) -> CdcError:
    """Return one error for several; it is retryable only if all of them are."""
    errors = list(failed.values())
    if len(errors) == 1:
        return errors[0]
    permanent = [error for error in errors if not error.retryable]
    kinds = {type(error) for error in permanent or errors}
    kind = kinds.pop() if len(kinds) == 1 else (MergeError if permanent else type(errors[0]))
    texts = "; ".join(f"{table}: {error}" for table, error in failed.items())
    return kind(
        f"{len(failed)} of {counted(tables, 'table')} could not be {done}: {texts}", hint=hint, tables=", ".join(failed)
    )
