"""Adds kill points around every commit to the lake, of merges and of maintenance, by patching."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from spark_jobs.iceberg import lake_table
from spark_jobs.iceberg.arrow_rows import ArrowRows
from spark_jobs.iceberg.maintenance import Upkeep
from spark_jobs.iceberg.row_delta import RowCommit
from tests.chaos.points import Points

COMMITS: dict[str, tuple[Any, str]] = {
    "the creation of a table": (lake_table.IcebergTable, "create"),
    "the change of a table's columns": (lake_table.IcebergTable, "evolve"),
    "the renaming of columns": (lake_table.IcebergTable, "rename"),
    "the dropping of columns": (lake_table.IcebergTable, "drop"),
    "the change of a table's key": (lake_table.IcebergTable, "rekey"),
    "the writing of the rows": (ArrowRows, "apply"),
    "the commit of the rows": (RowCommit, "publish"),
    "the publication of a table that begins again": (lake_table, "publish_beginning"),
}
"""Label of each commit, and the function that does it."""
CHORES: dict[str, tuple[Any, str]] = {
    "the rewriting of files": (Upkeep, "rewrite"),
    "the counting of distinct keys": (Upkeep, "_count"),
    "the removal of old snapshots": (Upkeep, "_expire"),
    "the removal of lost files": (Upkeep, "_remove_orphans"),
}
"""The same for maintenance."""
TIDYING: dict[str, tuple[Any, str]] = {"the tidying of a table": (lake_table, "tidy")}
"""The same for what a merge does after its commit."""


def label_commits(points: Points, step: str) -> None:
    """Add a kill point before and after each commit of this process."""
    for action, (owner, name) in {**COMMITS, **CHORES, **TIDYING}.items():
        setattr(owner, name, _around(getattr(owner, name), points, step, action))


def _around(original: Callable[..., Any], points: Points, step: str, action: str) -> Callable[..., Any]:
    def wrapped(*arguments: Any, **named: Any) -> Any:
        points.at(f"{step}: before {action}")
        result = original(*arguments, **named)
        points.at(f"{step}: after {action}")
        return result

    return wrapped
