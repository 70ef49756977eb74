"""Facets that OpenLineage does not know: what the tasks say of cuts, windows, snapshots, backfills and comparisons."""

from __future__ import annotations

import attr
from airflow.providers.common.compat.openlineage.facet import DatasetFacet, RunFacet
from openlineage.client.generated.base import InputDatasetFacet, OutputDatasetFacet


@attr.define(slots=True)
class CutRunFacet(RunFacet):
    """As of where the tables are that the run wrote."""

    mergeId: str  # noqa: N815 - names of OpenLineage
    epoch: int
    position: str
    publishedAt: str  # noqa: N815 - as above
    eventTime: str | None = None  # noqa: N815 - as above


@attr.define(slots=True)
class RowsOutputFacet(OutputDatasetFacet):
    """Rows of the batches by kind of change; ``reads`` are those of a snapshot."""

    inserts: int
    updates: int
    deletes: int
    reads: int


@attr.define(slots=True)
class VerifiedDatasetFacet(DatasetFacet):
    """How far a lake table is known to be equal to its source; the weakest of its source tables counts."""

    clean: bool
    comparedAt: str  # noqa: N815 - as above
    verifiedToTime: str | None = None  # noqa: N815 - as above
    verifiedToPosition: str | None = None  # noqa: N815 - as above


@attr.define(slots=True)
class CoveredDatasetFacet(DatasetFacet):
    """How much of a lake table was compared with its source by key ranges; the weakest of its source tables counts."""

    ratio: float
    oldestTime: str  # noqa: N815 - as above
    oldestPosition: str  # noqa: N815 - as above
    wrongRows: int  # noqa: N815 - as above


@attr.define(slots=True)
class WindowRunFacet(RunFacet):
    """The window of the binlog that the run drained; times are commit times, None where it has no events."""

    windowId: str  # noqa: N815 - as above
    epoch: int
    start: str
    stop: str
    gtidSet: str  # noqa: N815 - as above
    transactions: int
    events: int
    firstTime: str | None = None  # noqa: N815 - as above
    lastTime: str | None = None  # noqa: N815 - as above


@attr.define(slots=True)
class SnapshotRead:
    """The chunks of one table's snapshot: as of between the two watermarks."""

    table: str
    snapshotId: str  # noqa: N815 - as above
    epoch: int
    chunks: int
    lowWatermark: str  # noqa: N815 - as above
    highWatermark: str  # noqa: N815 - as above
    complete: bool


@attr.define(slots=True)
class SnapshotsRunFacet(RunFacet):
    """The snapshots that the run read."""

    snapshots: list[SnapshotRead]


@attr.define(slots=True)
class BackfillRunFacet(RunFacet):
    """The commit times whose batches the run merged again, and how many windows and snapshots are in them."""

    period: str
    windows: int
    snapshots: int
    batches: int


@attr.define(slots=True)
class ComparisonInputFacet(InputDatasetFacet):
    """What a comparison found in a lake table: rows at the source, and how many of them are wrong."""

    sourceRows: int  # noqa: N815 - as above
    missing: int
    extra: int
    different: int
    inFlight: int  # noqa: N815 - as above
    unexamined: int
    repaired: int


@attr.define(slots=True)
class ComparisonRunFacet(RunFacet):
    """As of where the lake was when it was compared."""

    clean: bool
    epoch: int
    position: str
    startedAt: str  # noqa: N815 - as above
    endedAt: str  # noqa: N815 - as above
