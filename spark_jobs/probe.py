"""Check what Spark's executors can do: ``python -m spark_jobs.probe --config dags/sources/shop.yaml --report FILE``.

The report is a list of findings. What is missing is a finding, and no error of the job.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path

from cdc_lib.config.source import SourceConfig
from cdc_lib.doctor.examine import Check, side_by_side
from cdc_lib.model.finding import Finding
from spark_jobs.job import arguments_of, ended
from spark_jobs.probing.checks import WAIT_FOR_TASK, check_lake, check_store, check_tasks
from spark_jobs.probing.limits import hurried
from spark_jobs.runtime.session import application

PATIENCE = 90.0
"""Time limit for the store and the lake, in seconds. A task is tried four times on a Spark server."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Check, and write the findings to a file."""
    parser = arguments_of("spark_jobs.probe", "Check what Spark's executors can do.")
    parser.add_argument("--report", help="file to leave the findings in, as JSON")
    return ended(parser, arguments, _report)


def _report(config: SourceConfig, options: argparse.Namespace) -> int:
    found = probe(config)
    if options.report:
        Path(options.report).write_text(json.dumps([asdict(finding) for finding in found]))
    return 0


def probe(config: SourceConfig) -> list[Finding]:
    """Start Spark, or use that of the server, and return the findings."""
    hasty = hurried(config)
    with application(hasty) as spark:
        first: dict[str, Check] = {"a task": partial(check_tasks, spark, hasty)}
        tasks = side_by_side(first, WAIT_FOR_TASK * 2)
        if any(finding.is_bad for finding in tasks):
            return tasks
        checks: dict[str, Check] = {
            "the store from Spark": partial(check_store, spark, hasty),
            "the lake from Spark": partial(check_lake, spark, hasty),
        }
        return [*tasks, *side_by_side(checks, PATIENCE)]


if __name__ == "__main__":
    sys.exit(main())
