"""``GET /sources/{dag_id}``: where one source is, what is wrong, and how epochs followed each other."""

from __future__ import annotations

from datetime import datetime
from itertools import islice

from fastapi import APIRouter
from pydantic import BaseModel

from cdc_airflow.page.listed import MAY_READ, AFolder, ASource
from cdc_lib.model.cursor import Cursor
from cdc_lib.model.finding import Level
from cdc_lib.status.source_state import SourceState, rows_per_second, state_of
from cdc_lib.status.table_rows import counts_of

SHOWN_FINDINGS = 20

router = APIRouter(dependencies=[MAY_READ])


class FindingLine(BaseModel):
    """What wants a person, and what to do."""

    level: Level
    what: str
    hint: str


class CursorLine(BaseModel):
    """Where a cursor is, and on which server; ``has_begun_only`` if nothing was acknowledged yet."""

    position: str
    has_begun_only: bool
    epoch: int
    server: str
    gtid_set: str
    event_time: datetime | None
    generation: int


class EpochLine(BaseModel):
    """How an epoch began."""

    epoch: int
    kind: str
    at: datetime
    by: str
    why: str
    previous_end: str
    new_start: str


class SourceDetail(BaseModel):
    """One source; ``table_counts`` by state and by what the last comparison found."""

    source: str
    server: str
    state: SourceState
    read_at: datetime
    lag_seconds: float | None
    lag_bytes: int | None
    catch_up_seconds: float | None
    retention_left_seconds: float | None
    server_seen_at: datetime | None
    rows_per_second: float | None
    drain: CursorLine | None
    lake: CursorLine | None
    cut_at: datetime | None
    windows_in_flight: int
    snapshots: int
    table_counts: dict[str, int]
    findings: list[FindingLine]
    findings_total: int
    epochs: list[EpochLine]


@router.get("/sources/{dag_id}")
def show_source(source: ASource, folder: AFolder) -> SourceDetail:
    """Return what is shown at the head of a source's page."""
    held = folder.desk.ask(source.held)
    drain = held.drain
    findings = held.findings
    server = source.config.server
    return SourceDetail(
        source=source.name,
        server=f"{server.host}:{server.port}",
        state=state_of(held),
        read_at=held.at,
        lag_seconds=held.lag_seconds,
        lag_bytes=held.lag_bytes,
        catch_up_seconds=held.backlog.seconds if held.backlog is not None else None,
        retention_left_seconds=held.retention_left_seconds,
        server_seen_at=held.seen.at if held.seen is not None else None,
        rows_per_second=rows_per_second(held.recent),
        drain=_cursor(drain),
        lake=_cursor(held.lake),
        cut_at=held.cut.at if held.cut is not None else None,
        windows_in_flight=len(drain.in_flight) if drain is not None else 0,
        snapshots=held.snapshots,
        table_counts=counts_of(source.rows(held)),
        findings=[
            FindingLine(level=one.level, what=one.what, hint=one.hint) for one in islice(findings, SHOWN_FINDINGS)
        ],
        findings_total=len(findings),
        epochs=[
            EpochLine(
                epoch=one.epoch, kind=one.kind, at=one.at, by=one.by, why=one.why,
                previous_end=f"{one.previous_end.position} of {one.previous_end.identity}",
                new_start=f"{one.new_start.position} of {one.new_start.identity}",
            )
            for one in reversed(drain.epoch_changes if drain is not None else ())
        ],
    )  # fmt: skip


def _cursor(one: Cursor | None) -> CursorLine | None:
    if one is None:
        return None
    return CursorLine(
        position=str(one.position),
        has_begun_only=one.has_begun_only,
        epoch=one.epoch,
        server=str(one.identity),
        gtid_set=one.gtid_set,
        event_time=one.event_time,
        generation=one.generation,
    )
