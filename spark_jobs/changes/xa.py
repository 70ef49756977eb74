"""Moves rows of prepared XA transactions to the positions of their commits."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.functions import broadcast, expr

from cdc_lib.model.lexer import quoted
from cdc_lib.model.manifest import BINLOG, EPOCH, GTID, OFFSET, TS
from cdc_lib.model.xa_settlement import XaCommit

_UNIX_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_COLUMNS = pa.schema(
    {
        "began_file": pa.int32(),
        "began": pa.int64(),
        "epoch": pa.int32(),
        "file": pa.int32(),
        "offset": pa.int64(),
        "micros": pa.int64(),
        "gtid": pa.string(),
    }
)
_ROWS, _COMMITS = "cdc_rows", "cdc_commits"


def committed_rows(rows: DataFrame, commits: Iterable[XaCommit]) -> DataFrame:
    """Return the rows of committed transactions with the order key, the time and the GTID of their commits.

    Args:
        rows: of one file, with file and offset of the start of their transaction, and row numbers in it.
        commits: of transactions with rows in the file.
    """
    session = rows.sparkSession
    # A table of Arrow needs no Python on the executors.
    positions = session.createDataFrame(pa.Table.from_pylist([_plain(commit) for commit in commits], _COLUMNS))
    same = f"{_ROWS}.{quoted(BINLOG)} = {_COMMITS}.began_file AND {_ROWS}.{quoted(OFFSET)} = {_COMMITS}.began"
    joined = rows.alias(_ROWS).join(broadcast(positions).alias(_COMMITS), expr(same))
    values = {name: f"{_ROWS}.{quoted(name)}" for name in rows.columns}
    values |= {EPOCH: f"{_COMMITS}.epoch", BINLOG: f"{_COMMITS}.file", OFFSET: f"{_COMMITS}.offset"}
    values |= {TS: f"timestamp_micros({_COMMITS}.micros)", GTID: f"{_COMMITS}.gtid"}
    return joined.selectExpr(*(f"{value} AS {quoted(name)}" for name, value in values.items()))


def _plain(commit: XaCommit) -> dict[str, int | str | None]:
    decision, began = commit.decision, commit.prepared.start
    micros = (decision.time - _UNIX_EPOCH) // timedelta(microseconds=1)
    at = commit.point
    values = (began.file_number, began.offset, at.epoch, at.file, at.offset, micros, decision.gtid or None)
    return dict(zip(_COLUMNS.names, values, strict=True))
