"""Which rows a person asks for: by their keys, or by a condition on the rows that the lake has."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Sequence

import pyarrow as pa

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
    keys: Sequence[Sequence[str]],
    where: str,
    values: Sequence[str],
    keys_of_store: StoreKeys | None = None,
    begun: Callable[[tuple[str, ...]], Iterable[tuple[object, ...]]] = lambda _: (),
) -> Needles:
    """Return what to look for.

    Args:
        config: the source.
        table: ``database.table`` at the source.
        keys: of each row, a text for each column of the key; empty with a condition, or with values alone.
        where: a condition in DuckDB's SQL on the lake table; empty without one.
        values: texts that belong to these rows alone.
        keys_of_store: of the store's S3 account; those of the environment without.
        begun: returns, by the columns of the table's key, rows of an erasure that was stopped: no condition meets them any more.

    Raises:
        ConfigError: nothing, or both, is asked for; a key is not one of the table; no row or too many meet the condition.
    """
    if bool(keys) == bool(where) and not (values and not keys):
        raise ConfigError(
            "give the key of a row, or --keys, or --where",
            hint="--value alone searches for texts of rows that are nowhere found by their key.",
        )
    with translate_errors():
        catalog = open_catalog(config, keys_of_store)
    with Lake.open(config, catalog=catalog) as lake:
        reader = lake.table(table)
        names = reader.key if reader.pinned.has_key else ()
        rows = [_parsed(reader.schema, names, key) for key in keys]
        if where:
            found = dict[tuple[object, ...], None]()
            for batch in rows_where(reader, where, reader.key):
                found.update(dict.fromkeys(zip(*(column.to_pylist() for column in batch.columns), strict=True)))
                if len(found) > MOST_ROWS:
                    break
            rows = [*found] or [*begun(names)]
            if not 0 < len(rows) <= MOST_ROWS:
                raise ConfigError(
                    f"the condition is met by {counted(len(rows), 'row')}{' or more' if rows else ''} of the lake table",
                    hint=f"Choose one that up to {MOST_ROWS} rows meet; rows that the lake no longer has are found by their keys.",
                    table=table,
                )
    return Needles(names, tuple(dict.fromkeys(rows)), {"": frozenset(values)} if values else {})


def keys_in(lines: Iterable[str]) -> list[list[str]]:
    """Return the keys in lines of CSV without a header, one key on a line.

    Raises:
        ConfigError: the lines are not CSV, or not UTF-8; they are too many.
    """
    try:
        keys = [parts for parts in csv.reader(lines, strict=True) if parts]
    except (csv.Error, UnicodeDecodeError) as error:
        raise ConfigError(
            f"the keys cannot be read: {error}", hint="They are CSV in UTF-8: one key on a line, its parts with commas."
        ) from error
    if len(keys) > MOST_ROWS:
        raise ConfigError(f"these are {counted(len(keys), 'key')}", hint=f"Give up to {MOST_ROWS} at once.")
    return keys


def _parsed(schema: pa.Schema, names: Sequence[str], key: Sequence[str]) -> tuple[object, ...]:
    if len(key) != len(names):
        raise ConfigError(
            f"the key has {counted(len(names), 'part')}, not {len(key)}: {', '.join(key)}",
            hint=f"It is {', '.join(names)}." if names else "The table has no key: use --where or --value.",
        )
    return parse_parts(schema, names, key)
