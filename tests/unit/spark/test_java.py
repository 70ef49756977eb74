"""How Java is started for Spark."""

from __future__ import annotations

from typing import Any

import pytest

from cdc_lib.config.work import MergeConfig
from spark_jobs.java import QUICK_ROWS, java_options

QUICK, ONE_THREAD = "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"


@pytest.mark.parametrize(
    ("settings", "rows", "options"),
    [
        ({}, 0, [QUICK, ONE_THREAD]),
        ({}, QUICK_ROWS, [QUICK, ONE_THREAD]),
        ({}, QUICK_ROWS + 1, [ONE_THREAD]),
        ({"driver_memory": "4096M"}, 0, [QUICK, ONE_THREAD]),
        ({"driver_memory": "5g"}, 0, [QUICK]),
        ({"driver_memory": "1t"}, QUICK_ROWS + 1, []),
        ({"spark_master": "spark://host:7077"}, 0, []),
    ],
)
def test_java_compiles_little_for_little_work(settings: dict[str, Any], rows: int, options: list[str]):
    """Many rows are worth the optimizing compiler, a large heap several threads, and a cluster has its own settings."""
    assert java_options(MergeConfig(**settings), rows) == options
