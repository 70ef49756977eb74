"""Maintain the lake tables of a source: ``python -m spark_jobs.maintain --config dags/sources/shop.yaml``."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import TypeVar

from pyspark.sql import SparkSession
from tenacity import Retrying, retry_if_exception_type, stop_after_attempt

from cdc_lib.config.source import SourceConfig
from cdc_lib.errors import ConfigError, MergeConflict
from cdc_lib.lake.layout import layout_of
from cdc_lib.lake.routing import lake_merges
from cdc_lib.lake.upkeep_need import pressing
from cdc_lib.model.lake_table import LakeName
from cdc_lib.model.lake_upkeep import Maintained
from cdc_lib.model.layout import Layout
from cdc_lib.model.merge_plan import Cut
from cdc_lib.model.pace import counted, listed
from cdc_lib.model.table_name import TableName
from cdc_lib.ports import ObjectStore
from cdc_lib.store.cuts import last_cut, named_snapshots
from cdc_lib.store.objects.open import open_store
from spark_jobs.job import arguments_of, ended
from spark_jobs.lake_format import LAKE_FORMAT
from spark_jobs.runtime.log_lines import say as say_line
from spark_jobs.runtime.parallel_tables import in_parallel
from spark_jobs.runtime.session import spark_session

ATTEMPTS = 3
"""Attempts per table when a merge commits first."""

_LISTED = 20
"""Tables that wait and are named; a source may have thousands."""

PURGE = {"max_deleted_ratio": 1e-9, "keep_snapshots_for": timedelta(), "run_for": None}
"""Settings of a run that leaves no file of which a row is deleted: only the last cut and the last merge keep snapshots."""

Result = TypeVar("Result")


def main(arguments: Sequence[str] | None = None) -> int:
    """Maintain the lake tables that the last cut names."""
    parser = arguments_of("spark_jobs.maintain", "Keep lake tables small and quick to read.")
    parser.add_argument("--table", action="append", default=[], help="database.table at the source; all without")
    parser.add_argument("--purge", action="store_true", help="remove the files of deleted rows now")
    return ended(parser, arguments, _maintain)


def _maintain(config: SourceConfig, options: argparse.Namespace) -> str:
    if options.purge:
        config = config.model_copy(update={"maintenance": config.maintenance.model_copy(update=PURGE)})
    store = open_store(config.store)
    names = lake_tables(config, last_cut(store, config.source), options.table)
    if not names:
        return "nothing is merged yet: a table is maintained from its first cut on, and cdc status shows a merge that failed"
    with spark_session(config, store=store) as spark:
        maintained = maintain(spark, config, store, names)
    waiting = len(names) - len(maintained)
    rewritten, added = sum(one.rewritten for one in maintained), sum(one.added for one in maintained)
    snapshots, orphans = sum(one.snapshots for one in maintained), sum(one.orphans for one in maintained)
    removed = f"{counted(snapshots, 'snapshot')}, {counted(orphans, 'lost file')}"
    wait = f"; {counted(waiting, 'table')} left for the next run" if waiting else ""
    return f"{counted(rewritten, 'file')} became {added:,}; removed: {removed}{wait}"


def lake_tables(config: SourceConfig, cut: Cut | None, chosen: Sequence[str]) -> list[LakeName]:
    """Return the lake tables of the chosen source tables; all if none is chosen.

    Raises:
        ConfigError: the lake has no rows of a chosen table.
    """
    known = [one.table for one in cut.tables] if cut is not None else []
    chosen = [TableName.parse(table) for table in chosen]
    if unknown := sorted(set(chosen) - set(known)):
        raise ConfigError(
            f"the lake has nothing of {', '.join(unknown)}",
            hint=f"It has {', '.join(sorted(set(known))) or 'no tables yet'}.",
            source=config.source,
        )
    names = {one.lake_table for one in cut.tables if not chosen or one.table in chosen} if cut is not None else set()
    return [lake.name for lake in lake_merges(config, known) if str(lake.name) in names]


def layouts_of(config: SourceConfig, cut: Cut | None, names: Sequence[LakeName]) -> dict[LakeName, Layout]:
    """Return the layout of each lake table in the source file.

    Raises:
        ConfigError: tables that share a lake table have different layouts.
    """
    known = [one.table for one in cut.tables] if cut is not None else []
    lakes = {lake.name: lake for lake in lake_merges(config, known)}
    return {name: layout_of(config, lakes[name]) for name in names}


def maintain(
    spark: SparkSession,
    config: SourceConfig,
    store: ObjectStore,
    names: Sequence[LakeName],
    say: Callable[[str], None] = say_line,
) -> list[Maintained]:
    """Maintain lake tables in a running Spark application; with ``maintenance.run_for``, those that need it most come first.

    Args:
        spark: a session that :func:`spark_jobs.runtime.session.connect_catalog` has seen.
        config: the source.
        store: holds the cuts.
        names: the tables.
        say: receives one line for each table.

    Returns:
        What was done with each table. Those that ``maintenance.run_for`` left for the next run are missing.

    Raises:
        CdcError: of a table; the others are maintained.
        WrongClock: this machine's clock is before the last commit of a table.
    """
    at, limit = datetime.now(UTC), config.maintenance.run_for
    named = named_snapshots(store, config.source, at - config.maintenance.keep_snapshots_for)
    layouts = layouts_of(config, last_cut(store, config.source), names)
    maintenance = LAKE_FORMAT.maintenance(spark, layouts, config.maintenance)
    retry = Retrying(stop=stop_after_attempt(ATTEMPTS), retry=retry_if_exception_type(MergeConflict), reraise=True)

    started = time.monotonic()
    ordered = list(names) if limit is None else _most_pressing_first(spark, config, names, layouts, at, say)

    def work(session: SparkSession, name: LakeName) -> Maintained | None:
        began = time.monotonic()
        # The first table is always begun, so that every run gets on.
        if limit is not None and name != ordered[0] and began - started >= limit.total_seconds():
            return None
        done: Maintained = retry.copy()(maintenance, session, name, named, at)
        say(_line(done, time.monotonic() - began))
        return done

    results = _on_each(spark, config, ordered, work, say)
    if waiting := [str(name) for name, done in zip(ordered, results, strict=True) if done is None]:
        more = f" and {len(waiting) - _LISTED} more" if len(waiting) > _LISTED else ""
        say(f"maintenance.run_for is over; for the next run wait {', '.join(waiting[:_LISTED])}{more}")
    return [done for done in results if done is not None]


def _most_pressing_first(
    spark: SparkSession,
    config: SourceConfig,
    names: Sequence[LakeName],
    layouts: Mapping[LakeName, Layout],
    at: datetime,
    say: Callable[[str], None],
) -> list[LakeName]:
    """Return the tables in the order in which they need maintenance; those that do not exist are last."""
    need_of = LAKE_FORMAT.need(layouts, config.maintenance)
    needs = _on_each(spark, config, names, lambda session, name: need_of(session, name, at), say)
    pressed = [
        (pressing(need, config.maintenance) if need is not None else (False, -1.0), name)
        for need, name in zip(needs, names, strict=True)
    ]
    return [name for _, name in sorted(pressed, key=lambda one: one[0], reverse=True)]


def _on_each(
    spark: SparkSession,
    config: SourceConfig,
    names: Sequence[LakeName],
    work: Callable[[SparkSession, LakeName], Result],
    say: Callable[[str], None],
) -> list[Result]:
    return in_parallel(
        spark,
        config,
        {str(name): name for name in names},
        work,
        say,
        done="maintained",
        hint="The other tables are done.",
    )


def _line(done: Maintained, seconds: float) -> str:
    if done.missing:
        return f"{done.table}: skipped, because it does not exist; the next merge reports what to do"
    rewritten = f"{done.rewritten:,} of {counted(done.files, 'file')} became {done.added:,} ({done.bytes / 1e6:.1f} MB)"
    removed = listed((done.deletes, "delete file"), (done.snapshots, "snapshot"), (done.orphans, "lost file"))
    columns = counted(done.statistics, "column")
    figures = f", values of {columns} counted ({done.statistics_bytes / 1e3:.1f} kB)" if done.statistics else ""
    skipped = f"; no lost files were looked for, because {done.in_the_way}" if done.in_the_way else ""
    laid_out = ", layout of the source file applied" if done.laid_out else ""
    return f"{done.table}: {rewritten}{laid_out}, removed: {removed or 'nothing'}{figures} in {seconds:.1f} s{skipped}"


if __name__ == "__main__":
    sys.exit(main())
