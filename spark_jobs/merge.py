"""Merge the batches of a plan into the lake: ``python -m spark_jobs.merge --config dags/sources/shop.yaml``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from cdc_lib.config.credentials import Credentials
from cdc_lib.config.source import SourceConfig
from cdc_lib.pipeline import Pipeline
from spark_jobs.application import run
from spark_jobs.entry import arguments_of, ended

__all__ = ["main", "run"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Merge what the lake cursor has in flight; 0 also when there is nothing to do."""
    return ended(arguments_of("spark_jobs.merge", "Merge batches into the lake."), arguments, _merge)


def _merge(config: SourceConfig, options: argparse.Namespace) -> str:
    # Planning a merge reads the store alone; no log-in to the source is needed for it.
    pipeline = Pipeline.open(config, Credentials("", ""))
    plan = pipeline.plan_merge(by=options.by)
    if plan is None:
        return "nothing to merge"
    cut = run(config, plan, pipeline.store)
    return f"cut {cut.merge_id} at {cut.position}, {sum(t.changes for t in cut.tables)} changes"


if __name__ == "__main__":
    sys.exit(main())
