"""How much Spark does at once: as much as the data and the cluster need, unless the source file says it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from typing import TypeVar

from pyspark.sql import SparkSession

from cdc_lib.config.work import MergeConfig
from spark_jobs.runtime.session import activate

T = TypeVar("T")

FEWEST_TABLES, MOST_TABLES = 4, 32
"""Tables at once: the driver plans and commits them, so a large cluster does not need more."""


def cores_of(spark: SparkSession) -> int:
    """Return the number of cores that the application has now, those of its executors on a cluster."""
    return spark.sparkContext.defaultParallelism


def is_local(spark: SparkSession) -> bool:
    """Whether all work of Spark is done by this machine."""
    return (spark.sparkContext.master or "").startswith("local")


def tables_at_once(merge: MergeConfig, cores: int) -> int:
    """Return how many tables are merged at the same time."""
    return merge.parallelism or min(max(cores, FEWEST_TABLES), MOST_TABLES)


def in_threads(session: SparkSession, work: Callable[[T], None], items: Sequence[T], at_once: int) -> None:
    """Do work for each item, for some at the same time; a single one, or one at a time, needs no thread.

    Raises:
        Exception: the first one of the work; what has not begun is left out.
    """
    if len(items) <= 1 or at_once == 1:
        for item in items:
            work(item)
        return
    with ThreadPoolExecutor(at_once, initializer=activate, initargs=(session,)) as threads:
        running = [threads.submit(work, item) for item in items]
        try:
            for each in as_completed(running):
                each.result()
        except BaseException:
            threads.shutdown(wait=False, cancel_futures=True)
            raise
