"""Compare tables of a source with the lake: ``python -m spark_jobs.verify --config dags/sources/shop.yaml --report FILE``.

Exit status: 0 no drift, 3 drift or no table compared, 75 try again later, 2 a wrong source file, 1 anything else.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from cdc_lib.config import SourceConfig
from cdc_lib.config.base import duration
from cdc_lib.config.credentials import Credentials, take_handed
from cdc_lib.config.verify import VerifyConfig
from cdc_lib.model.verify import Report
from cdc_lib.reselect.rows import Reselector
from cdc_lib.source import Source
from cdc_lib.store import documents
from cdc_lib.verify.whole.tables import Verifier, rows_to_compare
from spark_jobs.job import arguments_of, ended, log_in
from spark_jobs.merging.checksums import SparkLakeSums
from spark_jobs.merging.repair import SparkRepairer
from spark_jobs.runtime.log_lines import say as say_line
from spark_jobs.runtime.session import spark_session

DRIFT = 3
"""Exit status of a comparison that found wrong rows, or compared no table."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Compare tables and write the report to a file."""
    parser = arguments_of("spark_jobs.verify", "Compare tables with the lake.")
    parser.add_argument("--report", help="file to leave the report in, as JSON")
    parser.add_argument("--wait", type=duration, help="how long rows in flight are waited for, per table: 60s")
    parser.add_argument("--statement-delay", type=duration, help="time between two statements at the source: 100ms")
    parser.add_argument("--repair", action="store_true", help="write the source's rows over those that are wrong")
    parser.add_argument("tables", nargs="*", help="patterns of tables; those of verify.tables without")
    return ended(parser, arguments, partial(_reported, handed=take_handed()))


def _reported(config: SourceConfig, options: argparse.Namespace, *, handed: Credentials | None) -> int:
    given = {name: value for name in ("wait", "statement_delay") if (value := getattr(options, name)) is not None}
    settings = config.verify.model_copy(update=given)
    report = verify(config, log_in(config, handed), options.tables, settings, repair=options.repair)
    if options.report:
        Path(options.report).write_bytes(documents.dump(report))
    return DRIFT if report.compared_nothing or not report.clean else 0


def verify(
    config: SourceConfig, credentials: Credentials, tables: Sequence[str], settings: VerifyConfig, *, repair: bool
) -> Report:
    """Start Spark and compare."""
    source = Source.open(config, credentials)
    rows = rows_to_compare(source, tables, settings)
    with spark_session(config, rows, source.store if repair else None) as spark:
        lake = SparkLakeSums(spark, config.source)
        repairer = SparkRepairer(spark, config, source.store, Reselector.of(source)) if repair else None
        verifier = Verifier(source, lake, repairer)
        return verifier.run(tables, settings, say_line)


if __name__ == "__main__":
    sys.exit(main())
