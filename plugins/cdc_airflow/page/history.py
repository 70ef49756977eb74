"""``GET /sources/{dag_id}/history``: lag and throughput over a day, and rows by table, from the cuts that are kept."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import islice, pairwise

from fastapi import APIRouter
from pydantic import BaseModel

from cdc_airflow.page.listed import MAY_READ, AFolder, ASource, Listed
from cdc_lib.model.table_name import TableName
from cdc_lib.status.cut_facts import CutFacts, rows_between, rows_by_table, spread

DAY = timedelta(days=1)
POINTS = 150
"""So many cuts make a picture."""

READ_AT_ONCE = 16 << 20
"""Bytes of cuts that are read for one picture: with thousands of tables it is made of fewer cuts."""

BARS = 15

router = APIRouter(dependencies=[MAY_READ])


class CutPoint(BaseModel):
    """One cut in the picture: how old its last change was when it was published, and the rows merged since the cut before it."""

    at: datetime
    lag_seconds: float | None
    rows: int | None


class Bar(BaseModel):
    """Rows of one table that were merged in the time of the picture."""

    table: str
    rows: int


class History(BaseModel):
    """The last day; ``other`` are the rows of the tables that have no bar."""

    since: datetime
    until: datetime
    points: list[CutPoint]
    bars: list[Bar]
    other: int


@router.get("/sources/{dag_id}/history")
def show_history(source: ASource, folder: AFolder) -> History:
    """Return the pictures of a source."""
    cuts, tables = folder.desk.ask(source.question("history", lambda: _read(source, datetime.now(UTC) - DAY)))
    now = datetime.now(UTC)
    bars = [Bar(table=table, rows=rows) for table, rows in islice(tables.items(), BARS)]
    brought = (None, *(rows_between(*pair) for pair in pairwise(cuts)))
    return History(
        since=now - DAY,
        until=now,
        points=[
            CutPoint(at=cut.at, lag_seconds=cut.lag_seconds, rows=rows)
            for cut, rows in zip(cuts, brought, strict=False)
        ],
        bars=bars,
        other=sum(tables.values()) - sum(bar.rows for bar in bars),
    )


def _read(source: Listed, since: datetime) -> tuple[list[CutFacts], dict[TableName, int]]:
    listed = [info for info in source.holdings.listed_cuts() if info.modified >= since]
    if not listed:
        return [], {}
    size = max(info.size for info in listed)
    wanted = spread(len(listed), min(POINTS, max(2, READ_AT_ONCE // size)))
    first, last = source.holdings.whole_cut(listed[0]), source.holdings.whole_cut(listed[-1])
    tables = rows_by_table(first, last) if first is not None and last is not None else {}
    return source.holdings.cuts([listed[index] for index in wanted]), tables
