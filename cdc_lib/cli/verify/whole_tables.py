"""``cdc verify`` of whole tables, for :mod:`cdc_lib.cli.verify.tables`: in this process, and with Spark what only Spark can do."""

from __future__ import annotations

import importlib
import importlib.util
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from cdc_lib.cli import job
from cdc_lib.cli.context import checked_duration, config_of
from cdc_lib.cli.pipelines import open_pipeline
from cdc_lib.config import Loaded
from cdc_lib.config.base import duration
from cdc_lib.errors import ConfigError, LakeMissing, StoreError, StoreUnavailable
from cdc_lib.model.verify import Report
from cdc_lib.pipeline import Pipeline
from cdc_lib.store import documents

if TYPE_CHECKING:
    from cdc_lib.verify.whole.without_spark import Compared


def compared(
    loaded: Loaded, tables: Sequence[str], *, repair: bool, spark: bool, wait: str | None, statement_delay: str | None
) -> Report:
    """Compare tables and return the report. Lines of what is done go to the error stream.

    Args:
        loaded: the source.
        tables: patterns; ``verify.tables`` if empty.
        repair: whether wrong rows are repaired, which takes Spark.
        spark: whether Spark reads the whole lake.
        wait: how long rows in flight are waited for; None as in the source file.
        statement_delay: time between two statements at the source; None as in the source file.
    """
    pipeline = open_pipeline(config_of(loaded))  # reports a missing password before Spark starts
    given = {"--wait": wait, "--statement-delay": statement_delay}
    durations = {option: checked_duration(option, text) for option, text in given.items() if text is not None}
    found = None if spark else _in_this_process(pipeline, tables, durations)
    if found is None:
        return _with_spark(loaded, tables, durations, repair=repair)
    for table, why in found.unread.items():
        _say(f"{table}: read with Spark: {why}")
    wrong = [one.table for one in found.report.tables if repair and one.drift]
    rest = list(dict.fromkeys(map(str, (*found.unread, *wrong))))
    if not rest:
        return found.report
    return found.joined(_with_spark(loaded, rest, durations, repair=repair))


def _in_this_process(pipeline: Pipeline, tables: Sequence[str], durations: dict[str, str]) -> Compared | None:
    """Compare the tables that can be read without Spark; None if none can, after a line that says why."""
    config = pipeline.config
    if importlib.util.find_spec("pyiceberg") is None:
        _say_needed(config.source, "pyiceberg is not installed")
        return None
    run = importlib.import_module("cdc_lib.verify.whole.without_spark")
    try:
        lake = run.open_lake(config)
    except LakeMissing:
        raise  # Spark would find no table either.
    except (ConfigError, StoreError) as error:
        _say_needed(config.source, error.message)
        return None
    named = {option.removeprefix("--").replace("-", "_"): duration(text) for option, text in durations.items()}
    settings = config.verify.model_copy(update=named)
    try:
        found: Compared = run.compare(pipeline, lake, tables, settings, _say)
    except StoreUnavailable as error:
        _say_needed(config.source, error.message)
        return None
    finally:
        lake.catalog.close()
    return found


def _say_needed(source: str, why: str) -> None:
    _say(f"{source}: the lake is read with Spark: {why}")


def _with_spark(loaded: Loaded, tables: Sequence[str], durations: dict[str, str], *, repair: bool) -> Report:
    with tempfile.TemporaryDirectory(prefix="cdc-verify-") as folder:
        file = Path(folder) / "report.json"
        settings = [f"{option}={text}" for option, text in durations.items()]
        given = [*(["--repair"] if repair else []), *settings, "--", *tables]
        job.run_job("verify", loaded, *given, good=(0, job.DRIFT), to_stderr=True, report=file)
        return documents.load(Report, file.read_bytes(), "the report of the comparison")


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
