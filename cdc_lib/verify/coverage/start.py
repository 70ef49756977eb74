"""The rolling comparison, as tasks and commands call it: the reading client is imported only when it runs."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Iterable, Iterator, Sequence

from cdc_lib.config import StoreKeys
from cdc_lib.errors import ConfigError
from cdc_lib.model.pace import counted
from cdc_lib.source import Source
from cdc_lib.verify.coverage.table import TableCoverage

SHOWN_ROWS = 10
"""Wrong rows of one table that are named; the document has more."""


def compare_due_ranges(
    source: Source, patterns: Sequence[str] = (), keys: StoreKeys | None = None
) -> list[TableCoverage]:
    """Compare the key ranges that are due, as ``verify.cover_every`` says, and keep what was found.

    Returns:
        What was done, for each table of which something was due.

    Raises:
        ConfigError: ``verify.cover_every`` is not set, or pyiceberg is not installed.
        CdcError: see :meth:`cdc_lib.verify.coverage.due_ranges.CoverageRun.run`.
    """
    if importlib.util.find_spec("pyiceberg") is None:
        raise ConfigError(
            "comparing key ranges needs pyiceberg, which is not installed",
            hint='pip install "lakecdc[read]", or verify.cover_every: null',
            source=source.name,
        )
    run = importlib.import_module("cdc_lib.verify.coverage.due_ranges")
    found: list[TableCoverage] = run.CoverageRun(source, keys).run(patterns)
    return found


def said(source: str, done: Iterable[TableCoverage]) -> Iterator[tuple[bool, str]]:
    """Yield what was found, in lines, each with whether it is a warning."""
    for one in done:
        if one.coverage.skipped:
            yield False, f"{one.table}: not compared by ranges: {one.coverage.skipped}"
            continue
        flight = f", {counted(one.in_flight, 'row')} in flight" if one.in_flight else ""
        yield False, f"{one.table}: compared {counted(one.rows, 'row')} in {counted(one.ranges, 'range')}{flight}"
        if one.failed:
            yield True, f"{one.table}: a range that is due could not be compared: {one.failed}"
        for found in one.new_wrong[:SHOWN_ROWS]:
            yield True, f"{one.table}: row {found.row.text} in {one.lake_table}"
        if wrong := len(one.coverage.wrong):
            yield (
                True,
                f"{one.table}: {counted(wrong, 'wrong row')} in the lake. cdc verify {source} {one.table.in_shell} --repair",
            )
