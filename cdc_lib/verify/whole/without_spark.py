"""Compares whole tables in this process: the server of the source makes its checksums, while the reading client reads the lake."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from cdc_lib.config import SourceConfig
from cdc_lib.config.verify import VerifyConfig
from cdc_lib.errors import CdcError
from cdc_lib.lake.catalog import open_catalog, translate_errors
from cdc_lib.model.table_name import TableName
from cdc_lib.model.verify import Report
from cdc_lib.source import Source
from cdc_lib.verify.lake_sums import ArrowLakeSums
from cdc_lib.verify.lake_tables import LakeTables
from cdc_lib.verify.whole.tables import Say, Verifier


@dataclass(frozen=True, slots=True)
class Compared:
    """What was compared without Spark.

    Args:
        report: of these tables; it is stored.
        unread: the tables that have to be read with Spark, and why.
    """

    report: Report
    unread: dict[TableName, str]

    def joined(self, others: Report) -> Report:
        """Return the report with other tables, or later reports of the same ones."""
        later = {one.table for one in others.tables}
        tables = [one for one in self.report.tables if one.table not in later]
        return replace(self.report, tables=(*tables, *others.tables), ended_at=others.ended_at)


def open_lake(config: SourceConfig) -> LakeTables:
    """Open the catalog of a source; close it.

    Raises:
        LakeMissing: there is no lake yet.
        ConfigError: its catalog cannot be read without Spark.
        StoreError: the catalog cannot be opened.
    """
    with translate_errors():
        return LakeTables(open_catalog(config), config.source)


def compare(
    source: Source,
    lake: LakeTables,
    patterns: Sequence[str],
    settings: VerifyConfig,
    say: Say,
    sleep: Callable[[float], None] = time.sleep,
) -> Compared:
    """Compare tables, and store the report; see :meth:`cdc_lib.verify.whole.tables.Verifier.run`.

    Raises:
        StoreUnavailable: the lake's catalog or storage does not answer.
        CdcError: see :meth:`cdc_lib.verify.whole.tables.Verifier.run`.
    """
    unread: dict[TableName, str] = {}

    def needs_spark(table: TableName, error: CdcError) -> None:
        unread[table] = error.message

    sums = ArrowLakeSums(lake)
    verifier = Verifier(source, sums, sleep=sleep, needs_spark=needs_spark)
    report = verifier.run(patterns, settings, say)
    tables = tuple(one for one in report.tables if one.table not in unread)
    return Compared(replace(report, tables=tables), unread)
