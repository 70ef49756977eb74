"""Lake tables worked on side by side in one Spark application; every one is tried before any failure is raised."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from pyspark.sql import SparkSession

from cdc_lib.config.source import SourceConfig
from cdc_lib.errors import CdcError, MergeError
from spark_jobs.runtime.heartbeat import Heartbeat
from spark_jobs.runtime.session import table_session

T = TypeVar("T")
Result = TypeVar("Result")


def side_by_side(
    spark: SparkSession,
    config: SourceConfig,
    tables: Mapping[str, T],
    work: Callable[[SparkSession, T], Result],
    say: Callable[[str], None],
    *,
    done: str,
    hint: str,
) -> list[Result]:
    """Do the same with several tables, as many at once as ``merge.parallelism`` says.

    Args:
        spark: the application.
        config: the source.
        tables: what is worked on, by its name for people.
        work: takes a session that no other thread uses meanwhile.
        say: takes a line for each table that fails.
        done: what was to be done with them: "merged".
        hint: what is said with several failures.

    Returns:
        What ``work`` returned, in the order of the tables.

    Raises:
        CdcError: of a table; all failures stand in its text.
    """
    own = threading.local()

    def attempt(name: str) -> Result | CdcError:
        if not hasattr(own, "session"):
            own.session = table_session(spark, config)
        try:
            with beat.on(name):
                return work(own.session, tables[name])
        except CdcError as error:
            say(f"{name}: could not be {done}: {error.message}")
            return error

    beat = Heartbeat(done, len(tables), say)
    pool = ThreadPoolExecutor(max_workers=max(1, min(config.merge.parallelism, len(tables))))
    try:
        with beat:
            results = list(pool.map(attempt, tables))
    finally:
        # All is done unless the job is told to end; then it must not wait for tables that have not begun.
        pool.shutdown(wait=False, cancel_futures=True)
    failed = {name: result for name, result in zip(tables, results, strict=True) if isinstance(result, CdcError)}
    if failed:
        raise all_failures(failed, len(tables), done, hint)
    return [result for result in results if not isinstance(result, CdcError)]


def all_failures(failed: Mapping[str, CdcError], tables: int, done: str, hint: str) -> CdcError:
    """Make one error of many; it can be tried again only when each of them can."""
    errors = list(failed.values())
    if len(errors) == 1:
        return errors[0]
    stuck = [error for error in errors if not error.retryable]
    kinds = {type(error) for error in stuck or errors}
    kind = kinds.pop() if len(kinds) == 1 else (MergeError if stuck else type(errors[0]))
    texts = "; ".join(f"{table}: {error}" for table, error in failed.items())
    return kind(f"{len(failed)} of {tables} tables could not be {done}: {texts}", hint=hint, tables=", ".join(failed))
