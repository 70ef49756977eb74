"""``GET /sources/{dag_id}/cuts``: the positions as of which all lake tables of a source are consistent."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import BaseModel

from cdc_airflow.page.listed import MAY_READ, AFolder, ASource, Listed
from cdc_lib.status.cut_facts import CutFacts

PAGE = 50

router = APIRouter(dependencies=[MAY_READ])


class CutLine(BaseModel):
    """One cut; ``reselected`` and ``quarantined`` count tables that are not as of its position."""

    merge_id: str
    epoch: int
    position: str
    event_time: datetime | None
    at: datetime
    tables: int
    changes: int
    reselected: int
    quarantined: int


class CutList(BaseModel):
    """A page of the cuts, latest first."""

    total: int
    cuts: list[CutLine]


@router.get("/sources/{dag_id}/cuts")
def list_cuts(
    source: ASource,
    folder: AFolder,
    offset: Annotated[int, Query(ge=0, le=10_000)] = 0,
    limit: Annotated[int, Query(ge=1, le=PAGE)] = 20,
) -> CutList:
    """Return cuts; only those of the page are read."""
    total, found = folder.desk.ask(source.question(f"cuts {offset} {limit}", lambda: _read(source, offset, limit)))
    return CutList(total=total, cuts=[line_of(cut) for cut in found])


def _read(source: Listed, offset: int, limit: int) -> tuple[int, list[CutFacts]]:
    listed = source.holdings.listed_cuts()
    wanted = listed[::-1][offset : offset + limit]
    return len(listed), source.holdings.cuts(wanted)


def line_of(cut: CutFacts) -> CutLine:
    """Return a cut as the page shows it."""
    return CutLine(
        merge_id=cut.merge_id, epoch=cut.epoch, position=str(cut.position), event_time=cut.event_time, at=cut.at,
        tables=cut.tables, changes=cut.changes, reselected=cut.reselected, quarantined=cut.quarantined,
    )  # fmt: skip
