"""Ids of the DAGs; no name of a source has a dot."""

from __future__ import annotations

MAINTENANCE = "cdc_maintenance"
"""Id of the DAG that looks after all sources."""


def dag_id(source: str) -> str:
    """Return the id of a source's DAG."""
    return f"cdc_{source}"


def verify_dag_id(source: str) -> str:
    """Return the id of the DAG that compares a source with the lake."""
    return f"{dag_id(source)}.verify"


def cover_dag_id(source: str) -> str:
    """Return the id of the DAG that compares the key ranges of a source which are due."""
    return f"{dag_id(source)}.cover"


def snapshot_dag_id(source: str) -> str:
    """Return the id of the DAG by which people ask for new snapshots."""
    return f"{dag_id(source)}.snapshot"


def resume_dag_id(source: str) -> str:
    """Return the id of the DAG by which people bring quarantined tables back."""
    return f"{dag_id(source)}.resume"


def answer_dag_id(source: str) -> str:
    """Return the id of the DAG by which people answer schema changes."""
    return f"{dag_id(source)}.answer"


def rewind_dag_id(source: str) -> str:
    """Return the id of the DAG by which people move the drain cursor."""
    return f"{dag_id(source)}.rewind"


def backfill_dag_id(source: str) -> str:
    """Return the id of the DAG that merges archived batches of a source again."""
    return f"{dag_id(source)}.backfill"
