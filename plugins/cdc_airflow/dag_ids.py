"""Ids of the DAGs; no name of a source has a dot."""

from __future__ import annotations

from typing import Literal

Kind = Literal["run", "verify", "backfill", "snapshot", "resume", "answer", "rewind", "cover", "erase"]
"""What the DAGs of a source are for."""

MAINTENANCE = "cdc_maintenance"
"""Id of the DAG that looks after all sources."""


def dag_id(source: str, kind: Kind = "run") -> str:
    """Return the id of a DAG of a source."""
    return f"cdc_{source}" if kind == "run" else f"cdc_{source}.{kind}"
