"""Merge the batches of a plan into the lake: ``python -m spark_jobs.merge --config dags/sources/shop.yaml``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from cdc_lib.config.credentials import Credentials, take_handed
from cdc_lib.config.source import SourceConfig
from cdc_lib.merge.planner import Merging
from cdc_lib.model.pace import counted
from cdc_lib.source import Source
from spark_jobs.job import arguments_of, ended, log_in
from spark_jobs.merging.run import run

if TYPE_CHECKING:
    from cdc_lib.reselect.rows import Reselector

__all__ = ["main", "run"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Merge the batches in flight at the lake cursor; returns 0 also if there is nothing to do."""
    work = partial(_merge, handed=take_handed())
    return ended(arguments_of("spark_jobs.merge", "Merge batches into the lake."), arguments, work)


def _merge(config: SourceConfig, options: argparse.Namespace, *, handed: Credentials | None) -> str:
    # Planning a merge reads the store alone; no log-in to the source is needed for it.
    source = Source.open(config, Credentials("", ""))
    again = partial(Merging(source).plan, options.by)
    plan = again()
    if plan is None:
        return "nothing to merge"
    origin = partial(_reselector, config, handed) if config.reselect.is_on else None
    cut = run(config, plan, source.store, origin, again)
    if cut is None:
        return "nothing to merge"
    return f"cut {cut.merge_id} at {cut.position}, {counted(sum(t.changes for t in cut.tables), 'change')}"


def _reselector(config: SourceConfig, handed: Credentials | None) -> Reselector:
    """Return a re-selector of the source's rows."""
    from cdc_lib.reselect.rows import Reselector

    return Reselector.of(Source.open(config, log_in(config, handed)))


if __name__ == "__main__":
    sys.exit(main())
