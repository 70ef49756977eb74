"""``GET /sources/{dag_id}/windows``: the last windows, each with what became of it."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import BaseModel

from cdc_airflow.page.listed import MAY_READ, AFolder, ASource
from cdc_lib.status.holdings import Holdings
from cdc_lib.status.timeline import WindowFacts, WindowRow, WindowState, timeline, windows_of

SHOWN = 100
"""Windows of which the manifests are read: a cursor remembers as many moves."""

router = APIRouter(dependencies=[MAY_READ])


class WindowLine(BaseModel):
    """One window; the counts are null where its batch is not stored."""

    id: str
    epoch: int
    start: str
    stop: str
    state: WindowState
    reselected: bool
    rows: int | None = None
    bytes: int | None = None
    transactions: int | None = None
    tables: int | None = None
    statements: int | None = None
    partial_rows: int | None = None
    quarantined: int | None = None
    first_time: datetime | None = None
    last_time: datetime | None = None
    acked_at: datetime | None
    merged_at: datetime | None


class WindowList(BaseModel):
    """Windows, latest first; ``states`` counts all that the cursor remembers."""

    total: int
    states: dict[WindowState, int]
    windows: list[WindowLine]


@router.get("/sources/{dag_id}/windows")
def list_windows(
    source: ASource,
    folder: AFolder,
    offset: Annotated[int, Query(ge=0)] = 0,
    limit: Annotated[int, Query(ge=1, le=SHOWN)] = SHOWN,
) -> WindowList:
    """Return the windows of the last moves and those in flight."""
    held = folder.desk.ask(source.held)
    if held.drain is None:
        return WindowList(total=0, states={}, windows=[])
    facts = folder.desk.ask(source.question("windows", lambda: _facts(source, held)))
    rows = timeline(held.drain, held.lake, facts, held.stopped, held.recent)
    states: dict[WindowState, int] = {}
    for row in rows:
        states[row.state] = states.get(row.state, 0) + 1
    return WindowList(total=len(rows), states=states, windows=[_line(row) for row in rows[offset : offset + limit]])


def _facts(source: ASource, held: Holdings) -> dict[str, WindowFacts]:
    if held.drain is None:
        return {}
    return source.windows.read([window for window, _ in windows_of(held.drain)])


def _line(row: WindowRow) -> WindowLine:
    window, facts = row.window, row.facts
    known = {name: getattr(facts, name) for name in WindowFacts.__slots__} if facts is not None else {}
    return WindowLine(
        id=window.id,
        epoch=window.epoch,
        start=str(window.start),
        stop=str(window.stop),
        state=row.state,
        reselected=row.reselected,
        acked_at=row.acked_at,
        merged_at=row.merged_at,
        **known,
    )
