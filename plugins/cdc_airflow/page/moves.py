"""``GET /sources/{dag_id}/moves``: how the cursors of a source moved."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from fastapi import APIRouter, Query
from pydantic import BaseModel

from cdc_airflow.page.listed import MAY_READ, AFolder, ASource
from cdc_lib.model.cursor import DRAIN, KEPT_MOVES

router = APIRouter(dependencies=[MAY_READ])


class MoveLine(BaseModel):
    """One move of a cursor; ``start`` is empty for the first."""

    at: datetime
    kind: str
    start: str
    stop: str
    by: str
    why: str


class MoveList(BaseModel):
    """The moves of one cursor, latest first."""

    cursor: str
    total: int
    moves: list[MoveLine]


@router.get("/sources/{dag_id}/moves")
def list_moves(
    source: ASource,
    folder: AFolder,
    cursor: Literal["drain", "lake"] = "drain",
    offset: Annotated[int, Query(ge=0)] = 0,
    limit: Annotated[int, Query(ge=1, le=KEPT_MOVES)] = 20,
) -> MoveList:
    """Return the moves that the cursor's document remembers: the last hundred."""
    held = folder.desk.ask(source.held)
    found = held.drain if cursor == DRAIN else held.lake
    moves = found.moves[::-1] if found is not None else ()
    lines = [
        MoveLine(at=one.at, kind=one.kind, start=str(one.start or ""), stop=str(one.stop), by=one.by, why=one.why)
        for one in moves[offset : offset + limit]
    ]
    return MoveList(cursor=cursor, total=len(moves), moves=lines)
