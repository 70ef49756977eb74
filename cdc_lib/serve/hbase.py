"""Rows and scans as HBase's REST server answers GET requests, in JSON. See :mod:`cdc_lib.read.cells` for row keys and cells.

The address of a source is ``/hbase/<source>``; the paths below it are those of HBase's REST server. Nothing can be written.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable, Mapping
from itertools import islice
from typing import Any
from urllib.parse import unquote_to_bytes

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse

from cdc_lib.errors import ConfigError
from cdc_lib.read.cells import CellRow, CellTable
from cdc_lib.read.cuts import LATEST, find_cut
from cdc_lib.serve.catalog import CutCatalog
from cdc_lib.serve.hbase_path import MOST_ROWS, HBaseScan, RowPath, parse_path, parse_scan, too_many_rows
from cdc_lib.serve.refusal import RequestRefused

HBASE_ROUTER = APIRouter()

Json = dict[str, Any]


@HBASE_ROUTER.get("/hbase/{source}/{rest:path}")
def cells(request: Request, source: str) -> JSONResponse:
    """Return the cells of a row, or of the rows of a scan, as of a cut."""
    if not _takes_json(request.headers.get("accept", "*/*")):
        raise RequestRefused(406, "NotAcceptable", "answers are JSON: send Accept: application/json")
    # The framework decodes %2F before it finds the route.
    parts = request.scope["raw_path"].split(b"/")[3:]
    try:
        opened = _table(request, source, unquote_to_bytes(parts[0]).decode())
        row = unquote_to_bytes(parts[1]) if len(parts) == 2 else b""
        if row.endswith(b"*"):
            return _answer(_scanned(opened, parse_scan(row[:-1], request.query_params.multi_items())))
        found = _rows_of(opened, parse_path(parts[1:], request.query_params.get("v")))
    except ConfigError as error:
        raise RequestRefused(400, "BadRequest", f"{error.message}. {error.hint}".removesuffix(". ")) from error
    except UnicodeDecodeError as error:
        raise RequestRefused(400, "BadRequest", "the path or a parameter is not UTF-8") from error
    if not any(row.cells for row in found):
        raise RequestRefused(404, "NotFound", "there is no such row, or it has none of these cells")
    return _answer([found])


def _takes_json(accept: str) -> bool:
    return any(
        one.partition(";")[0].strip() in ("*/*", "application/*", "application/json") for one in accept.split(",")
    )


def _table(request: Request, source: str, table: str) -> CellTable:
    """Open a table as of the cut that the request names: ``?cut=``, else the latest one."""
    catalogs: Mapping[str, CutCatalog] = request.app.state.catalogs
    if source not in catalogs:
        raise RequestRefused(404, "NotFound", f"there is no source {source}")
    found = catalogs[source]
    cut = find_cut(found.store, source, request.query_params.get("cut", LATEST))
    opened = request.app.state.lakes[source].at(cut)
    if table not in opened.tables:
        raise RequestRefused(404, "NotFound", f"the cut has no table {table}; names are database.table")
    return CellTable(opened.table(table))


def _rows_of(table: CellTable, asked: RowPath) -> list[CellRow]:
    """Return the newest versions of a row that lie in the range of times."""
    if asked.versions == 1 and asked.times is None and table.reader.mode != "append":
        return [row for row in table.rows([asked.key], asked.columns) if row is not None]
    limit = asked.versions if asked.times is None else None
    versions = table.versions(asked.key, asked.columns, limit)
    found = (row for row in versions if not row.is_deleted and asked.has(row.timestamp))
    return list(islice(found, asked.versions))


def _scanned(table: CellTable, asked: HBaseScan) -> list[list[CellRow]]:
    most = MOST_ROWS + 1 if asked.limit is None else asked.limit
    # A row without the asked columns is not in the answer, and does not count.
    limit = most if asked.columns is None else None
    rows = table.scan(asked.start, asked.stop, asked.columns, prefix=asked.prefix, limit=limit, reverse=asked.reverse)
    found = [[row] for row in islice((row for row in rows if row.cells), most)]
    if len(found) > MOST_ROWS:
        raise too_many_rows()
    return found


def _answer(rows: Iterable[list[CellRow]]) -> JSONResponse:
    """Return rows, each with its versions, as HBase writes them: all bytes are in base64."""
    return JSONResponse({"Row": [_row(versions) for versions in rows]})


def _row(versions: list[CellRow]) -> Json:
    found = [(column, row.timestamp, value) for row in versions for column, value in row.cells.items()]
    found.sort(key=lambda cell: (cell[0], -cell[1]))
    shown = [{"column": _text(column), "timestamp": time, "$": _text(value)} for column, time, value in found]
    return {"key": _text(versions[0].key), "Cell": shown}


def _text(value: bytes) -> str:
    return b64encode(value).decode()
