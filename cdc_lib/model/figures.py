"""The figures of a source that monitoring takes; what is not known is None, never 0."""

from __future__ import annotations

from dataclasses import dataclass

from cdc_lib.model.merge_plan import MergeTotals
from cdc_lib.model.row_counts import RowCounts
from cdc_lib.model.table_name import TableName


@dataclass(frozen=True, slots=True)
class LakeTableFigures:
    """One source table in one lake table.

    Args:
        table: ``database.table`` at the source.
        lake_table: full name in the catalog.
        rows: merged so far, see :attr:`cdc_lib.model.merge_plan.TableCut.total_rows`; None before the first merge.
        bytes: of the files that held them.
        verified_age_seconds: since the last comparison without drift; None before the first.
        drift_rows: rows that the last comparison found wrong; None before the first.
        covered_ratio: part of the rows whose key ranges were compared within ``verify.cover_every``; None if it is not set, and for a
            table that is not compared by ranges.
        covered_age_seconds: since the comparison of the range that waits longest, likewise.
        covered_wrong_rows: rows that comparisons of ranges found wrong and that are not equal yet, likewise.
    """

    table: TableName
    lake_table: str
    rows: RowCounts | None
    bytes: int | None
    verified_age_seconds: float | None
    drift_rows: int | None
    covered_ratio: float | None = None
    covered_age_seconds: float | None = None
    covered_wrong_rows: int | None = None


@dataclass(frozen=True, slots=True)
class TableFigures:
    """One source table.

    Args:
        table: ``database.table`` at the source.
        lag_seconds: age of the oldest change that its lake tables do not have.
        quarantined: whether it is left out of the lake now.
    """

    table: TableName
    lag_seconds: float | None
    quarantined: bool


@dataclass(frozen=True, slots=True)
class SourceFigures:
    """One source.

    Args:
        source: its name.
        lag_seconds: age of the oldest change that is not in the lake, 0 when all are.
        lag_bytes: binlog between the lake and the end of the binlog.
        catch_up_seconds: to drain the backlog at the rate of the last one.
        epoch: of the drain cursor.
        windows_in_flight: planned and not acknowledged.
        windows_pending: drained, and not in the lake.
        snapshots_pending: not whole in the lake.
        retention_left_seconds: until the server may purge what is drained next; 0 when it may now.
        server_seen_seconds: since the server was asked last.
        quarantined: how many tables are left out of the lake now.
        stopped: how many lake tables the last merge could not merge.
        cut_age_seconds: since the last cut was published.
        merge_seconds: that the last merge took.
        merged: what all merges did so far.
        drain_seconds: that the last drain took.
        verify_interval_seconds: longest time between two scheduled comparisons; None without a schedule.
        retries: tries of tasks after the first, by the id of the task.
        tables: its tables.
        lake_tables: its tables in the lake.
        cover_period_seconds: within which each key range is to be compared; None without ``verify.cover_every``.
    """

    source: str
    lag_seconds: float | None = None
    lag_bytes: int | None = None
    catch_up_seconds: float | None = None
    epoch: int | None = None
    windows_in_flight: int | None = None
    windows_pending: int | None = None
    snapshots_pending: int | None = None
    retention_left_seconds: float | None = None
    server_seen_seconds: float | None = None
    quarantined: int | None = None
    stopped: int | None = None
    cut_age_seconds: float | None = None
    merge_seconds: float | None = None
    merged: MergeTotals | None = None
    drain_seconds: float | None = None
    verify_interval_seconds: float | None = None
    retries: tuple[tuple[str, int], ...] = ()
    tables: tuple[TableFigures, ...] = ()
    lake_tables: tuple[LakeTableFigures, ...] = ()
    cover_period_seconds: float | None = None
