"""``GET /sources/{dag_id}/tables``: the tables of a source, searched, sorted and paged here."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from typing import Annotated, Literal

from fastapi import APIRouter, Query
from pydantic import BaseModel

from cdc_airflow.page.listed import MAY_READ, AFolder, ASource, Listed
from cdc_lib.merge.answers import OpenQuestion
from cdc_lib.model.schema_question import DECISIONS, Decision, SchemaChangeKind
from cdc_lib.model.table_mode import Mode
from cdc_lib.status.table_rows import Order, TableRow, TableState, counts_of, select
from cdc_lib.store import layout

PAGE = 50

router = APIRouter(dependencies=[MAY_READ])


class Badge(BaseModel):
    """The last comparison of a table with its source."""

    clean: bool
    at: datetime
    position: str
    missing: int
    extra: int
    different: int
    unexamined: int
    clean_at: datetime | None


class ChangedBadge(BaseModel):
    """The rows of the last merge of a table that were compared with its source; ``wrong`` counts those of earlier merges too."""

    compared: int
    equal: int
    in_flight: int
    wrong: int
    at: datetime
    position: str
    gtid_set: str
    skipped: str


class CoveredBadge(BaseModel):
    """What comparisons of key ranges say of a table; ``ratio`` is the part of its rows, 0 to 1."""

    ratio: float
    oldest_at: datetime | None
    position: str
    overdue: bool
    wrong: int
    skipped: str


class QuestionLine(BaseModel):
    """The schema change at which a table waits, what may be answered, and what was."""

    change: SchemaChangeKind
    position: str
    what: str
    decisions: tuple[Decision, ...]
    answer: Decision | None


class TableLine(BaseModel):
    """One table in the list; ``rows`` are those of the lake table in the last cut."""

    table: str
    lake_table: str
    state: TableState
    mode: Mode | None
    rows: int | None
    verdict: Literal["equal", "drift", "part", "never"]
    changes: int
    last_change: datetime | None
    as_of: str
    verified: Badge | None
    changed: ChangedBadge | None
    covered: CoveredBadge | None
    schema_versions: int
    note: str
    question: QuestionLine | None


class TableList(BaseModel):
    """A page of the tables; ``counts`` are those of all tables."""

    total: int
    counts: dict[str, int]
    tables: list[TableLine]


@router.get("/sources/{dag_id}/tables")
def list_tables(
    source: ASource,
    folder: AFolder,
    text: Annotated[str, Query(max_length=200)] = "",
    state: TableState | Literal["equal", "drift", "part", "never", ""] = "",
    order: Order = "table",
    *,
    descending: bool = False,
    offset: Annotated[int, Query(ge=0)] = 0,
    limit: Annotated[int, Query(ge=1, le=PAGE)] = PAGE,
) -> TableList:
    """Return tables by name, or as the reader asked."""
    held = folder.desk.ask(source.held)
    rows = source.rows(held)
    found = select(rows, text=text, state=state, order=order, descending=descending)
    shown = found[offset : offset + limit]
    epoch = held.drain.epoch if held.drain is not None else 1
    asked = tuple(dict.fromkeys(row.table for row in shown))
    question = source.question(f"versions {epoch} {asked}", lambda: _versions(source, epoch, asked))
    versions = folder.desk.ask(question)
    return TableList(
        total=len(found), counts=counts_of(rows), tables=[_line(row, versions.get(row.table, 0)) for row in shown]
    )


def _versions(source: Listed, epoch: int, tables: tuple[str, ...]) -> dict[str, int]:
    """Return how many versions of each table's definition are stored in an epoch."""

    def count(table: str) -> int:
        prefix = layout.table_versions_prefix(source.name, epoch, table)
        return sum(1 for _ in source.store.list(prefix))

    with ThreadPoolExecutor(8, thread_name_prefix="cdc-page-versions") as pool:
        return dict(zip(tables, pool.map(count, tables), strict=True))


def _line(row: TableRow, versions: int) -> TableLine:
    one = row.verified
    badge = None
    if one is not None:
        badge = Badge(
            clean=one.clean, at=one.at, position=str(one.position), missing=one.missing, extra=one.extra,
            different=one.different, unexamined=one.unexamined, clean_at=one.clean_at,
        )  # fmt: skip
    return TableLine(
        table=row.table,
        lake_table=row.lake_table,
        state=row.state,
        mode=row.mode,
        rows=row.rows,
        verdict=row.verdict,
        changes=row.changes,
        last_change=row.last_change,
        as_of=str(row.as_of) if row.as_of is not None else "",
        verified=badge,
        changed=_changed(row),
        covered=_covered(row),
        schema_versions=versions,
        note=row.note,
        question=_question(row.question) if row.question is not None else None,
    )


def _changed(row: TableRow) -> ChangedBadge | None:
    one = row.changed
    if one is None:
        return None
    return ChangedBadge(
        compared=one.compared, equal=one.equal, in_flight=one.in_flight, wrong=row.changed_wrong, at=one.at,
        position=str(one.position), gtid_set=one.gtid_set, skipped=one.skipped,
    )  # fmt: skip


def _covered(row: TableRow) -> CoveredBadge | None:
    one = row.covered
    if one is None:
        return None
    position = str(one.position) if one.position is not None else ""
    return CoveredBadge(
        ratio=one.ratio, oldest_at=one.oldest_at, position=position, overdue=one.overdue, wrong=one.wrong, skipped=one.skipped
    )  # fmt: skip


def _question(one: OpenQuestion) -> QuestionLine:
    return QuestionLine(
        change=one.question.kind,
        position=str(one.question.position),
        what=one.what,
        decisions=DECISIONS[one.question.kind],
        answer=one.answer.decision if one.answer is not None else None,
    )
