"""``cdc verify ranges``: the key ranges that are due, without Spark."""

from __future__ import annotations

import typer

from cdc_lib.cli import job
from cdc_lib.cli.context import AsJson, ComparedTables, SourceName, config_of, find
from cdc_lib.cli.output import plain, print_json, say
from cdc_lib.cli.pipelines import open_pipeline
from cdc_lib.verify.coverage.start import compare_due_ranges, said


def ranges(
    context: typer.Context,
    source: SourceName,
    tables: ComparedTables = None,
    as_json: AsJson = False,
) -> None:
    """Compare the key ranges that are due by verify.cover_every; exits with 1 when rows are wrong.

    Each range of each table is compared within that period, without Spark. Call it on a schedule. It exits with 1 also when the rows
    are repaired then, as verify.on_difference says.

    Example:
        cdc verify ranges shop
        cdc verify ranges shop shop.orders
    """
    loaded = find(context, source)
    pipeline = open_pipeline(config_of(loaded))
    done = compare_due_ranges(pipeline, tables or [])
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
