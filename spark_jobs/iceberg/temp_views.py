"""Names of temporary views, unique for each session in one Spark application."""

from __future__ import annotations

import os

from pyspark.sql import SparkSession


def view_of(session: SparkSession, name: str) -> str:
    """Return the name of a session's view.

    When a view is replaced, Spark drops cached plans over views of that name in all sessions: tables that are merged in parallel
    would drop each other's cached rows, even while a task reads them. The jobs of a Spark server are copies of one process, so that
    objects of two jobs may have one address.
    """
    return f"{name}_{os.getpid():x}_{id(session):x}"
