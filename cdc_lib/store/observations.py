"""Where it is kept what a plan saw at the server, how long the last drain took, and retries: small documents, written over."""

from __future__ import annotations

from cdc_lib.model.observation import DrainObservation, ServerObservation, TablesObservation, TaskRetries
from cdc_lib.ports import ObjectStore
from cdc_lib.store import documents, layout


def last_server(store: ObjectStore, source: str) -> ServerObservation | None:
    """Return what the last plan saw at the server; None before the first."""
    return documents.find(ServerObservation, store, layout.server_observation_key(source))


def note_server(store: ObjectStore, seen: ServerObservation) -> None:
    """Write what a plan saw."""
    store.put(layout.server_observation_key(seen.source), documents.dump(seen))


def last_drain(store: ObjectStore, source: str) -> DrainObservation | None:
    """Return the last unit that was drained; None before the first."""
    return documents.find(DrainObservation, store, layout.drain_observation_key(source))


def note_drain(store: ObjectStore, seen: DrainObservation) -> None:
    """Write which unit was drained; of units that end together, any one stays."""
    store.put(layout.drain_observation_key(seen.source), documents.dump(seen))


def last_tables(store: ObjectStore, source: str) -> TablesObservation | None:
    """Return the tables that plans have looked at; None before the first."""
    return documents.find(TablesObservation, store, layout.tables_observation_key(source))


def note_tables(store: ObjectStore, seen: TablesObservation) -> None:
    """Write which tables plans have looked at."""
    store.put(layout.tables_observation_key(seen.source), documents.dump(seen))


def task_retries(store: ObjectStore, source: str) -> TaskRetries | None:
    """Return how often tasks were tried again; None before the first time."""
    return documents.find(TaskRetries, store, layout.task_retries_key(source))


def note_retry(store: ObjectStore, source: str, task: str) -> None:
    """Count one more try of a task; none is lost when several tasks count at the same time."""

    def counted(known: TaskRetries | None) -> TaskRetries:
        return (known or TaskRetries(source, {})).with_another(task)

    while documents.changed(TaskRetries, store, layout.task_retries_key(source), counted) is None:
        pass
