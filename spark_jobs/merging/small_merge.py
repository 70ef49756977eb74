"""What Spark leaves out where few rows are merged: code that is made and compiled for one plan, and plans that change as they run."""

from __future__ import annotations

from collections.abc import Mapping

from spark_jobs.changes.frames import ONE_TASK_ROWS

SMALL_TABLE = 1_000_000
"""Rows of the largest table for which this is left out."""

_SETTINGS = {"spark.sql.adaptive.enabled": "false", "spark.sql.codegen.wholeStage": "false"}


def brief_settings(changes: int, records: int | None, chosen: Mapping[str, str]) -> dict[str, str]:
    """Return the settings that suit a merge.

    Args:
        changes: rows that are merged.
        records: rows of the lake table's files; None when nobody knows.
        chosen: settings of the source file, which stay.
    """
    if changes > ONE_TASK_ROWS or records is None or records > SMALL_TABLE:
        return {}
    return {name: value for name, value in _SETTINGS.items() if name not in chosen}
