"""Spark settings for small merges, without whole-stage code generation and adaptive query execution."""

from __future__ import annotations

from collections.abc import Mapping

from spark_jobs.changes.frames import ONE_TASK_ROWS

SMALL_TABLE = 1_000_000
"""Most rows of a table for which these settings are used."""

_SETTINGS = {"spark.sql.adaptive.enabled": "false", "spark.sql.codegen.wholeStage": "false"}


def small_merge_settings(changes: int, records: int | None, configured: Mapping[str, str]) -> dict[str, str]:
    """Return the settings of a small merge; empty for a large one.

    Args:
        changes: number of changes to merge.
        records: rows of the lake table's files; None if unknown.
        configured: settings of the source file, which are not overridden.
    """
    if changes > ONE_TASK_ROWS or records is None or records > SMALL_TABLE:
        return {}
    return {name: value for name, value in _SETTINGS.items() if name not in configured}
