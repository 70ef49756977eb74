"""Erase rows from the lake tables of a source table: ``python -m spark_jobs.erase --config dags/sources/shop.yaml --table shop.customers --erasure ID``.

Rows go from every mode, without a mark. Then no file and no snapshot that is kept for this table has them: files are written again,
a commit after that has the markers, and a cut names it.
"""

from __future__ import annotations

import argparse
import secrets
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime

import pyarrow as pa
from pyspark.sql import SparkSession
from tenacity import Retrying, retry_if_exception_type, stop_after_attempt

from cdc_lib.apply.rows import LakeShape
from cdc_lib.config.source import SourceConfig
from cdc_lib.erase.reached import refuse_unreached
from cdc_lib.errors import ConfigError, MergeConflict
from cdc_lib.lake.routing import LakeMerge, lake_merges
from cdc_lib.model.erasure import Erasure
from cdc_lib.model.lake_table import LakeTable, Marker
from cdc_lib.model.manifest import ABSENT
from cdc_lib.model.merge_plan import Cut
from cdc_lib.model.pace import counted
from cdc_lib.model.table_commit import Erased, TableCommit
from cdc_lib.model.table_name import TableName
from cdc_lib.ports import LakeRows, MergeChanges, ObjectStore
from cdc_lib.store.cuts import last_cut, position_of, publish
from cdc_lib.store.erasures import erasures_of
from cdc_lib.store.objects.open import open_store
from spark_jobs.job import arguments_of, ended
from spark_jobs.lake_format import LAKE_FORMAT, LakeTarget
from spark_jobs.maintain import PURGE, maintain
from spark_jobs.runtime.log_lines import say
from spark_jobs.runtime.session import spark_session, table_session

ATTEMPTS = 5
"""Attempts per table when a merge commits first."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Erase rows, and remove every file that had them."""
    parser = arguments_of("spark_jobs.erase", "Erase rows from the lake.")
    parser.add_argument("--table", required=True, help="database.table at the source")
    parser.add_argument("--erasure", required=True, help="id of what was asked for")
    return ended(parser, arguments, _erase)


def _erase(config: SourceConfig, options: argparse.Namespace) -> str:
    store, table = open_store(config.store), TableName.parse(options.table)
    found = [one for one in erasures_of(store, config.source, table) if one.id == options.erasure]
    if not found:
        raise ConfigError(
            f"no erasure {options.erasure} of {table} is stored",
            hint="cdc lake erase asks for one.",
            source=config.source,
        )
    refuse_unreached(last_cut(store, config.source), found[0])
    purging = config.model_copy(update={"maintenance": config.maintenance.model_copy(update=PURGE)})
    with spark_session(config, store=store) as spark:
        LAKE_FORMAT.prove(spark)
        lakes = lake_merges(config, [table])
        rows = sum(_committed(spark, config, lake, found[0]) for lake in lakes)
        names = [lake.name for lake in lakes]
        maintain(spark, purging, store, names)
        # The snapshots of the last marker and of the last cut are kept: both have to be later than the last file with a row.
        for lake in lakes:
            _again()(_target(spark, config, lake).drop_removed_entries)
            _committed(spark, config, lake, found[0], markers_only=True)
        _publish(spark, config, store, lakes)
        maintain(spark, purging, store, names)
    return f"{counted(rows, 'row')} of {table} erased"


def _committed(
    spark: SparkSession, config: SourceConfig, lake: LakeMerge, erasure: Erasure, *, markers_only: bool = False
) -> int:
    """Commit a lake table without the rows, with its markers; returns how many they were. With the markers alone, no row is looked at."""
    rows: int = _again()(_without_rows, spark, config, lake, erasure, markers_only=markers_only)
    return rows


def _again() -> Retrying:
    return Retrying(stop=stop_after_attempt(ATTEMPTS), retry=retry_if_exception_type(MergeConflict), reraise=True)


def _without_rows(
    spark: SparkSession, config: SourceConfig, lake: LakeMerge, erasure: Erasure, *, markers_only: bool
) -> int:
    target = _target(spark, config, lake)
    state = target.load()
    if state is None or state.snapshot_id is None:
        return 0
    routed = next(one for one in lake.routed_tables if one.table == erasure.table)
    constants = routed.constants(config.source)
    key = tuple(name for name in state.primary_key if name not in constants)
    marker = state.markers.get(erasure.table, Marker())
    erases = () if markers_only else (Erased(erasure, key, constants),)

    def no_changes(rows: LakeRows) -> Iterator[pa.Table]:
        shape = LakeShape(erasure.table, rows.fields, constants, routed.target.keeps)
        yield shape.schema.append(pa.field(ABSENT, pa.string())).empty_table()

    target.apply(
        MergeChanges(no_changes), TableCommit({erasure.table: marker}, erases=erases, merge_id=marker.merge_id)
    )
    after = target.load()
    return _rows(state) - _rows(after)


def _rows(state: LakeTable | None) -> int:
    return state.rows or 0 if state is not None else 0


def _target(spark: SparkSession, config: SourceConfig, lake: LakeMerge) -> LakeTarget:
    return LAKE_FORMAT.table(table_session(spark, config), lake.name, config.source, lake.is_routed)


def _publish(spark: SparkSession, config: SourceConfig, store: ObjectStore, lakes: Sequence[LakeMerge]) -> None:
    """Publish the last cut again with the lake tables as they are now."""
    cut, states = last_cut(store, config.source), dict[str, LakeTable]()
    for lake in lakes:
        if (state := _target(spark, config, lake).load()) is not None:
            states[str(lake.name)] = state
    if cut is not None and states:
        publish(store, _with_states(cut, states))
        say(f"the lake tables of {', '.join(states)} are in a new cut")


def _with_states(cut: Cut, states: dict[str, LakeTable]) -> Cut:
    """Return a cut at the same position with the current snapshots of some lake tables."""
    tables = tuple(
        replace(
            one,
            lake_snapshot=state.snapshot_id,
            changes=0,
            fingerprint=state.fingerprint(one.table),
            lake_rows=state.rows,
        )
        if (state := states.get(one.lake_table)) is not None and state.snapshot_id is not None
        else replace(one, changes=0)
        for one in cut.tables
    )
    merge_id = f"{position_of(cut.merge_id)}-{secrets.token_hex(8)}"
    return replace(cut, merge_id=merge_id, at=datetime.now(UTC), seconds=0.0, tables=tables)


if __name__ == "__main__":
    sys.exit(main())
