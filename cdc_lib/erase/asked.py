"""Asks for an erasure: looks whether the source still has the rows, and remembers them by digests."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa

from cdc_lib.drain.columns import shape_of
from cdc_lib.erase.reached import refuse_snapshot, refuse_unreached
from cdc_lib.errors import ConfigError, SourceUnavailable
from cdc_lib.lake.arrow_types import arrow_type
from cdc_lib.model.cursor import DRAIN
from cdc_lib.model.erasure import Erasure, digest_of
from cdc_lib.model.pace import counted
from cdc_lib.model.position import Point
from cdc_lib.model.schema import TableSchema
from cdc_lib.model.table_name import TableName
from cdc_lib.mysql.information_schema import InformationSchema
from cdc_lib.mysql.lookup_session import on_server
from cdc_lib.mysql.server_facts import ServerFacts
from cdc_lib.reselect.result import Refused
from cdc_lib.reselect.rows import Reselector
from cdc_lib.source import Source
from cdc_lib.store import layout
from cdc_lib.store.cuts import last_cut
from cdc_lib.store.erasures import erasures_of, keep_erasure

_START = Point(0, 0, 0)
_SALT = 16
"""Bytes."""

Keys = Sequence[tuple[Any, ...]]
"""Of rows, as values of the lake's columns, without those that a route adds."""


def asked(source: Source, table: TableName, keys: Keys, *, by: str, lake_only: bool = False) -> Erasure:
    """Return the erasure of rows: the one that was asked for before and has not ended, else a new one.

    Args:
        source: with its log-in.
        table: ``database.table`` at the source.
        keys: of the rows.
        by: who asks.
        lake_only: whether the source may still have the rows.

    Raises:
        ConfigError: the source has one of the rows, or cannot tell.
        MergeConflict: a snapshot of the table is being read.
        SourceError: the server cannot be reached.
    """
    known = next((one for one in erasures_of(source.store, source.name, table) if _is_open(one, keys)), None)
    if known is not None and known.tried_at is None:
        refuse_snapshot(source.required(DRAIN), known)
        return known
    reselector = Reselector.of(source)
    if not lake_only:
        _refuse_present(reselector, table, keys)
    facts = _facts(reselector)
    if not lake_only:  # a row that was inserted meanwhile, and stays, must not be erased
        _refuse_present(reselector, table, keys)
    place: dict[str, Any] = {"identity": reselector.identity, "epoch": reselector.epoch, "position": facts.end}
    place |= {"gtid_set": facts.gtid_set, "at": facts.clock}
    erasure = _begun(source, table, keys, by, place) if known is None else replace(known, **place, tried_at=None)
    refuse_snapshot(source.required(DRAIN), erasure)
    keep_erasure(source.store, erasure)
    return erasure


def _is_open(erasure: Erasure, keys: Keys) -> bool:
    """Whether an erasure is of these rows, and has not ended."""
    return erasure.ended_at is None and len(erasure.digests) == len(set(keys)) and all(erasure.has(keys))


def _begun(source: Source, table: TableName, keys: Keys, by: str, place: Mapping[str, Any]) -> Erasure:
    salt, id_ = secrets.token_bytes(_SALT), secrets.token_hex(8)
    digests = tuple(sorted({digest_of(salt, key) for key in keys}))
    return Erasure(id_, source.name, table, salt.hex(), digests, **place, asked_at=datetime.now(UTC), asked_by=by)


def refuse_unmerged(source: Source, erasure: Erasure) -> None:
    """Refuse to go on before the lake has everything up to an erasure; see :func:`cdc_lib.erase.reached.refuse_unreached`."""
    refuse_unreached(last_cut(source.store, source.name), erasure)


def ended(source: Source, erasure: Erasure, *, is_clean: bool) -> None:
    """Remember that nothing was found any more, or that something was."""
    now = datetime.now(UTC)
    keep_erasure(source.store, replace(erasure, ended_at=now) if is_clean else replace(erasure, tried_at=now))


def _facts(reselector: Reselector) -> ServerFacts:
    source = reselector.source
    connection, facts = on_server(source.config.server, source.credentials, reselector.identity)
    connection.close()
    return facts


def _refuse_present(reselector: Reselector, table: TableName, keys: Keys) -> None:
    """Refuse to erase rows that the source has."""
    schema = _schema(reselector, table)
    if schema is None:
        return
    types = {column.name: arrow_type(column.type.lake_type) for column in schema.columns}
    columns = [pa.array([key[number] for key in keys], types[name]) for number, name in enumerate(schema.primary_key)]
    reread = reselector.read(schema, pa.table(columns, names=list(schema.primary_key)), _START)
    if isinstance(reread, Refused):
        if reread.again:
            raise SourceUnavailable(
                f"the source could not be asked for the rows: {reread.why}", hint="Try again.", table=table
            )
        raise ConfigError(
            f"the source cannot be asked whether it has the rows: {reread.why}",
            hint="See there that they are deleted, then add --lake-only.",
            table=table,
        )
    reselector.source.store.delete([layout.beside(reread.batch.key, one.path) for one in reread.batch.manifest.files])
    if reread.rows:
        raise ConfigError(
            f"the source still has {counted(reread.rows, 'row')} of these",
            hint="Delete them there, and run this again. --lake-only erases them from the lake alone: later changes bring them back.",
            table=table,
        )


def _schema(reselector: Reselector, table: TableName) -> TableSchema | None:
    """Return the table as it is at the source; None if it is not there."""
    source = reselector.source
    connection, _ = on_server(source.config.server, source.credentials, reselector.identity)
    with closing(connection):
        current = InformationSchema(connection).schema(*table.pair)
    if current is None:
        return None
    return shape_of(source.config, source.credentials).of(source.config.values.applied(current)).schema
