"""``GET /sources``: every source that the user may read, worst first; searched and paged here."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from airflow.api_fastapi.core_api.security import GetUserDep, requires_access_dag
from fastapi import APIRouter, Depends, Query
from pydantic import BaseModel

from cdc_airflow.page.desk import NoAnswer
from cdc_airflow.page.listed import AFolder, Faulty, Listed
from cdc_airflow.teams import readable
from cdc_lib.errors import CdcError
from cdc_lib.status.holdings import Holdings
from cdc_lib.status.source_state import WORST_FIRST, SourceState, rows_per_second, state_of

router = APIRouter()


class SourceLine(BaseModel):
    """One source in the list.

    ``what`` and ``hint`` are those of its worst finding; ``lag_seconds`` is null when unknown.
    """

    dag_id: str
    source: str
    server: str = ""
    state: SourceState
    what: str = ""
    hint: str = ""
    findings: int = 0
    lag_seconds: float | None = None
    lag_bytes: int | None = None
    retention_left_seconds: float | None = None
    epoch: int | None = None
    drained_to: str = ""
    in_flight: int = 0
    tables: int = 0
    quarantined: int = 0
    rows_per_second: float | None = None
    cut_at: datetime | None = None


class SourceList(BaseModel):
    """A page of the list; ``states`` counts all sources that the user may read."""

    total: int
    states: dict[SourceState, int]
    sources: list[SourceLine]


@router.get("/sources", dependencies=[Depends(requires_access_dag("GET"))])
def list_sources(
    folder: AFolder,
    user: GetUserDep,
    text: Annotated[str, Query(max_length=200)] = "",
    state: SourceState | None = None,
    offset: Annotated[int, Query(ge=0)] = 0,
    limit: Annotated[int, Query(ge=1, le=500)] = 200,
) -> SourceList:
    """Return the sources whose DAGs the user may read."""
    found = folder.sources()
    mine = {dag_id: found[dag_id] for dag_id in sorted(readable(found, user))}
    answers = folder.desk.ask_all([one.held for one in mine.values() if isinstance(one, Listed)])
    lines = []
    for dag_id, one in mine.items():
        outcome = one.error if isinstance(one, Faulty) else answers[one.held.key]
        server = f"{one.config.server.host}:{one.config.server.port}" if isinstance(one, Listed) else ""
        lines.append(_line(dag_id, one.name, server, outcome))
    states: dict[SourceState, int] = {}
    for line in lines:
        states[line.state] = states.get(line.state, 0) + 1
    wanted = [line for line in lines if text.casefold() in line.source.casefold() and state in (None, line.state)]
    wanted.sort(key=lambda line: (WORST_FIRST.index(line.state), line.source))
    return SourceList(total=len(wanted), states=states, sources=wanted[offset : offset + limit])


def _line(dag_id: str, source: str, server: str, outcome: Holdings | CdcError | NoAnswer) -> SourceLine:
    if isinstance(outcome, NoAnswer):
        state: SourceState = "unreachable" if outcome.slow else "reading"
        return SourceLine(dag_id=dag_id, source=source, server=server, state=state, what=str(outcome))
    if isinstance(outcome, CdcError):
        what, hint = outcome.message, outcome.hint
        return SourceLine(dag_id=dag_id, source=source, server=server, state="unreachable", what=what, hint=hint)
    worst = next(iter(outcome.findings), None)
    drain, cut = outcome.drain, outcome.cut
    return SourceLine(
        dag_id=dag_id,
        source=source,
        server=server,
        state=state_of(outcome),
        what=worst.what if worst is not None else "",
        hint=worst.hint if worst is not None else "",
        findings=len(outcome.findings),
        lag_seconds=outcome.lag_seconds,
        lag_bytes=outcome.lag_bytes,
        retention_left_seconds=outcome.retention_left_seconds,
        epoch=drain.epoch if drain is not None else None,
        drained_to=str(drain.position) if drain is not None and not drain.has_begun_only else "",
        in_flight=len(drain.in_flight) + len(drain.open_snapshots) if drain is not None else 0,
        tables=len({one.table for one in cut.tables}) if cut is not None else 0,
        quarantined=len(drain.quarantined_tables) if drain is not None else 0,
        rows_per_second=rows_per_second(outcome.recent),
        cut_at=cut.at if cut is not None else None,
    )
