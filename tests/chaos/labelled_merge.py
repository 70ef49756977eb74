"""Labelled points around every commit to the lake, of a merge and of the upkeep, put there from outside."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from spark_jobs.iceberg import iceberg_format, lake_table
from spark_jobs.iceberg.maintenance import Upkeep
from tests.chaos.points import Points

COMMITS: dict[str, tuple[Any, str]] = {
    "the creation of a table": (lake_table.IcebergTable, "create"),
    "the change of a table's columns": (lake_table.IcebergTable, "evolve"),
    "the removal of left-over branches": (lake_table, "drop_left_over"),
    "the start of a branch": (lake_table, "start_branch"),
    "the commit of the deletes": (lake_table.IcebergTable, "_take_out"),
    "the commit of the rows": (lake_table.IcebergTable, "_add"),
    "the publication of a branch": (lake_table, "publish"),
}
"""What is committed, and the function that does it."""
CHORES: dict[str, tuple[Any, str]] = {
    "the rewriting of files": (Upkeep, "rewrite"),
    "the removal of old snapshots": (Upkeep, "_expire"),
    "the removal of lost files": (Upkeep, "_remove_orphans"),
}
"""The same of the upkeep."""
TIDYING: dict[str, tuple[Any, str]] = {"the tidying of a table": (iceberg_format, "tidy")}
"""What a merge does after its commit; the same labels."""


def label_commits(points: Points, step: str) -> None:
    """Let this process pass a point before and after each commit."""
    for deed, (owner, name) in {**COMMITS, **CHORES, **TIDYING}.items():
        setattr(owner, name, _around(getattr(owner, name), points, step, deed))


def _around(original: Callable[..., Any], points: Points, step: str, deed: str) -> Callable[..., Any]:
    def wrapped(*arguments: Any, **named: Any) -> Any:
        points.at(f"{step}: before {deed}")
        result = original(*arguments, **named)
        points.at(f"{step}: after {deed}")
        return result

    return wrapped
