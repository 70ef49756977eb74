"""Names of temporary views, of which each session has its own."""

from __future__ import annotations

from pyspark.sql import SparkSession


def view_of(session: SparkSession, name: str) -> str:
    """Return the name of a session's view.

    Spark drops what is kept of a plan over a view when a view of that name is replaced, in whichever session: tables that are
    merged side by side would take each other's rows away, to be computed again, or from under a task that reads them.
    """
    return f"{name}_{id(session):x}"
