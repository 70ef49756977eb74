"""Compare tables of a source with the lake: ``python -m spark_jobs.verify --config dags/sources/shop.yaml --report FILE``.

Exit status: 0 no drift, 3 drift, 75 try again later, 2 a wrong source file, 1 anything else.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from cdc_lib.config import SourceConfig
from cdc_lib.config.credentials import Credentials, take_handed
from cdc_lib.config.verify import VerifyConfig
from cdc_lib.model.verify import Report
from cdc_lib.pipeline import Pipeline
from cdc_lib.store import documents
from cdc_lib.verifying import Verifying, rows_to_compare
from spark_jobs.entry import arguments_of, ended, log_in
from spark_jobs.lake_sums import SparkLakeSums
from spark_jobs.repair import SparkMender
from spark_jobs.session import spark_session

DRIFT = 3
"""Exit status of a comparison that found rows which are wrong."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Compare, and leave the report in a file."""
    parser = arguments_of("spark_jobs.verify", "Compare tables with the lake.")
    parser.add_argument("--report", help="file to leave the report in, as JSON")
    parser.add_argument("--wait", type=float, help="seconds that rows in flight are waited for, per table")
    parser.add_argument("--pause", type=float, help="seconds between two statements at the source")
    parser.add_argument("--repair", action="store_true", help="write the source's rows over those that are wrong")
    parser.add_argument("tables", nargs="*", help="patterns of tables; those of verify.tables without")
    return ended(parser, arguments, partial(_reported, handed=take_handed()))


def _reported(config: SourceConfig, options: argparse.Namespace, *, handed: Credentials | None) -> int:
    given = {name: value for name in ("wait", "pause") if (value := getattr(options, name)) is not None}
    settings = config.verify.model_copy(update=given)
    report = verify(config, log_in(config, handed), options.tables, settings, repair=options.repair)
    if options.report:
        Path(options.report).write_bytes(documents.dump(report))
    return 0 if report.clean else DRIFT


def verify(
    config: SourceConfig, credentials: Credentials, tables: Sequence[str], settings: VerifyConfig, *, repair: bool
) -> Report:
    """Start Spark and compare."""
    pipeline = Pipeline.open(config, credentials)
    rows = rows_to_compare(config, credentials, pipeline.cursors, tables, settings)
    with spark_session(config, rows) as spark:
        lake = SparkLakeSums(spark, config.source)
        mender = SparkMender(spark, config, pipeline.store, pipeline.reselector()) if repair else None
        verifying = Verifying(config, credentials, pipeline.store, pipeline.cursors, lake, mender)
        return verifying.run(tables, settings, print)


if __name__ == "__main__":
    sys.exit(main())
