"""Airflow's metrics of this process, sent to where its settings say as a task's process sends them."""

from __future__ import annotations

import inspect
import os
from collections.abc import Iterator
from contextlib import contextmanager

from cdc_airflow.airflow_versions import IS_3_2, IS_3_3, Stats


@contextmanager
def statsd_metrics() -> Iterator[None]:
    """Send metrics as the settings that are in force now say, up to the end of the block."""
    logger = _logger()
    _use(logger)
    try:
        yield
    finally:
        _use(None)
        logger.statsd.close()


def _logger():
    if not IS_3_2:
        from airflow.metrics.statsd_logger import get_statsd_logger

        return get_statsd_logger(Stats)
    from airflow.sdk.observability.metrics import stats_utils

    wanted = (Stats,) if inspect.signature(stats_utils.get_stats_factory).parameters else ()
    return stats_utils.get_stats_factory(*wanted)()


def _use(logger) -> None:
    if not IS_3_2:
        Stats.instance, Stats._instance_pid = logger, os.getpid()
        return
    from airflow.sdk._shared.observability.metrics.base_stats_logger import NoStatsLogger

    kept = {"export_legacy_names": True} if IS_3_3 else {}
    Stats.initialize(factory=NoStatsLogger if logger is None else lambda: logger, **kept)
