"""Look after the lake tables of a source: ``python -m spark_jobs.maintain --config dags/sources/shop.yaml``."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime

from pyspark.sql import SparkSession
from tenacity import Retrying, retry_if_exception_type, stop_after_attempt

from cdc_lib.config.source import SourceConfig
from cdc_lib.errors import ConfigError, MergeConflict
from cdc_lib.lake.routing import lake_merges
from cdc_lib.model.lake_table import LakeName
from cdc_lib.model.lake_upkeep import Maintained
from cdc_lib.model.merge_plan import Cut
from cdc_lib.model.table_name import TableName
from cdc_lib.ports import ObjectStore
from cdc_lib.store.cuts import last_cut, named_snapshots
from cdc_lib.store.objects.open import open_store
from spark_jobs.job import arguments_of, ended
from spark_jobs.lake_format import LAKE_FORMAT
from spark_jobs.runtime.log_lines import say as say_line
from spark_jobs.runtime.parallel_tables import side_by_side
from spark_jobs.runtime.session import spark_session

ATTEMPTS = 3
"""How often a table is tried again when a merge came first."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Look after the lake tables that the last cut names."""
    parser = arguments_of("spark_jobs.maintain", "Keep lake tables small and quick to read.")
    parser.add_argument("--table", action="append", default=[], help="database.table at the source; all without")
    return ended(parser, arguments, _maintain)


def _maintain(config: SourceConfig, options: argparse.Namespace) -> str:
    store = open_store(config.store)
    names = lake_tables(config, last_cut(store, config.source), options.table)
    if not names:
        return "no lake tables yet"
    with spark_session(config) as spark:
        kept = maintain(spark, config, store, names)
    rewritten, added = sum(one.rewritten for one in kept), sum(one.added for one in kept)
    snapshots, orphans = sum(one.snapshots for one in kept), sum(one.orphans for one in kept)
    return f"{rewritten} files became {added}; {snapshots} snapshots and {orphans} lost files removed"


def lake_tables(config: SourceConfig, cut: Cut | None, chosen: Sequence[str]) -> list[LakeName]:
    """Return the lake tables of the chosen source tables, of all without a choice.

    Raises:
        ConfigError: the lake has nothing of a chosen one.
    """
    known = [one.table for one in cut.tables] if cut is not None else []
    chosen = [TableName.parse(table) for table in chosen]
    if unknown := sorted(set(chosen) - set(known)):
        raise ConfigError(
            f"the lake has nothing of {', '.join(unknown)}",
            hint=f"It has {', '.join(sorted(set(known))) or 'no tables yet'}.",
            source=config.source,
        )
    standing = {one.lake_table for one in cut.tables if not chosen or one.table in chosen} if cut is not None else set()
    return [lake.name for lake in lake_merges(config, known) if str(lake.name) in standing]


def maintain(
    spark: SparkSession,
    config: SourceConfig,
    store: ObjectStore,
    names: Sequence[LakeName],
    say: Callable[[str], None] = say_line,
) -> list[Maintained]:
    """Look after some lake tables in a running Spark application.

    Args:
        spark: a session that :func:`spark_jobs.runtime.session.prepare` has seen.
        config: the source.
        store: where the cuts lie.
        names: the tables.
        say: takes one line for each table.

    Raises:
        CdcError: of a table; the others are looked after.
    """
    at = datetime.now(UTC)
    named = named_snapshots(store, config.source, at - config.maintenance.keep_snapshots_for)
    maintenance = LAKE_FORMAT.maintenance(spark, names, config.maintenance)
    again = Retrying(stop=stop_after_attempt(ATTEMPTS), retry=retry_if_exception_type(MergeConflict), reraise=True)

    def work(session: SparkSession, name: LakeName) -> Maintained:
        began = time.monotonic()
        kept: Maintained = again.copy()(maintenance, session, name, named, at)
        say(_line(kept, time.monotonic() - began))
        return kept

    hint = "The other tables are done."
    return side_by_side(spark, config, {str(name): name for name in names}, work, say, done="maintained", hint=hint)


def _line(kept: Maintained, seconds: float) -> str:
    if kept.missing:
        return f"{kept.table}: does not exist, and is left out; the next merge says what to do"
    rewritten = f"{kept.rewritten} of {kept.files} files became {kept.added} ({kept.bytes / 1e6:.1f} MB)"
    gone = f"{kept.deletes} files of deletes, {kept.snapshots} snapshots, {kept.orphans} lost files removed"
    counted = f", {kept.statistics} columns counted ({kept.statistics_bytes / 1e3:.1f} kB)" if kept.statistics else ""
    skipped = f"; no lost files were looked for, because {kept.in_the_way}" if kept.in_the_way else ""
    return f"{kept.table}: {rewritten}, {gone}{counted} in {seconds:.1f} s{skipped}"


if __name__ == "__main__":
    sys.exit(main())
