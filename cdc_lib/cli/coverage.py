"""``cdc verify --cover``: the key ranges that are due, for :mod:`cdc_lib.cli.verify`; and their lines in ``cdc status``."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

import typer

from cdc_lib.cli import job
from cdc_lib.cli.context import config_of
from cdc_lib.cli.output import plain, print_json, say
from cdc_lib.cli.pipelines import open_pipeline
from cdc_lib.config import Loaded, SourceConfig
from cdc_lib.model.pace import counted
from cdc_lib.model.results import Status
from cdc_lib.status.coverage import coverage_findings, current, summary_of
from cdc_lib.verify.coverage.start import compare_due_ranges, said


def run(loaded: Loaded, tables: Sequence[str], *, as_json: bool) -> None:
    """Compare what is due and print the result; exits with 1 when rows are wrong, also if they are repaired then."""
    pipeline = open_pipeline(config_of(loaded))
    done = compare_due_ranges(pipeline.config, pipeline.credentials, pipeline.store, pipeline.cursors, tables)
    if as_json:
        print_json([plain(one) for one in done])
    else:
        for is_warning, line in said(loaded.source, done):
            say(line, style="red" if is_warning else "")
        if not done:
            say(f"{loaded.source}: no key range is due")
    wrong = [str(one.table) for one in done if one.coverage.wrong]
    if wrong and pipeline.config.verify.on_difference == "repair":
        job.run_job("verify", loaded, "--repair", "--", *wrong, good=(0, job.DRIFT), to_stderr=True)
    if wrong:
        raise typer.Exit(1)


def say_coverage(outcome: Status, config: SourceConfig | None) -> None:
    """Print how much of the tables was compared by ranges, and what is wrong or late."""
    if config is None or (not outcome.coverage and config.verify.cover_every is None):
        return
    coverages = current(outcome.coverage, config.verify, outcome.last_cut)
    source, now, period = outcome.source, datetime.now(UTC), config.verify.cover_every
    if period is not None and (found := summary_of(coverages, period, now)) is not None:
        tables = counted(found.tables, "table")
        since = max(found.since, now - period)
        oldest, one = found.oldest, found.oldest_range
        last = (
            f"oldest range: {oldest.table}, compared {one.at:%Y-%m-%d %H:%M:%S} UTC as of {one.position}"
            if one is not None
            else f"some ranges of {oldest.table} were not compared yet"
        )
        say(
            f"{source}: {found.ratio:.0%} of the rows of {tables} were compared by ranges since {since:%Y-%m-%d %H:%M:%S} UTC; {last}"
        )
    for left in coverages if period is not None else ():
        if left.skipped:
            say(f"{source}: {left.table} is not compared by ranges: {left.skipped}")
    began = outcome.lake.began_at if outcome.lake is not None else None
    findings = coverage_findings(
        source, config.verify, outcome.coverage, outcome.verified, outcome.last_cut, now, began
    )
    for finding in findings:
        say(f"{source}: {finding.what}. {finding.hint}", style="red" if finding.level == "error" else "yellow")
