"""Names of temporary views."""

from __future__ import annotations

from typing import Any

from spark_jobs.iceberg.temp_views import view_of
from tests.harness.processes.races import in_processes


def named(_: int) -> Any:
    """Return the address of a session and the name of its view; None is given for a session, which is at one address in all copies."""
    nobody: Any = None
    return id(nobody), view_of(nobody, "changes")


def test_copies_of_a_process_name_their_views_differently() -> None:
    """Jobs of a Spark server are such copies, so their sessions may have one address. They share Spark's cache."""
    ((one, other),) = in_processes(named, [()], writers=2)
    assert one[0] == other[0]
    assert one[1] != other[1]
