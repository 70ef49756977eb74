"""What all Spark jobs have in common: their arguments, their log-in, and how they end.

Exit status: 0 done or nothing to do, 75 try again later, 2 a wrong source file, 1 anything else.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from cdc_lib.config.credentials import Credentials, credentials_from_environment, mask_key_from_environment
from cdc_lib.config.load import load_source
from cdc_lib.config.source import SourceConfig
from cdc_lib.errors import CdcError, ConfigError, dump_error
from spark_jobs.runtime.log_lines import log_to_stderr, say

TRY_AGAIN = 75
"""Exit status of a failure that may be gone the next time (EX_TEMPFAIL)."""

Work = Callable[[SourceConfig, argparse.Namespace], str | int]
"""Does the job for a source and returns one line about it, or an exit status where it said all itself."""


def arguments_of(program: str, description: str) -> argparse.ArgumentParser:
    """Return a parser of what every job is told."""
    parser = argparse.ArgumentParser(prog=f"python -m {program}", description=description)
    parser.add_argument("--config", required=True, help="the source's YAML file, or its name below --source-dir")
    parser.add_argument("--source-dir", help="folder of source files, for --config NAME")
    parser.add_argument("--by", default=program, help="who asks for it, for the record")
    parser.add_argument("--error", help="file to leave the error in that ends the job, as JSON, instead of printing it")
    return parser


def ended(parser: argparse.ArgumentParser, arguments: Sequence[str] | None, work: Work) -> int:
    """Do the job and return its exit status; an error is one line that begins with its name, or a file where one is named."""
    options = parser.parse_args(arguments)
    log_to_stderr()
    try:
        config = load_source(_file(options.config, options.source_dir))
        outcome = work(config, options)
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


def log_in(config: SourceConfig, handed: Credentials | None) -> Credentials:
    """Return the log-in that was handed to this process, or else that of its environment.

    Raises:
        ConfigError: there is neither.
    """
    if handed is not None:
        return handed
    return replace(credentials_from_environment(config.server), mask_key=mask_key_from_environment(config))


def _file(config: str, folder: str | None) -> Path:
    return Path(folder) / f"{config.removesuffix('.yaml')}.yaml" if folder else Path(config)
