"""Compare tables of a source with the lake: ``python -m spark_jobs.verify --config dags/sources/shop.yaml --report FILE``.

Exit status: 0 no drift, 3 drift, 75 try again later, 2 a wrong source file, 1 anything else.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from cdc_lib.config import SourceConfig
from cdc_lib.config.credentials import (
    Credentials,
    credentials_from_environment,
    mask_key_from_environment,
    take_handed,
)
from cdc_lib.config.load import load_source
from cdc_lib.config.verify import VerifyConfig
from cdc_lib.errors import CdcError, ConfigError
from cdc_lib.model.verify import Report
from cdc_lib.pipeline import Pipeline
from cdc_lib.store import documents
from cdc_lib.verifying import Verifying
from spark_jobs.entry import TRY_AGAIN
from spark_jobs.lake_sums import SparkLakeSums
from spark_jobs.repair import SparkMender
from spark_jobs.session import spark_session

DRIFT = 3
"""Exit status of a comparison that found rows which are wrong."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Compare, and leave the report in a file."""
    parser = argparse.ArgumentParser(prog="python -m spark_jobs.verify", description="Compare tables with the lake.")
    parser.add_argument("--config", required=True, help="the source's YAML file")
    parser.add_argument("--report", help="file to leave the report in, as JSON")
    parser.add_argument("--wait", type=float, help="seconds that rows in flight are waited for, per table")
    parser.add_argument("--pause", type=float, help="seconds between two statements at the source")
    parser.add_argument("--repair", action="store_true", help="write the source's rows over those that are wrong")
    parser.add_argument("tables", nargs="*", help="patterns of tables; those of verify.tables without")
    options = parser.parse_args(arguments)
    handed = take_handed()
    try:
        config = load_source(Path(options.config))
        given = {name: value for name in ("wait", "pause") if (value := getattr(options, name)) is not None}
        if handed is None:
            handed = replace(credentials_from_environment(config.server), mask_key=mask_key_from_environment(config))
        report = verify(config, handed, options.tables, config.verify.model_copy(update=given), repair=options.repair)
    except CdcError as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        return 2 if isinstance(error, ConfigError) else TRY_AGAIN if error.retryable else 1
    if options.report:
        Path(options.report).write_bytes(documents.dump(report))
    return 0 if report.clean else DRIFT


def verify(
    config: SourceConfig, credentials: Credentials, tables: Sequence[str], settings: VerifyConfig, *, repair: bool
) -> Report:
    """Start Spark and compare."""
    pipeline = Pipeline.open(config, credentials)
    with spark_session(config) as spark:
        lake = SparkLakeSums(spark, config.source)
        mender = SparkMender(spark, config, pipeline.store, pipeline.reselector()) if repair else None
        verifying = Verifying(config, credentials, pipeline.store, pipeline.cursors, lake, mender)
        return verifying.run(tables, settings, print)


if __name__ == "__main__":
    sys.exit(main())
