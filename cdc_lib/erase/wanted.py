"""Which rows a person asks for: by their key, or by a condition on the rows that the lake has."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from cdc_lib.config import SourceConfig, StoreKeys
from cdc_lib.erase.needles import Needles
from cdc_lib.errors import ConfigError
from cdc_lib.lake.catalog import open_catalog, translate_errors
from cdc_lib.model.pace import counted
from cdc_lib.read.key_text import parse_parts
from cdc_lib.read.lake import Lake
from cdc_lib.read.where import rows_where

MOST_ROWS = 1_000
"""Rows of one search: each is compared with every row of every file."""


def wanted(
    config: SourceConfig,
    table: str,
    key: Sequence[str],
    where: str,
    values: Sequence[str],
    keys_of_store: StoreKeys | None = None,
    begun: Callable[[tuple[str, ...]], Iterable[tuple[object, ...]]] = lambda _: (),
) -> Needles:
    """Return what to look for.

    Args:
        config: the source.
        table: ``database.table`` at the source.
        key: a text for each column of the key; empty with a condition, or with values alone.
        where: a condition in DuckDB's SQL on the lake table; empty without one.
        values: texts that belong to these rows alone.
        keys_of_store: of the store's S3 account; those of the environment without.
        begun: returns, by the columns of the table's key, rows of an erasure that was stopped: no condition meets them any more.

    Raises:
        ConfigError: nothing, or both, is asked for; the key is not one of the table; no row or too many meet the condition.
    """
    if bool(key) == bool(where) and not (values and not key):
        raise ConfigError(
            "give the key of a row, or --where",
            hint="--value alone searches for texts of rows that are nowhere found by their key.",
        )
    with translate_errors():
        catalog = open_catalog(config, keys_of_store)
    with Lake.open(config, catalog=catalog) as lake:
        reader = lake.table(table)
        names = reader.key if reader.pinned.has_key else ()
        keys: list[tuple[object, ...]] = []
        if key:
            if len(key) != len(reader.key):
                raise ConfigError(f"the key has {counted(len(names), 'part')}", hint=f"It is {', '.join(names)}.")
            keys = [parse_parts(reader.schema, reader.key, key)]
        if where:
            found = dict[tuple[object, ...], None]()
            for batch in rows_where(reader, where, reader.key):
                found.update(dict.fromkeys(zip(*(column.to_pylist() for column in batch.columns), strict=True)))
                if len(found) > MOST_ROWS:
                    break
            keys = [*found] or [*begun(names)]
            if not 0 < len(keys) <= MOST_ROWS:
                raise ConfigError(
                    f"the condition is met by {counted(len(keys), 'row')}{' or more' if keys else ''} of the lake table",
                    hint=f"Choose one that up to {MOST_ROWS} rows meet; rows that the lake no longer has are found by their key.",
                    table=table,
                )
    return Needles(names, tuple(keys), {"": frozenset(values)} if values else {})
