"""Names of temporary views, unique for each session."""

from __future__ import annotations

from pyspark.sql import SparkSession


def view_of(session: SparkSession, name: str) -> str:
    """Return the name of a session's view.

    When a view is replaced, Spark drops cached plans over views of that name in all sessions: tables that are merged in parallel
    would drop each other's cached rows, even while a task reads them.
    """
    return f"{name}_{id(session):x}"
