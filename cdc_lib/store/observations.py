"""Where it is kept what a plan saw at the server, and how long the last drain took: small documents, written over."""

from __future__ import annotations

from cdc_lib.model.observation import DrainObservation, ServerObservation
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
