"""Looks for lost files of lake tables whose source tables were dropped: no merge reads them, and no snapshot can make them again."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

from pyiceberg.table import Table

from cdc_lib.config import SourceConfig
from cdc_lib.errors import ConfigError, StoreError, StoreUnavailable
from cdc_lib.lake.catalog import load_table, open_catalog, translate_errors
from cdc_lib.model.finding import Finding
from cdc_lib.model.table_name import TableName
from cdc_lib.ports import ObjectStore
from cdc_lib.read.cache import Cache
from cdc_lib.read.manifests import files_of
from cdc_lib.store.cuts import last_cut

TABLES, FILES = 10, 100
"""Of how many tables, and of how many files of them, one check asks: of more, others each time."""

_AT_ONCE = 16


def check_dropped_tables(config: SourceConfig, store: ObjectStore) -> Iterator[Finding]:
    """Yield a finding for each such table that cannot be read whole.

    Args:
        config: the source.
        store: has the last cut.
    """
    cut = last_cut(store, config.source)
    dropped = sorted({one.table for one in cut.tables if one.dropped is not None}) if cut is not None else []
    if not dropped:
        return
    chosen = random.sample(dropped, min(TABLES, len(dropped)))
    try:
        catalog = open_catalog(config)
    except ConfigError:
        return  # it is not read without Spark
    with catalog:
        for table in chosen:
            try:
                lost = _lost(table, load_table(config, catalog, table), FILES // len(chosen))
            except StoreUnavailable:
                raise
            except ConfigError:
                continue  # the table is given up
            except StoreError as error:
                lost = [error.message]
            if lost:
                yield Finding(
                    "error",
                    f"{table}: its lake table has lost files: {lost[0]}; the source dropped the table, so that no snapshot can make it again",
                    f"Restore the files, or give the table up: cdc lake drop {config.source} {table.in_shell}",
                )


def _lost(table: TableName, lake_table: Table, most: int) -> Sequence[str]:
    """Return files of the current snapshot that are not there; at most so many are asked for."""
    snapshot = lake_table.current_snapshot()
    if snapshot is None:
        return ()
    with translate_errors(table):
        try:
            files = files_of(lake_table.io, snapshot.manifest_list, Cache(0))
        except FileNotFoundError as error:
            return (error.filename or str(error),)
        paths = sorted({one.path for group in (files.data, files.vectors.values(), files.positions) for one in group})
        chosen = random.sample(paths, min(most, len(paths)))
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            there = list(pool.map(lambda path: lake_table.io.new_input(path).exists(), chosen))
    return [path for path, is_there in zip(chosen, there, strict=True) if not is_there]
