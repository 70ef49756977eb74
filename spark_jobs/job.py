"""Common parts of all Spark jobs: arguments, log-in and exit status.

Exit status: 0 done or nothing to do, 75 try again later, 2 a wrong source file, 1 anything else.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from cdc_lib.config.credentials import Credentials, credentials_from_environment, mask_key_from_environment
from cdc_lib.config.load import load_source, sent_source
from cdc_lib.config.source import SourceConfig
from cdc_lib.errors import CdcError, ConfigError, dump_error
from spark_jobs.disks import disks_of
from spark_jobs.runtime.log_lines import log_to_stderr, say

TRY_AGAIN = 75
"""Exit status of a temporary failure (EX_TEMPFAIL)."""

Work = Callable[[SourceConfig, argparse.Namespace], str | int]
"""Does the job for a source; returns one line to print, or an exit status if it printed everything itself."""


def arguments_of(program: str, description: str) -> argparse.ArgumentParser:
    """Return a parser of the arguments of all jobs."""
    parser = argparse.ArgumentParser(prog=f"python -m {program}", description=description)
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--config", help="the source's YAML file, or its name below --source-dir")
    source.add_argument(
        "--values", type=Path, help="file with the source's values as JSON, which are taken as they are"
    )
    parser.add_argument("--source-dir", help="folder of source files, for --config NAME")
    parser.add_argument("--by", default=program, help="who asks for it, for the record")
    parser.add_argument(
        "--spark-conf", action="append", default=[], metavar="NAME=VALUE", help="a setting of Spark over merge.conf"
    )
    parser.add_argument("--spark-master", help="where Spark runs its tasks, over merge.spark_master")
    parser.add_argument("--error", help="file to leave the error in that ends the job, as JSON, instead of printing it")
    return parser


def ended(parser: argparse.ArgumentParser, arguments: Sequence[str] | None, work: Work) -> int:
    """Do the job and return its exit status; an error is printed in one line, or written to the ``--error`` file."""
    options = parser.parse_args(arguments)
    log_to_stderr()
    try:
        config = with_spark_conf(_source(options), options.spark_conf)
        config = with_spark_master(config, options.spark_master)
        outcome = _done(work, config, options)
    except CdcError as error:
        if options.error:
            Path(options.error).write_bytes(dump_error(error))
        else:
            say(f"{type(error).__name__}: {error}", sys.stderr)
        return 2 if isinstance(error, ConfigError) else TRY_AGAIN if error.retryable else 1
    if isinstance(outcome, int):
        return outcome
    say(f"{config.source}: {outcome}")
    return 0


def _done(work: Work, config: SourceConfig, options: argparse.Namespace) -> int | str:
    try:
        return work(config, options)
    except CdcError as error:
        error.fill(source=config.source, disks=disks_of(config))
        raise


def with_spark_conf(config: SourceConfig, settings: Sequence[str]) -> SourceConfig:
    """Return a source with further settings of Spark, each ``name=value``.

    Raises:
        ConfigError: one is not.
    """
    more = spark_conf(settings, "--spark-conf")
    merge = config.merge.model_copy(update={"conf": {**config.merge.conf, **more}})
    return config.model_copy(update={"merge": merge}) if more else config


def with_spark_master(config: SourceConfig, master: str | None) -> SourceConfig:
    """Return a source whose Spark runs its tasks elsewhere; None leaves it as it is."""
    merge = config.merge.model_copy(update={"spark_master": master})
    return config if master is None else config.model_copy(update={"merge": merge})


def spark_conf(settings: Sequence[str], option: str) -> dict[str, str]:
    """Return Spark's settings, each given as ``name=value``.

    Args:
        settings: values of an option.
        option: its name, for the error.

    Raises:
        ConfigError: one is not a setting of Spark.
    """
    for setting in settings:
        if not re.match(r"spark\.[^=\s]+=", setting):
            raise ConfigError(f"{option} {setting!r} is not a Spark setting", hint="Write spark.NAME=VALUE.")
    return dict(setting.split("=", 1) for setting in settings)


def log_in(config: SourceConfig, handed: Credentials | None) -> Credentials:
    """Return the log-in that was passed to this process, or else that of its environment.

    Raises:
        ConfigError: both are missing.
    """
    if handed is not None:
        return handed
    return replace(credentials_from_environment(config.server), mask_key=mask_key_from_environment(config))


def _source(options: argparse.Namespace) -> SourceConfig:
    if options.values is not None:
        return sent_source(options.values)
    folder, config = options.source_dir, options.config
    return load_source(Path(folder) / f"{config.removesuffix('.yaml')}.yaml" if folder else config)
