"""Merge the batches of a plan into the lake: ``python -m spark_jobs.merge --config dags/sources/shop.yaml``.

Exit status: 0 merged or nothing to do, 75 try again later, 2 a wrong source file, 1 anything else.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from cdc_lib.config.credentials import (
    Credentials,
    credentials_from_environment,
    mask_key_from_environment,
    take_handed,
)
from cdc_lib.config.load import load_source
from cdc_lib.config.source import SourceConfig
from cdc_lib.errors import CdcError, ConfigError
from cdc_lib.pipeline import Pipeline
from cdc_lib.reselecting import Reselector
from spark_jobs.application import run

__all__ = ["main", "run"]

TRY_AGAIN = 75
"""Exit status of a failure that may be gone the next time (EX_TEMPFAIL)."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Merge what the lake cursor has in flight; 0 also when there is nothing to do."""
    parser = argparse.ArgumentParser(prog="python -m spark_jobs.merge", description="Merge batches into the lake.")
    parser.add_argument("--config", required=True, help="the source's YAML file, or its name below --source-dir")
    parser.add_argument("--source-dir", help="folder of source files, for --config NAME")
    parser.add_argument("--by", default="spark_jobs.merge", help="who merges, for the cursor's record")
    options = parser.parse_args(arguments)
    handed = take_handed()
    try:
        config = load_source(_file(options.config, options.source_dir))
        # Planning a merge reads the store alone; no log-in to the source is needed for it.
        pipeline = Pipeline.open(config, Credentials("", ""))
        plan = pipeline.plan_merge(by=options.by)
        if plan is None:
            print(f"{config.source}: nothing to merge")
            return 0
        origin = partial(_reselector, config, handed) if config.reselect.is_on else None
        cut = run(config, plan, pipeline.store, origin)
    except CdcError as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        return 2 if isinstance(error, ConfigError) else TRY_AGAIN if error.retryable else 1
    print(f"{config.source}: cut {cut.merge_id} at {cut.position}, {sum(t.changes for t in cut.tables)} changes")
    return 0


def _reselector(config: SourceConfig, handed: Credentials | None) -> Reselector:
    """Open the way to the source, with what was handed to this process or else from its environment."""
    if handed is None:
        handed = replace(credentials_from_environment(config.server), mask_key=mask_key_from_environment(config))
    return Pipeline.open(config, handed).reselector()


def _file(config: str, folder: str | None) -> Path:
    return Path(folder) / f"{config.removesuffix('.yaml')}.yaml" if folder else Path(config)


if __name__ == "__main__":
    sys.exit(main())
